"""A report on runs: one page of HTML, which needs no network."""

import datetime
import os
from collections.abc import Sequence

from repertory import __version__
from repertory.launch.records import (
  course_sections,
  finding,
  markup,
  outputs,
  page,
  plots,
  quantities,
  score_sections,
  videos,
)
from repertory.launch.records import curves as curves_lib
from repertory.launch.records import groups as groups_lib
from repertory.launch.records.markup import Html, element

ENDINGS = ('.html', '.htm')

# Most names in the heading; if there are more, it has their number.
_MAX_NAMES = 3

# Of statistics.
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
    'Undiscounted returns of what was learned from, exploration included.',
  ),
  ('losses', 'Losses', ''),
  (
    'ratio',
    'Ratio of learning to acting',
    'Samples per insert, divided by what the rate limiter aims at.',
  ),
  (
    'lag',
    'Policy lag',
    'How many learner steps older the weights were that acted.',
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
    found: The runs, and what was left out.
    output: The file, whose name ends with .html; its folder is made.
    over: What curves go over: 'steps', 'learner_steps' or 'elapsed_seconds'.
    statistic: What curves are of seeds: 'mean' or 'iqm'.

  Raises:
    SettingError: If one of them is wrong, or the file cannot be written.
    ImportError: Without Matplotlib, saying how to install it.
  """
  check(output, over, statistic)
  text = make(found, os.path.dirname(output) or '.', over, statistic)
  with (
    outputs.replacing(output) as path,
    open(path, 'w', encoding='utf-8') as file,  # As the page says.
  ):
    file.write(text)


def check(output: str, over: str, statistic: str) -> None:
  """Raises what `write` would, for what can be told without a look at runs."""
  plots.check(output, over, statistic, ENDINGS)


def make(
  found: finding.Found,
  folder: str = '.',
  over: str = 'steps',
  statistic: str = 'mean',
) -> str:
  """Returns the page of a report; see `write`.

  Args:
    folder: Where it will be, for links to files that are too large to be in it.
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
    course_sections.pace(found.runs),
    course_sections.incidents(found.runs),
    course_sections.runs(found.runs),
    course_sections.evaluations(found.runs),
    videos.section(found.runs, folder),
    score_sections.left_out(grouped, found),
  ]
  return page.make(f'Repertory: {heading}', markup.join(body), drawing.COLORS)


def _describe(grouped: groups_lib.Grouped) -> str:
  """Returns the heading, with agents and environments."""
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
  """Returns a section for each of the figures, empty if there is no curve."""
  legend = _legend(drawing, grouped)
  meaning = (
    f' Lines are the {_NAMES[statistic]} over seeds, and bands its 95% '
    'bootstrap interval; a line is thin where not all seeds have come so far.'
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
