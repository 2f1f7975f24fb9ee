"""Tests of figures, by their elements."""

import importlib
import struct
import sys
import xml.etree.ElementTree

import pytest

from repertory.launch import results
from repertory.launch.results import plots
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
  assert sum(f'stroke: {plots.COLORS[0]}' in style for style in paths) >= 4


def test_without_matplotlib_says_what_to_install(monkeypatch):
  monkeypatch.delitem(sys.modules, plots.__name__)
  monkeypatch.setitem(sys.modules, 'matplotlib', None)
  with pytest.raises(ImportError, match=r"pip install 'repertory\[plots\]'"):
    importlib.import_module(plots.__name__)
