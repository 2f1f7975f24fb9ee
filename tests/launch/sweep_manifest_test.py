"""Tests of a sweep's manifest, and of additions to it."""

import json
import os
import types
from typing import Any

import pytest

from repertory.components.config.settings import SettingError
from repertory.launch.sweeps import manifest as manifest_lib
from repertory.launch.sweeps import plans, sweep


def _settings(combination, **others):
  """Returns the settings of a combination as in `train`, with defaults."""
  defaults = {'agent': 'dqn', 'preset': None, 'steps': 100, 'config.lr': 0.1}
  typed = {
    name: float(text) if name.startswith('config.') else int(text)
    for name, text in combination.items()
  }
  return {**defaults, **typed, **others}


def _join(manifest, given, **others):
  """Adds all combinations of values; returns the paths of their runs."""
  given = {'seed': ('0',), **given}
  asked = [(one, _settings(one, **others)) for one in plans.combine(given)]
  axes = [name for name, values in given.items() if len(values) > 1]
  runs = manifest.add_grid(asked, axes)
  return [run.path for run in runs]


@pytest.fixture
def manifest(tmp_path):
  return manifest_lib.SweepManifest(str(tmp_path))


class TestJoin:
  def test_a_new_sweep(self, manifest):
    given = {'seed': ('0', '1'), 'config.lr': ('.1', '.2')}
    paths = ['lr=.1/seed_0', 'lr=.2/seed_0', 'lr=.1/seed_1', 'lr=.2/seed_1']
    assert _join(manifest, given) == paths
    assert manifest.codes == dict.fromkeys(paths)
    assert manifest.fixed == {'agent': 'dqn', 'preset': None, 'steps': 100}
    assert manifest.groups == {
      'lr=.1': {'config.lr': 0.1}, 'lr=.2': {'config.lr': 0.2}
    }  # fmt: skip

  def test_the_same_again_in_other_words(self, manifest):
    first = _join(manifest, {'config.lr': ('.1', '.2')})
    manifest.codes[first[0]] = 0
    again = _join(manifest, {'config.lr': ('0.20', '1e-1')})
    assert again == [first[1], first[0]]
    assert manifest.codes == {first[0]: 0, first[1]: None}

  def test_values_and_seeds_are_added(self, manifest):
    _join(manifest, {'config.lr': ('.1', '.2')})
    paths = _join(manifest, {'config.lr': ('.2', '.3'), 'seed': ('0', '5')})
    assert paths == [
      'lr=.2/seed_0', 'lr=.3/seed_0', 'lr=.2/seed_5', 'lr=.3/seed_5'
    ]  # fmt: skip
    assert list(manifest.codes) == ['lr=.2/seed_0', *paths[1:], 'lr=.1/seed_0']
    assert manifest.groups.keys() == {'lr=.1', 'lr=.2', 'lr=.3'}

  def test_what_was_fixed_may_differ_from_now_on(self, manifest):
    _join(manifest, {'config.lr': ('.1', '.2')}, **{'config.n': 3.0})
    paths = _join(manifest, {'config.lr': ('.1',), 'config.n': ('3', '4')})
    # The existing run keeps its directory.
    assert paths == ['lr=.1/seed_0', 'lr=.1,n=4/seed_0']
    assert manifest.settings('lr=.2')['config.n'] == 3.0
    assert manifest.settings('lr=.1,n=4')['config.n'] == 4.0

  def test_other_fixed_settings_are_refused_with_all_differences(
    self, manifest
  ):
    _join(manifest, {'config.lr': ('.1', '.2')}, **{'config.n': 3.0})
    before = json.dumps(vars(manifest))
    with pytest.raises(SettingError) as caught:
      _join(
        manifest, {'config.lr': ('.3', '.4')}, **{'config.n': 4.0}, agent='ppo'
      )
    assert '--agent: dqn there, ppo now' in str(caught.value)
    assert json.dumps(vars(manifest)) == before
    with pytest.raises(SettingError, match=r'--config.n: 3.0 there, 4.0 now'):
      _join(manifest, {'config.lr': ('.3', '.4')}, **{'config.n': 4.0})

  def test_settings_of_an_agent_follow_from_the_agent(self, manifest):
    def ask(lr):
      asked = [
        ({'seed': '0', 'agent': 'dqn'}, {'agent': 'dqn', 'config.lr': 0.1}),
        ({'seed': '0', 'agent': 'ppo'}, {'agent': 'ppo', 'config.lr': lr}),
      ]
      settings = {'preset': None, 'steps': 100, 'seed': 0}
      asked = [(one, {**own, **settings}) for one, own in asked]
      return manifest.add_grid(asked, ['agent'])

    assert [run.group for run in ask(0.2)] == ['agent=dqn', 'agent=ppo']
    assert [run.group for run in ask(0.2)] == ['agent=dqn', 'agent=ppo']
    with pytest.raises(SettingError, match=r'--config.lr: 0.2 there, 0.3 now'):
      ask(0.3)

  def test_equal_combinations_are_one(self, manifest):
    paths = _join(manifest, {'config.lr': ('.1', '.2', '0.1')})
    assert paths == ['lr=.1/seed_0', 'lr=.2/seed_0']

  def test_all_runs_may_continue_to_more_steps(self, manifest):
    first = _join(manifest, {'config.lr': ('.1', '.2')})
    manifest.codes = dict.fromkeys(first, 0)
    assert _join(manifest, {'config.lr': ('.1', '.2')}, steps=200) == first
    assert manifest.codes == dict.fromkeys(first)
    assert manifest.fixed['steps'] == 200

  def test_those_not_requested_are_unfinished_and_none_has_fewer(
    self, manifest
  ):
    manifest.codes = dict.fromkeys(
      _join(manifest, {'config.lr': ('.1', '.2')}), 0
    )
    _join(manifest, {'config.lr': ('.1',)}, steps=200)
    assert manifest.codes == {'lr=.1/seed_0': None, 'lr=.2/seed_0': None}
    with pytest.raises(SettingError, match='--steps: 200 there, 99 now'):
      _join(manifest, {'config.lr': ('.1', '.2')}, steps=99)

  def test_a_study_is_no_grid_and_keeps_its_settings(self, manifest):
    settings = {'config.lr': '0..1', 'steps': 100}
    for _ in range(2):
      manifest.add_study(settings)
    with pytest.raises(
      SettingError, match=r'--config.lr: 0..1 there, 0..2 now'
    ):
      manifest.add_study({'config.lr': '0..2'})
    with pytest.raises(SettingError, match='must be of a sweep without --stud'):
      _join(manifest, {'config.lr': ('.1', '.2')})
    manifest.is_study = False
    with pytest.raises(SettingError, match='must be of a sweep with --study'):
      manifest.add_study({})


class TestFile:
  def test_is_what_was_saved(self, manifest):
    _join(manifest, {'config.lr': ('.1', '.2')})
    manifest.codes['lr=.1/seed_0'] = -9
    manifest.save()
    assert manifest_lib.load(manifest.directory) == manifest

  def test_a_run_that_was_deleted_is_not_done(self, manifest, tmp_path):
    _join(manifest, {})
    assert not manifest.done()
    manifest.codes['seed_0'] = 0
    assert not manifest.done()
    (tmp_path / 'seed_0').mkdir()
    assert manifest.done() == {'seed_0'}

  def test_a_new_directory_holds_nothing(self, tmp_path):
    (tmp_path / 'notes.txt').write_text('mine')
    for folder in (tmp_path, tmp_path / 'new'):
      assert not manifest_lib.load(str(folder)).codes

  def test_the_directory_of_a_run_is_refused(self, tmp_path):
    os.makedirs(tmp_path / 'checkpoints')
    with pytest.raises(SettingError, match='that of a run, with checkpoints'):
      manifest_lib.load(str(tmp_path))

  @pytest.mark.parametrize('name', ['lr=.1/seed_0', 'sweep.json.new'])
  def test_links_are_not_written_through(self, manifest, tmp_path, name):
    _join(manifest, {'config.lr': ('.1', '.2')})
    manifest.save()
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).symlink_to(tmp_path)
    plan: Any = types.SimpleNamespace(open=lambda manifest: None)
    with (
      pytest.raises(SettingError, match=f'{name} must be .* symbolic link'),
      sweep.opened(manifest.directory, plan, fresh=False),
    ):
      pass
    with sweep.opened(manifest.directory, plan, fresh=True) as found:
      assert not found.codes

  @pytest.mark.parametrize(
    ('contents', 'problem'),
    [
      ('{"version": 1', 'Expecting'),
      ('{"version": 2}', 'its version must be 1, got 2'),
      ('{"version": 1, "x": 3}', "unexpected keyword argument 'x'"),
      ('\xff', "'utf-8' codec can't decode"),
    ],
  )
  def test_what_cannot_be_read_is_refused(self, tmp_path, contents, problem):
    path = tmp_path / manifest_lib.FILE
    path.write_text(contents, encoding='latin-1')
    with pytest.raises(
      SettingError, match=f'cannot be read: .*{problem}.*Rest'
    ):
      manifest_lib.load(str(tmp_path))

  @pytest.mark.parametrize(
    ('wrong', 'message'),
    [
      ({'groups': {'../elsewhere': {'config.lr': 0.1}}}, "'../elsewhere/"),
      ({'groups': {'lr=.1': 3}}, "no attribute 'items'"),
      ({'codes': {'lr=.1/../../seed_0': 0}}, r"got 'lr=.1/\.\."),
      ({'codes': {'lr=.3/seed_0': 0}}, "got 'lr=.3/seed_0'"),
    ],
  )
  def test_invalid_entries_are_refused(self, manifest, wrong, message):
    _join(manifest, {'config.lr': ('.1', '.2')})
    for name, value in wrong.items():
      setattr(manifest, name, value)
    manifest.save()
    with pytest.raises(SettingError, match=f'cannot be read: .*{message}'):
      manifest_lib.load(manifest.directory)
