"""Tests of studies, with made-up evaluations."""

import csv
import math

import optuna
import pytest
from optuna.storages import journal

from repertory.components.config.settings import SettingError
from repertory.launch.sweeps import manifest as manifest_lib
from repertory.launch.sweeps import study, values

_SPACE = {
  'config.lr': values.Range('1e-5..1:log', 1e-5, 1.0, is_log=True),
  'config.n': values.Range('1..5', 1, 5),
}


def _make(directory, num_trials, seeds, kinds=('good', 'bad'), **settings):
  """Opens the study of a directory."""
  given = {'agent': ('dqn',), 'config.kind': kinds, **_SPACE, 'seed': seeds}
  source = study.StudyPlan(given, lambda _: {}, num_trials, **settings)
  manifest = manifest_lib.load(str(directory))
  source.open(manifest)
  return source, manifest


def _worth(chosen):
  """Objective with the maximum 0 at lr = 1e-2, n = 4 and the good kind."""
  return (
    -abs(math.log10(float(chosen['config.lr'])) + 2)
    - abs(int(chosen['config.n']) - 4)
    - (chosen['config.kind'] == 'bad')
  )


class TestStudy:
  manifest: manifest_lib.SweepManifest

  @pytest.fixture
  def make(self, tmp_path):
    def make(num_trials=2, seeds=('0', '1'), **settings):
      source, self.manifest = _make(tmp_path, num_trials, seeds, **settings)
      return source

    self.directory = tmp_path
    return make

  def _evaluate(self, run, *returns):
    """Writes evaluations like a run."""
    folder = self.directory / run.path / 'logs'
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / 'evaluator.csv', 'w') as file:
      writer = csv.writer(file)
      writer.writerow(['steps', 'episode_return'])
      writer.writerows([(100 * i, value) for i, value in enumerate(returns)])

  def _end(self, source, run, code: int | None = 0):
    self.manifest.codes[run.path] = code
    source.end(run)
    self.manifest.save()

  def _study(self):
    path = str(self.directory / manifest_lib.STUDY_FILE)
    backend = journal.JournalFileBackend(path)
    storage = optuna.storages.JournalStorage(backend)
    return optuna.load_study(study_name=study.NAME, storage=storage)

  def _found(self):
    return self._study().trials

  def test_names_the_best_trial_and_resumes(self, make):
    tried = []
    for num_trials in (3, 8):  # Reopened in between.
      source = make(num_trials, seeds=('0',))
      while run := source.next():
        assert run.group == f'trial_{len(tried)}'
        chosen = self.manifest.groups[run.group]
        tried.append(chosen)
        self._evaluate(run, _worth(chosen))
        self._end(source, run)
    assert len(tried) == 8
    best = max(tried, key=_worth)
    assert source.conclude() == [
      f'Best: trial_{tried.index(best)}, last return {_worth(best):.4g}: '
      + ' '.join(f'--{name}={text}' for name, text in best.items())
    ]
    assert len({tuple(one.items()) for one in tried}) == len(tried)
    for one in tried:
      assert 1e-5 <= float(one['config.lr']) <= 1
      assert one['config.n'] in ('1', '2', '3', '4', '5')

  def test_choices_follow_from_the_seed(self, tmp_path):
    tried = {}
    for name, seed in (('a', 3), ('b', 3), ('c', 4)):
      (tmp_path / name).mkdir()
      source, _ = _make(tmp_path / name, 3, ('0',), seed=seed)
      tried[name] = [source.next() for _ in range(3)]
    assert tried['a'] == tried['b'] != tried['c']

  def test_a_trial_is_worth_the_mean_over_its_seeds(self, make):
    source = make()
    runs = [source.next() for _ in range(4)]
    assert source.next() is None
    assert [run.path for run in runs] == [
      'trial_0/seed_0', 'trial_0/seed_1', 'trial_1/seed_0', 'trial_1/seed_1'
    ]  # fmt: skip
    for run, returns in zip(runs, ([9, 1], [0, 2], [3, 5], [8, 7])):
      self._evaluate(run, *returns)
      self._end(source, run)
    assert [found.value for found in self._found()] == [1.5, 6]
    chosen = self._found()[0].params
    assert set(runs[0].arguments) == {
      '--agent=dqn', '--seed=0', *(f'--{n}={v}' for n, v in chosen.items())
    }  # fmt: skip

  def test_a_failed_run_or_one_without_evaluation_fails_its_trial(self, make):
    source = make(num_trials=3)
    runs = [source.next() for _ in range(6)]
    for run, code in zip(runs, (1, 0, 0, 0, 0, 0)):
      self._evaluate(run, *([] if run == runs[-1] else [1]))
      self._end(source, run, code)
    states = [found.state.name for found in self._found()]
    assert states == ['FAIL', 'COMPLETE', 'FAIL']

  def test_interrupted_trials_resume(self, make):
    source = make(num_trials=3)
    runs = [source.next() for _ in range(3)]
    self._evaluate(runs[0], 1)
    self._end(source, runs[0])
    for run in runs[1:]:
      self._end(source, run, None)
    assert source.conclude() == ['No trial has a value yet.']
    again = make(num_trials=3)
    left = [again.next() for _ in range(3)]
    assert [run.path for run in left] == [
      'trial_0/seed_1', 'trial_1/seed_0', 'trial_1/seed_1'
    ]  # fmt: skip
    assert left[0].arguments == runs[1].arguments
    for run in left:
      self._evaluate(run, 3)
      self._end(again, run)
    assert [found.value for found in self._found()[:2]] == [2.0, 3.0]

  def test_a_finished_trial_without_value_is_reported(self, make):
    source = make(num_trials=1)
    for _ in range(2):
      run = source.next()
      self._evaluate(run, 5)
      self.manifest.codes[run.path] = 0
      self.manifest.save()  # Then it was killed.
    assert make(num_trials=1).next() is None
    assert self._found()[0].value == 5

  def test_a_trial_of_other_choices_is_dropped(self, make):
    # A malicious journal may choose anything.
    make(num_trials=1, kinds=('a:B', 'c:D')).next()
    make(num_trials=1)
    assert self._found()[0].state.name == 'FAIL'

  def test_a_trial_that_was_killed_while_it_chose_is_dropped(self, make):
    make(num_trials=1, seeds=('0',))
    self._study().ask().suggest_int('config.n', 1, 5)
    again = make(num_trials=1, seeds=('0',))
    assert again.next().group == 'trial_1'
    assert again.next() is None

  def test_a_missing_journal_is_reported(self, make):
    make().next()
    self.manifest.save()
    journal = self.directory / manifest_lib.STUDY_FILE
    journal.write_text('no journal\n')
    with pytest.raises(SettingError, match=r'must have a readable study\.log'):
      make()
    journal.unlink()
    with pytest.raises(SettingError, match=r'must have the file study\.log'):
      make()
