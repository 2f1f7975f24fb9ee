"""Tests of the table of a sweep, with made-up evaluations."""

import csv

import pytest

from repertory.launch.sweeps import manifest as manifest_lib
from repertory.launch.sweeps import results


@pytest.fixture
def make(tmp_path):
  """Makes a sweep of runs with exit codes and evaluations."""

  def make(runs, **settings):
    for path, (_, returns) in runs.items():
      folder = tmp_path / path / 'logs'
      folder.mkdir(parents=True)
      with open(folder / 'evaluator.csv', 'w') as file:
        writer = csv.writer(file)
        writer.writerow(['steps', 'episode_return'])
        writer.writerows([(100 * i, r) for i, r in enumerate(returns, 1)])
    codes = {path: code for path, (code, _) in runs.items()}
    return manifest_lib.SweepManifest(str(tmp_path), codes=codes, **settings)

  return make


def test_the_best_of_what_is_done_comes_first(make):
  rows = results.tabulate(
    make(
      {
        'lr=1/seed_0': (0, [5, 1]),
        'lr=1/seed_1': (0, [2, 3]),
        'lr=2/seed_0': (0, [1, 7, 4]),
        'lr=2/seed_1': (1, [99]),
        'lr=2/seed_2': (None, [99]),
        'lr=3/seed_0': (0, [1, float('nan')]),
        'lr=4/seed_0': (0, []),
      }
    )
  )
  lines = results.write(rows).splitlines()
  assert ' '.join(lines[0].split()) == (
    'combination seeds last return 95 % interval best return steps'
  )
  assert lines[1].split() == ['lr=2', '1', '4', '–', '7', '300']
  # An evaluation without a number does not count.
  assert lines[3].split() == ['lr=3', '1', '1', '–', '1', '200']
  # With two runs, each resample has one, the other, or both.
  assert lines[2].split() == ['lr=1', '2', '2', '1', 'to', '3', '4', '200']


def test_trials_are_shown_with_their_choices(make):
  chosen = {'config.lr': '0.00012345678', 'config.n': '3', 'env': 'a.b'}
  manifest = make(
    {'trial_0/seed_0': (0, [1])}, is_study=True, groups={'trial_0': chosen}
  )
  (row,) = results.tabulate(manifest)
  assert row.group.label == 'trial_0 lr=0.0001235 n=3 env=a.b'


def test_a_sweep_without_settings_that_differ(make):
  (row,) = results.tabulate(make({'seed_0': (0, [1])}))
  assert row.group.label == 'all runs'
