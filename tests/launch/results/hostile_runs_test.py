"""Tests of malicious names and files in folders of runs."""

import json
import os

import pytest

from repertory.launch import results
from repertory.launch.cli import commands as command_line
from repertory.launch.results import report, throughput, videos
from support.launch import written_runs

_SECRET = 'the secret'

# A formula that Matplotlib cannot parse, a terminal's control character, and a
# byte that is not UTF-8, as in Python's paths; and their escaped forms.
_NAMES = [r'$\frac{$', '\x1b[31m\nred', '\udcff']
_SHOWN = [r'$\frac{$', r'\x1b[31m\nred', r'\udcff']


def _call(capsys, *arguments):
  code = command_line.run(arguments)
  captured = capsys.readouterr()
  return code, captured.out, captured.err


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

  @pytest.mark.parametrize('kind', ['text', 'csv'])
  def test_are_visible_in_tables(self, folder, capsys, kind):
    code, out, err = _call(capsys, 'runs', f'--format={kind}')
    assert code == 0, err
    assert out.count('\n') == 1 + 2 * len(_NAMES)
    for text in (out, err):
      assert text.replace('\n', '').isprintable()
      for shown in _SHOWN:
        assert f'runs/{shown}/' in text

  def test_are_as_they_were_in_json(self, folder, capsys):
    _, out, _ = _call(capsys, 'runs', '--format=json')
    assert out.isascii()
    found = {row['environment'] for row in json.loads(out)}
    assert found == set(_NAMES)

  @pytest.mark.parametrize('output', ['plot.png', 'plot.svg'])
  def test_are_drawn_as_they_are(self, folder, capsys, output):
    what = '--what=return,learner.$x^$'
    code, out, err = _call(capsys, 'plot', 'runs', f'--output={output}', what)
    assert (code, out) == (0, f'Plot: {output}\n'), err
    assert 'Glyph' not in err

  def test_are_text_in_a_page(self, folder, capsys, monkeypatch):
    monkeypatch.setattr(videos, '_MAX_BYTES', 0)  # So that they are linked.
    code, _, err = _call(capsys, 'report', 'runs')
    assert code == 0, err
    text = (folder / 'report.html').read_text(encoding='utf-8')
    assert '\x1b' not in text
    for shown in _SHOWN:
      assert f'<code>{shown}/a</code>' in text
    assert 'href="runs/%FF/a/videos/%FF.mp4"' in text

  def test_are_visible_in_errors(self, tmp_path, capsys):
    path = f'{tmp_path}/\x1b[31m'
    code, _, err = _call(capsys, 'plot', path)
    assert code == 2
    assert r'/\x1b[31m is not there' in err
    os.mkdir(path)
    code, _, err = _call(capsys, 'plot', path)
    assert code == 2
    assert r'/\x1b[31m (no run in it)' in err


@pytest.mark.parametrize(
  'name',
  [
    '.lock',
    'logs/runs.jsonl',
    'logs/nodes.jsonl',
    'logs/evaluator.csv',
    'logs/learner.jsonl',
    'logs/stall.txt',
    'checkpoints/00000001/state.json',
    'videos/a.mp4',
    'diverged/a.npz',
  ],
)
@pytest.mark.parametrize('is_link', [False, True])
def test_a_fifo_or_link_is_left_out(tmp_path, name, is_link):
  """A FIFO has no writer: opened like a file, it would wait forever."""
  state = {'counts': {'steps': 77}, 'experiment': {'agent': _SECRET}}
  (tmp_path / 'outside').write_text(json.dumps({**state, 'cause': _SECRET}))
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
  assert _SECRET not in text
  assert 'a.mp4' not in text
  assert 'a.npz' not in text
  left_out = found.describe_others() + found.describe_problems()
  if name.startswith(('.lock', 'logs/', 'checkpoints/')) and name not in (
    # A run without it is unknown; a stall is the exception.
    'logs/runs.jsonl',
    'logs/stall.txt',
  ):
    expected = 'symbolic link' if is_link else 'not a regular file'
    assert expected in left_out


@pytest.mark.parametrize('name', ['logs', 'checkpoints', 'videos', 'diverged'])
def test_a_linked_folder_is_left_out(tmp_path, name):
  outside = tmp_path / 'outside'
  (outside / '00000001').mkdir(parents=True)
  (outside / '00000001/state.json').write_text('{"counts": {"steps": 777}}')
  (outside / 'stall.txt').write_text(_SECRET)
  (outside / f'{_SECRET}.mp4').write_text(_SECRET)
  (outside / 'actors.csv').write_text('steps,episode_return\n777,7\n')
  directory = written_runs.write(tmp_path / 'run')
  if name == 'logs':
    os.rename(f'{directory}/logs', tmp_path / 'old')
  os.symlink(outside, f'{directory}/{name}')
  run = results.read(directory)
  assert run.steps != 777
  assert not run.logs.get('actors')
  assert not videos.find(run)
  assert not any(_SECRET in one.text for one in throughput.incidents(run))


@pytest.mark.parametrize(
  ('name', 'content'),
  [
    (
      'checkpoints/00000001/state.json',
      {'initial_from': {'directory': 1}},
    ),
    (
      'logs/runs.jsonl',
      {
        'begun': '2026-01-02T03:04:05+00:00', 'topology_settings': None,
        'config': {'agent': 'dqn', 'environment': 'catch', 'seed': 0},
      },
    ),
  ],
)  # fmt: skip
def test_values_of_another_kind_do_no_harm_to_a_page(tmp_path, name, content):
  written_runs.write(tmp_path / 'a')
  path = tmp_path / 'b' / name
  written_runs.write(tmp_path / 'b')
  path.parent.mkdir(parents=True, exist_ok=True)
  path.write_text(json.dumps(content))
  assert 'dqn on catch' in report.make(results.find([tmp_path]))


def test_a_run_whose_directory_is_a_link_is_read_as_a_whole(tmp_path):
  directory = written_runs.write(tmp_path / 'elsewhere/run')
  os.mkdir(f'{directory}/videos')
  with open(f'{directory}/videos/a.mp4', 'wb') as file:
    file.write(b'moving')
  (tmp_path / 'link').symlink_to(directory)
  (run,) = results.find([tmp_path / 'link']).runs
  assert run.steps == 200
  assert videos.find(run) == [f'{tmp_path}/link/videos/a.mp4']
  assert 'data:video/mp4;base64,bW92aW5n' in videos.section([run], '.')
