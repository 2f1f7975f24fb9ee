"""HTML page of a report, styled for light, dark, narrow and wide screens."""

from repertory.launch.results.markup import Html, element, join

# Colors of series on dark ground; on light ground, figures keep their own.
_DARK_SERIES = (
  '#4ea3dc', '#f0b232', '#2fbf93', '#dd92bd', '#8fd0f5', '#f07f35',
)  # fmt: skip

# The page contains everything and may fetch nothing.
_POLICY = (
  "default-src 'none'; style-src 'unsafe-inline'; img-src data:; "
  'media-src data:'
)

_STYLE = """
:root {
  color-scheme: light dark;
  --ground: #ffffff; --raised: #f5f6f8; --text: #24292f; --muted: #5b6570;
  --line: #dadfe5; --link: #0b5cad; --good: #1a7f37; --bad: #b3261e;
  %(light)s
}
@media (prefers-color-scheme: dark) {
  :root {
    --ground: #14171b; --raised: #1e2329; --text: #e3e7ec; --muted: #9aa5b1;
    --line: #353c45; --link: #79b8ff; --good: #5bc27a; --bad: #ff8a80;
    %(dark)s
  }
}
* { box-sizing: border-box; }
body {
  margin: 0 auto; padding: 24px clamp(14px, 3vw, 40px) 60px; max-width: 1360px;
  background: var(--ground); color: var(--text);
  font: 15px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans",
    sans-serif;
}
h1 { font-size: 26px; line-height: 1.2; margin: 0 0 4px; }
h2 { font-size: 19px; margin: 40px 0 6px; }
h3 { font-size: 15px; margin: 20px 0 6px; }
p { margin: 6px 0; max-width: 75ch; }
a { color: var(--link); }
code { font: 0.92em ui-monospace, "DejaVu Sans Mono", monospace; }
.note { color: var(--muted); }
.legend {
  display: flex; flex-wrap: wrap; gap: 4px 22px; margin: 10px 0; padding: 0;
  list-style: none;
}
.legend li { display: flex; align-items: center; gap: 8px; }
.legend svg { width: 30px; height: 10px; flex: none; }
.panels {
  display: grid; gap: 20px 28px; margin: 10px 0;
  grid-template-columns: repeat(auto-fill, minmax(min(100%%, 330px), 1fr));
}
.columns {
  display: grid; gap: 0 28px; grid-auto-flow: row dense;
  grid-template-columns: repeat(auto-fit, minmax(min(100%%, 360px), 1fr));
}
.columns > section { min-width: 0; }
.columns > section:has(figure + figure) { grid-column: 1 / -1; }
figure { margin: 0; min-width: 0; max-width: 520px; }
figcaption { font-weight: 600; overflow-wrap: anywhere; }
figcaption span { color: var(--muted); font-weight: 400; }
figure > svg { display: block; width: 100%%; height: auto; }
figure > svg text { font-family: inherit !important; }
figure > img, figure > video {
  display: block; max-width: 100%%; border-radius: 4px;
}
.wide { overflow-x: auto; margin: 10px 0; }
table {
  border-collapse: collapse; font-size: 14px;
  font-variant-numeric: tabular-nums;
}
th, td {
  padding: 5px 18px 5px 0; text-align: left; vertical-align: top;
  border-bottom: 1px solid var(--line); white-space: nowrap;
}
th { color: var(--muted); font-weight: 500; vertical-align: bottom; }
thead th { white-space: normal; min-width: 4em; }
th.number, td.number { text-align: right; }
td.words, .words td:last-child {
  white-space: normal; min-width: 16em; overflow-wrap: anywhere;
}
details { margin: 8px 0; }
details[open] { padding-bottom: 8px; }
summary { cursor: pointer; padding: 4px 0; }
.done { color: var(--good); }
.failed { color: var(--bad); }
.running { color: var(--link); }
"""


def make(title: str, body: Html, colors: tuple[str, ...]) -> str:
  """Returns a self-contained page.

  Args:
    title: Title of the window.
    body: Content of the page.
    colors: Colors of series on light ground.
  """
  style = _STYLE % {
    name: ' '.join(f'--series-{i}: {color};' for i, color in enumerate(series))
    for name, series in (('light', colors), ('dark', _DARK_SERIES))
  }
  head = element(
    'head',
    element('meta', charset='utf-8'),
    element('meta', http_equiv='Content-Security-Policy', content=_POLICY),
    element(
      'meta', name='viewport', content='width=device-width, initial-scale=1'
    ),
    element('title', title),
    element('style', Html(style)),
  )
  page = element('html', head, element('body', body), lang='en')
  return f'<!doctype html>\n{page}\n'


def adapt(svg: str, colors: tuple[str, ...], ink: str, faint: str) -> Html:
  """Replaces a figure's colors by variables of the page's style.

  Args:
    svg: The SVG element, with colors in hexadecimal.
    colors: Colors of series.
    ink: Color of text and axes.
    faint: Color of grid lines.
  """
  names = {
    **{color: f'var(--series-{i})' for i, color in enumerate(colors)},
    ink: 'currentColor',
    faint: 'var(--line)',
  }
  for color, name in names.items():
    svg = svg.replace(color, name)
  return Html(svg)


def swatch(index: int, dashes: str) -> Html:
  """Returns a line in the style of a series, for a legend.

  Args:
    index: Index of its color.
    dashes: Lengths of lines and gaps, or ''.
  """
  line = element(
    'line',
    x1='0', y1='5', x2='30', y2='5',
    style=f'stroke: var(--series-{index}); stroke-width: 3',
    stroke_dasharray=dashes or None,
  )  # fmt: skip
  return element('svg', join([line]), viewBox='0 0 30 10')
