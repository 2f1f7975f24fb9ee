"""Tests of figures, by their elements."""

import struct
import sys
import xml.etree.ElementTree

import pytest
from matplotlib import figure

from repertory.components.config.settings import SettingError
from repertory.launch import results
from repertory.launch.results import drawing, plots
from support.launch import written_runs

_SVG = '{http://www.w3.org/2000/svg}'


@pytest.fixture
def runs(tmp_path):
  for seed in (0, 1):
    written_runs.write(tmp_path / f'runs/a{seed}', seed=seed)
    written_runs.write(
      tmp_path / f'runs/b{seed}', [(100, 5.0)], seed=seed, environment='x'
    )
  return results.find([tmp_path / 'runs']).runs


def test_png_is_a_picture(runs, tmp_path):
  path = tmp_path / 'new/folder/plot.PNG'
  assert plots.plot(runs, str(path)) == []
  content = path.read_bytes()
  assert content.startswith(b'\x89PNG')
  width, height = struct.unpack('>II', content[16:24])
  # Two panels side by side.
  assert width > 1.5 * height > 300
  assert [p.name for p in path.parent.iterdir()] == ['plot.PNG']


def test_svg_is_the_same_each_time(runs, tmp_path):
  one, other = tmp_path / 'one.svg', tmp_path / 'other.svg'
  plots.plot(runs, str(one))
  plots.plot(runs, str(other))
  assert one.read_bytes() == other.read_bytes()
  root = xml.etree.ElementTree.parse(one).getroot()
  assert root.tag == f'{_SVG}svg'
  # A line and a band of the first color, in both panels.
  paths = [path.get('style', '') for path in root.iter(f'{_SVG}path')]
  assert sum(f'stroke: {drawing.COLORS[0]}' in style for style in paths) >= 4


def test_long_labels_are_whole(tmp_path, monkeypatch):
  figures = []
  save = figure.Figure.savefig

  def keep(self, *arguments, **settings):
    figures.append(self)
    return save(self, *arguments, **settings)

  monkeypatch.setattr(figure.Figure, 'savefig', keep)
  values = [f'{number}_of_some_values_that_are_long' for number in range(6)]
  for value in values:
    config = {f'config.{n}': value for n in ('first', 'second', 'third')}
    written_runs.write(tmp_path / value, config=config)
  plots.plot(results.find([tmp_path]).runs, str(tmp_path / 'a.png'))
  (legend,) = figures[0].legends
  shown = [text.get_text() for text in legend.get_texts()]
  assert shown == [
    f'dqn, first={v}, second={v}, third={v} (1 seed)' for v in values
  ]
  # Above the figure, which is saved together with it.
  assert legend.get_window_extent().y0 >= figures[0].bbox.y1
  content = (tmp_path / 'a.png').read_bytes()
  height = struct.unpack('>I', content[20:24])[0] / 160
  assert height > figures[0].get_size_inches()[1] + 0.8


def test_says_what_is_not_drawn(runs, tmp_path):
  row = {'steps': 100, 'policy_lag': 1.0}
  written_runs.write(tmp_path / 'more', agent='ppo', learner=[row])
  runs = [*runs, results.read(tmp_path / 'more')]
  notes = plots.plot(runs, str(tmp_path / 'a.svg'), ['lag', 'return'])
  assert notes == [
    'dqn on catch has no policy lag, learner steps',
    'dqn on x has no policy lag, learner steps',
  ]


@pytest.mark.parametrize(
  ('output', 'message'),
  [
    ('folder.svg', 'must be a file'),
    ('file/a.svg', 'must be in a writable folder'),
    ('/proc/a.svg', 'must'),
  ],
)
def test_bad_output_is_reported_and_nothing_written(
  runs, tmp_path, monkeypatch, output, message
):
  monkeypatch.chdir(tmp_path)
  (tmp_path / 'folder.svg').mkdir()
  (tmp_path / 'file').touch()
  before = sorted(tmp_path.iterdir())
  with pytest.raises(SettingError, match=message) as caught:
    plots.plot(runs, output)
  assert caught.value.setting == 'output'
  assert sorted(tmp_path.iterdir()) == before


def test_without_matplotlib_says_what_to_install(runs, monkeypatch, tmp_path):
  monkeypatch.delitem(sys.modules, drawing.__name__)
  monkeypatch.setitem(sys.modules, 'matplotlib', None)
  with pytest.raises(ImportError, match=r"pip install 'repertory\[plots\]'"):
    plots.plot(runs, str(tmp_path / 'plot.png'))


class TestLooks:
  def test_two_dozen_are_distinct(self):
    looks = drawing.looks([str(i) for i in range(24)])
    assert len({str(look) for look in looks.values()}) == 24

  @pytest.mark.parametrize(
    ('value', 'expected'),
    [
      (0.0, '0'), (20_000, '20,000'), (-0.25, '−0.25'), (1.5e6, '1,500,000'),
      (0.1 + 0.2, '0.3'), (1e-4, '1.0e-04'),
    ],
  )  # fmt: skip
  def test_numbers_have_no_needless_digits(self, value, expected):
    assert drawing._write(value) == expected

  def test_quantities_have_rows_of_their_own_on_several_environments(
    self, runs, tmp_path
  ):
    grouped = results.group(runs)
    chosen = [
      quantity
      for name in ('return', 'evaluator.count')
      for quantity in results.curves.choose(name, runs)
    ]
    panels = results.curves.make_panels(grouped, chosen)
    rows = drawing._lay_out(panels)
    assert [[panel.environment for panel in row] for row in rows] == [
      ['catch', 'x']
    ] * 2
    # For one environment they are side by side, and a cell may be empty.
    one = [panel for panel in panels if panel.environment == 'x']
    assert [len(row) for row in drawing._lay_out(one)] == [2]
    assert drawing._lay_out(panels[:3])[1][1] is None
