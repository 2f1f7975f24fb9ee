"""Tests of reports, parsed like in a browser."""

import base64
import html.parser
import os
import re

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
  figures = [
    base64.b64decode(link.removeprefix('data:image/svg+xml;base64,'))
    for link in reader.links
  ]
  assert all(b'<svg' in figure for figure in figures)
  assert 'script' not in reader.tags
  assert not re.search(r'@import|url\((?!#)', text)
  assert not re.findall(r'https?://', text)
  # Figures of returns and DQN's loss.
  assert reader.tags.count('figure') == 2
  assert sorted(os.listdir(folder)) == ['report.html', 'runs']
  assert 'prefers-color-scheme: dark' in text
  assert '<h1>&lt;b&gt;&amp;&#34;, dqn on catch</h1>' in text
  # Settings, scores and waiting.
  texts = reader.texts
  for expected in (
    'Evaluations',
    'Scores',
    'Settings that differ',
    'n_step',
    'Losses',
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


def test_newest_videos_are_in_the_page_if_it_has_room(folder, monkeypatch):
  place = folder / 'runs/a0/videos'
  place.mkdir()
  (place / 'the best.mp4').write_bytes(b'moving')
  (place / 'old.gif').write_bytes(b'GIF')
  os.utime(place / 'old.gif', (5, 5))
  (place / 'notes.txt').touch()
  reader = _Reader(_write(folder))
  data = base64.b64encode(b'moving').decode()
  assert reader.links[-1] == f'data:video/mp4;base64,{data}'
  assert not [path for path in reader.texts if path.endswith('old.gif')]
  monkeypatch.setattr(report, '_MAX_BYTES', 5)
  reader = _Reader(_write(folder))
  assert 'video' not in reader.tags
  assert str(place / 'the best.mp4') in reader.texts


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
    found = report.incidents(results.read(directory))
    assert [(one['kind'], one['description']) for one in found] == [
      ('restarted', 'actor/0: Bad: 1 (× 2)'),
      ('warning', 'learner: disk full'),
      ('skipped', '3 non-finite updates'),
      ('stalled', 'No further.'),
      ('interrupted', 'its process ended without logging an outcome'),
    ]

  def test_pace(self, tmp_path):
    replay = [
      {'steps': 1, 'inserts_wait': 1.0, 'samples_wait': 0.0},
      {'steps': 2, 'inserts_wait': 0.5, 'samples_wait': 0.5},
    ]
    names = ('steps/s', 'updates/s', 'acting blocked', 'learning blocked')
    for topology, expected in (
      # 200 steps and 100 updates in 60 s.
      ('central', ['3.333', '1.667', '75%', '25%']),
      ('single', ['3.333', '1.667', '–', '–']),
    ):
      directory = written_runs.write(
        tmp_path / topology, topology=topology, replay=replay
      )
      row = report.describe(results.read(directory))
      assert [row[name] for name in names] == expected
