"""Tests of reports, parsed like in a browser."""

import base64
import html.parser
import json
import os
import re
import urllib.parse

import pytest

from repertory.launch import results
from repertory.launch.results import report
from support.launch import written_runs

_VOID = {'meta', 'img', 'br'}


class _Reader(html.parser.HTMLParser):
  """Collects tags, attributes and text, and checks that tags are closed."""

  def __init__(self, text):
    super().__init__()
    self.links, self.texts, self.tags, self._open = [], [], [], []
    self.feed(text)
    self.close()
    assert not self._open

  def handle_starttag(self, tag, attrs):
    self.tags.append(tag)
    if tag not in _VOID:
      self._open.append(tag)
    self.links += [v for k, v in attrs if k in ('src', 'href', 'xlink:href')]

  def handle_startendtag(self, tag, attrs):
    self.handle_starttag(tag, attrs)
    if tag not in _VOID:
      self._open.pop()

  def handle_endtag(self, tag):
    assert self._open.pop() == tag

  def handle_data(self, data):
    self.texts.append(data)


@pytest.fixture
def folder(tmp_path):
  for seed in (0, 1):
    written_runs.write(
      tmp_path / f'runs/a{seed}',
      seed=seed,
      learner=[{'steps': 100, 'loss': 0.5}],
      replay=[
        {'steps': 100, 'inserts_wait': 0.1, 'samples_wait': 0.7, 'count': 4}
      ],
      topology='distributed',
    )
  config = {**written_runs.CONFIG, 'config.n_step': 5}
  written_runs.write(tmp_path / 'runs/b', config=config, agent='<b>&"')
  return tmp_path


def _write(folder):
  path = folder / 'report.html'
  report.write(results.find([folder / 'runs']), str(path))
  return path.read_text()


def test_page_is_whole_and_needs_no_network(folder):
  text = _write(folder)
  assert '<b>&"' not in text
  assert '&lt;b&gt;&amp;' in text
  reader = _Reader(text)
  assert not [one for one in reader.links if not one.startswith('#')]
  assert 'script' not in reader.tags
  assert not re.search(r'@import|url\((?!#)', text)
  # Namespaces are no addresses.
  assert set(re.findall(r'https?://[^/"]*', text)) == {'http://www.w3.org'}
  marks = re.findall(r' id="([^"]+)"', text)
  assert len(set(marks)) == len(marks)
  assert {link[1:] for link in reader.links} <= set(marks)
  # Figures of returns, DQN's loss and the ratio, besides lines of legends.
  assert reader.tags.count('figure') == 2
  assert reader.tags.count('svg') == 2 + text.count('<li><svg')
  assert sorted(os.listdir(folder)) == ['report.html', 'runs']
  # Colors are those of the page's style, light or dark.
  assert 'prefers-color-scheme: dark' in text
  assert 'stroke: var(--series-0)' in text
  assert text.count('#0072b2') == 1
  assert '<h1>&lt;b&gt;&amp;&#34;, dqn on catch</h1>' in text
  # Settings, scores and waiting.
  texts = reader.texts
  for expected in (
    'Evaluations',
    'Scores',
    'Settings that differ',
    'n_step',
    'Losses',
    'Throughput and waiting',
    'learning waits for acting: more or faster actors would help',
    'Runs',
    '70%',
  ):
    assert expected in texts, expected
  # One setting differs; `discount` is in the list of all settings only.
  assert texts.count('discount') == 2


def test_runs_without_steps_make_a_page_too(tmp_path):
  written_runs.write(tmp_path / 'runs/a', ())
  text = _write(tmp_path)
  assert 'has no steps yet' in text
  _Reader(text)


class TestVideos:
  def test_small_ones_are_in_the_page_and_others_linked(
    self, folder, monkeypatch
  ):
    place = folder / 'runs/a0/videos'
    place.mkdir()
    (place / 'the best.mp4').write_bytes(b'moving')
    os.utime(place / 'the best.mp4', (10, 10))
    (place / 'old.gif').write_bytes(b'GIF')
    os.utime(place / 'old.gif', (5, 5))
    (place / 'notes.txt').touch()
    reader = _Reader(_write(folder))
    data = base64.b64encode(b'moving').decode()
    assert f'data:video/mp4;base64,{data}' in reader.links
    paths = [urllib.parse.unquote(one) for one in reader.links]
    for name in ('the best.mp4', 'old.gif'):
      assert f'runs/a0/videos/{name}' in paths
    assert 'video' in reader.tags
    monkeypatch.setattr(report, '_MAX_BYTES', 5)
    reader = _Reader(_write(folder))
    assert 'video' not in reader.tags
    assert 'runs/a0/videos/the%20best.mp4' in reader.links


class TestCourse:
  def test_incidents(self, tmp_path):
    directory = written_runs.write(
      tmp_path / 'a',
      ended=None,
      learner=[{'steps': 1, 'skipped_updates': 3.0}],
    )
    lost = {'node': 'actor/0', 'restarted_after': 'Traceback\n  x\nBad: 1'}
    rows = [lost, lost, {'node': 'learner', 'warning': 'disk full'}]
    written_runs.write_jsonl(tmp_path / 'a/logs/nodes.jsonl', rows)
    (tmp_path / 'a/logs/stall.txt').write_text('No further.\nmore\n')
    (tmp_path / 'a/diverged').mkdir()
    (tmp_path / 'a/diverged/step_7.npz').touch()
    with open(tmp_path / 'a/logs/runs.jsonl', 'a') as file:
      file.write(json.dumps({'begun': 'x', 'message': 'resumed from 3'}))
    found = report.incidents(results.read(directory))
    assert [tuple(one.values()) for one in found] == [
      ('resumed', 'resumed from 3'),
      ('restarted', 'actor/0, after: Bad: 1 (× 2)'),
      ('warning', 'learner: disk full'),
      ('skipped', '3 non-finite updates'),
      ('diverged', 'the batch is in diverged/step_7.npz'),
      ('stalled', 'No further.'),
      ('interrupted', 'its process ended without logging an outcome'),
    ]

  def test_pace(self, tmp_path):
    replay = [
      {'steps': 1, 'inserts_wait': 1.0, 'samples_wait': 0.0, 'count': 3},
      {'steps': 2, 'inserts_wait': 0.0, 'samples_wait': 1.0, 'count': 1},
    ]
    directory = written_runs.write(
      tmp_path / 'a', topology='central', replay=replay
    )
    # 200 steps and 100 updates in 60 s.
    assert report.pace(results.read(directory)) == {
      'steps/s': '3.333', 'updates/s': '1.667',
      'acting blocked': '75%', 'learning blocked': '25%',
      'bottleneck': 'acting waits for learning: a faster learner would help',
    }  # fmt: skip
    directory = written_runs.write(tmp_path / 'b', replay=replay)
    pace = report.pace(results.read(directory))
    assert pace['acting blocked'] == '–'
    assert pace['bottleneck'] == 'acting and learning take turns'
