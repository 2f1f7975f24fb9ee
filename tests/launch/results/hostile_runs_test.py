"""Tests of malicious names and files in folders of runs."""

import json
import os

import pytest

from repertory.launch import results
from repertory.launch.results import report
from support.launch import written_runs

_SECRET = 'the secret'

# A formula that Matplotlib cannot parse, a terminal's control character, and a
# byte that is not UTF-8, as in Python's paths; and their escaped forms.
_NAMES = [r'$\frac{$', '\x1b[31m\nred', '\udcff']
_SHOWN = [r'$\frac{$', r'\x1b[31m\nred', r'\udcff']


class TestNames:
  @pytest.fixture
  def folder(self, tmp_path, monkeypatch):
    """Runs with each of the names, in all places where names occur."""
    for name in _NAMES:
      config = {**written_runs.CONFIG, 'config.label': name}
      written_runs.write(
        tmp_path / f'runs/{name}/a', environment=name, config=config,
        learner=[{'steps': 1, 'loss': 0.5, '$x^$': 1.0}],
      )  # fmt: skip
      written_runs.write(
        tmp_path / f'runs/{name}/b', environment=name,
        experiment={'initial_from': f'{name}\0\ud800'},
      )  # fmt: skip
      (tmp_path / f'runs/{name}/c/logs').mkdir(parents=True)
      video = tmp_path / f'runs/{name}/a/videos/{name}.mp4'
      video.parent.mkdir()
      video.write_bytes(b'moving')
    monkeypatch.chdir(tmp_path)
    return tmp_path

  def test_are_visible_in_tables_and_as_they_were_in_json(
    self, folder, run_command
  ):
    for kind in ('text', 'csv'):
      code, out, err = run_command('runs', f'--format={kind}')
      assert code == 0, err
      assert out.count('\n') == 1 + 2 * len(_NAMES)
      for text in (out, err):
        assert text.replace('\n', '').isprintable()
        for shown in _SHOWN:
          assert f'runs/{shown}/' in text
    _, out, _ = run_command('runs', '--format=json')
    assert out.isascii()
    assert {row['environment'] for row in json.loads(out)} == set(_NAMES)

  def test_are_drawn_as_they_are(self, folder, run_command):
    what = '--what=return,learner.$x^$'
    code, out, err = run_command('plot', 'runs', what)
    assert (code, out) == (0, 'Plot: plot.png\n'), err
    assert 'Glyph' not in err

  def test_are_text_in_a_page(self, folder, run_command):
    code, _, err = run_command('report', 'runs')
    assert code == 0, err
    text = (folder / 'report.html').read_text(encoding='utf-8')
    assert '\x1b' not in text
    for shown in _SHOWN:
      assert f'<code>runs/{shown}/a</code>' in text
    assert r'runs/\udcff/a/videos/\udcff.mp4' in text

  def test_are_visible_in_errors(self, tmp_path, run_command):
    path = f'{tmp_path}/\x1b[31m'
    code, _, err = run_command('plot', path)
    assert code == 2
    assert r'/\x1b[31m is not there' in err
    os.mkdir(path)
    code, _, err = run_command('plot', path)
    assert code == 2
    assert r'/\x1b[31m (no run in it)' in err


@pytest.mark.parametrize(
  ('name', 'is_link'),
  [
    ('.lock', False),
    ('logs/runs.jsonl', True),
    ('logs/evaluator.csv', False),
    ('logs/evaluator.csv', True),
    ('videos/a.mp4', True),
  ],
)
def test_a_fifo_or_link_is_left_out(tmp_path, name, is_link):
  """A FIFO has no writer: opened like a file, it would wait forever."""
  (tmp_path / 'outside').write_text(json.dumps({'begun': '', 'why': _SECRET}))
  path = tmp_path / 'run' / name
  written_runs.write(tmp_path / 'run')
  path.parent.mkdir(parents=True, exist_ok=True)
  path.unlink(missing_ok=True)
  if is_link:
    path.symlink_to(tmp_path / 'outside')
  else:
    os.mkfifo(path)
  found = results.find([tmp_path / 'run'])
  text = report.make(found)
  for private in (_SECRET, 'a.mp4'):
    assert private not in text
  left_out = found.describe_others() + found.describe_problems()
  if name.startswith(('.lock', 'logs/evaluator')):
    expected = 'symbolic link' if is_link else 'not a regular file'
    assert expected in left_out


def test_linked_folders_are_left_out(tmp_path):
  outside = tmp_path / 'outside'
  outside.mkdir()
  (outside / 'stall.txt').write_text(_SECRET)
  (outside / f'{_SECRET}.mp4').write_text(_SECRET)
  directory = written_runs.write(tmp_path / 'run')
  os.symlink(outside, f'{directory}/videos')
  assert _SECRET not in report.make(results.find([directory]))
  os.rename(f'{directory}/logs', tmp_path / 'old')
  os.symlink(tmp_path / 'old', f'{directory}/logs')
  assert results.read(directory).state == 'never begun'
