"""Report on runs: one self-contained page of HTML."""

import datetime
import os
from collections.abc import Sequence

from repertory import __version__
from repertory.launch.results import curves as curves_lib
from repertory.launch.results import (
  finding,
  markup,
  outputs,
  page,
  plots,
  quantities,
  score_sections,
  throughput_sections,
  videos,
)
from repertory.launch.results import groups as groups_lib
from repertory.launch.results.markup import Html, element

ENDINGS = ('.html', '.htm')

_MAX_NAMES = 3  # In the heading; if there are more, it shows their number.

# Names of statistics.
_NAMES = {'mean': 'mean', 'iqm': 'interquartile mean'}

# Name, heading and note of each section with curves.
_FIGURES = (
  (
    'return',
    'Evaluations',
    'Mean undiscounted return of the episodes of each evaluation.',
  ),
  (
    'training_return',
    'Training episodes',
    'Undiscounted returns of training episodes, exploration included.',
  ),
  ('losses', 'Losses', ''),
  (
    'ratio',
    'Ratio of learning to acting',
    "Samples per insert, divided by the rate limiter's target.",
  ),
  (
    'lag',
    'Policy lag',
    "Age of the actors' weights, in learner steps.",
  ),
  ('speed', 'Speed', 'Environment steps per second.'),
)


def write(
  found: finding.Found,
  output: str,
  over: str = 'steps',
  statistic: str = 'mean',
) -> None:
  """Writes a report.

  Args:
    found: The runs, and the folders left out.
    output: Path of the file, which ends with .html; its folder is made.
    over: The x-axis of curves: 'steps', 'learner_steps' or 'elapsed_seconds'.
    statistic: Statistic of curves over seeds: 'mean' or 'iqm'.

  Raises:
    SettingError: If an argument is wrong, or the file cannot be written.
    ImportError: Without Matplotlib.
  """
  check(output, over, statistic)
  text = make(found, os.path.dirname(output) or '.', over, statistic)
  with (
    outputs.replacing(output) as path,
    open(path, 'w', encoding='utf-8') as file,  # As the page says.
  ):
    file.write(text)


def check(output: str, over: str, statistic: str) -> None:
  """Checks the arguments of `write`, without reading runs."""
  plots.check(output, over, statistic, ENDINGS)


def make(
  found: finding.Found,
  folder: str = '.',
  over: str = 'steps',
  statistic: str = 'mean',
) -> str:
  """Returns the page of a report; see `write`.

  Args:
    folder: Folder of the page, for links to files too large to embed.
  """
  drawing = plots.load_drawing()
  grouped = groups_lib.group(found.runs)
  first, *others = _figures(drawing, found, grouped, over, statistic)
  if len(grouped.environments) == 1:  # Each section is one panel wide.
    first, others = element('div', first, *others, class_='columns'), []
  heading = _describe(grouped)
  body = [
    _head(found, grouped, heading),
    first,
    score_sections.scores(grouped),
    score_sections.settings(grouped),
    *others,
    throughput_sections.pace(found.runs),
    throughput_sections.incidents(found.runs),
    throughput_sections.runs(found.runs),
    throughput_sections.evaluations(found.runs),
    videos.section(found.runs, folder),
    score_sections.left_out(grouped, found),
  ]
  return page.make(f'Repertory: {heading}', markup.join(body), drawing.COLORS)


def _describe(grouped: groups_lib.Grouped) -> str:
  """Returns the heading, which names agents and environments."""
  agents = sorted({group.agent for group in grouped.groups})
  if not agents:
    return 'No steps yet'

  def join(names: Sequence[str], what: str) -> str:
    few = len(names) <= _MAX_NAMES
    return ', '.join(names) if few else f'{len(names)} {what}'

  environments = join(grouped.environments, 'environments')
  return f'{join(agents, "agents")} on {environments}'


def _head(
  found: finding.Found, grouped: groups_lib.Grouped, heading: str
) -> Html:
  now = datetime.datetime.now().astimezone()
  counts = ', '.join(
    f'{number} {what}{"" if number == 1 else "s"}'
    for number, what in (
      (len(found.runs), 'run'),
      (len(grouped.labels), 'variant'),
      (len(grouped.environments), 'environment'),
    )
  )
  made = f'{counts}. Made {now:%Y-%m-%d %H:%M %Z} by repertory {__version__}.'
  return element(
    'header', element('h1', heading), element('p', made, class_='note')
  )


def _figures(
  drawing,
  found: finding.Found,
  grouped: groups_lib.Grouped,
  over: str,
  statistic: str,
) -> list[Html]:
  """Returns a section for each figure, empty without curves."""
  legend = _legend(drawing, grouped)
  meaning = (
    f' Lines are the {_NAMES[statistic]} over seeds, and bands its 95% '
    'bootstrap interval; a line is thin where some seeds have no data.'
  )
  sections = []
  for name, title, note in _FIGURES:
    chosen = quantities.choose(name, found.runs)
    panels = curves_lib.make_panels(grouped, chosen, over, statistic)
    figures = [
      _figure(drawing, panel, grouped.labels, f'{name} {i}')
      for i, panel in enumerate(panels)
    ]
    grid = element('div', *figures, class_='panels')
    sections.append(
      markup.section(title, legend, grid, note=note + meaning)
      if figures
      else Html('')
    )
    meaning = '' if figures else meaning
  return sections


def _figure(
  drawing,
  panel: curves_lib.Panel,
  labels: Sequence[str],
  salt: str,
) -> Html:
  caption = element(
    'figcaption',
    panel.environment,
    ' ',
    element('span', panel.quantity.title),
  )
  svg = drawing.to_svg(panel, labels, salt)
  return element(
    'figure',
    caption,
    page.adapt(svg, drawing.COLORS, drawing.INK, drawing.FAINT),
  )


def _legend(drawing, grouped: groups_lib.Grouped) -> Html:
  entries = []
  for label, (color, dashes) in drawing.looks(grouped.labels).items():
    lengths = '' if dashes == '-' else ' '.join(f'{3 * n:g}' for n in dashes[1])
    swatch = page.swatch(drawing.COLORS.index(color), lengths)
    entries.append(element('li', swatch, label))
  return element('ul', *entries, class_='legend')
