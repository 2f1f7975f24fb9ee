"""Tests of `--preset=auto` on the command line."""

import pytest

from repertory.components.config.settings import SettingError
from repertory.launch.cli import command, factory, sweep_command
from repertory.launch.cli import flags as flag_tables
from repertory.launch.sweeps import manifest as manifest_lib
from repertory.launch.sweeps import plans

_PPO = ('--agent=ppo', '--env=gym:CartPole-v1')
_ACROBOT = ('--agent=ppo', '--env=gym:Acrobot-v1')


def _describe(*arguments):
  values = command.define_flags(flag_tables.TRAIN_FLAGS)
  settings, _ = command.read_arguments('repertory', arguments, values)
  return factory.describe_preset(values, settings)


@pytest.mark.parametrize(
  ('arguments', 'shown'),
  [
    (
      _PPO,
      'Preset: 8 settings for gym:CartPole-v1 and 100,000 steps (source: '
      'rl-zoo3, hyperparams/ppo.yml); --preset=none for the defaults',
    ),
    ((*_PPO, '--config.lambda_=0.9'), ': 7 settings for gym:CartPole-v1 and '),
    # Of a pattern.
    (('--agent=ppo', '--env=minatar:nope'), ' for minatar:* and 1,500,000 '),
    ((*_PPO, '--preset=mujoco'), None),
    ((*_PPO, '--preset=none'), None),
    ((*_PPO, '--topology=offline'), None),
    (('--agent=ppo', '--env=catch'), None),
    # The defaults, so there is nothing to say.
    (('--agent=impala', '--env=gym:CartPole-v1'), None),
    # Beside the number of environments.
    (_ACROBOT, ': 9 settings '),
    ((*_ACROBOT, '--environments_per_actor=2'), ': 8 settings '),
  ],
)
def test_the_line_of_a_run(arguments, shown):
  line = _describe(*arguments)
  assert shown in line if shown else line == ''


def test_a_run_has_the_settings(run_command, tmp_path, monkeypatch):
  monkeypatch.chdir(tmp_path)
  run = ('train', *_PPO, '--evaluation_episodes=0', '--directory=here')
  code, out, _ = run_command(*run, '--steps=256')
  assert code == 0
  assert out.startswith('Preset: 8 settings for gym:CartPole-v1 and ')
  code, out, err = run_command(*run, '--steps=512', '--preset=none')
  assert code == 2
  assert 'Preset' not in out
  assert 'config.unroll_length: 32 in the checkpoint, 128 now' in err


def test_list_of_an_agent(run_command):
  _, out, _ = run_command('agents', 'ppo')
  _, _, entry = out.partition('--preset=auto for gym:CartPole-v1, ')
  assert '\n    unroll_length=32\n' in entry.partition('--preset')[0]
  _, _, entry = out.partition('--preset=auto for atari:Pong, ')
  assert '\n    all of --preset=atari\n' in entry


class TestSweeps:
  def read(self, *arguments):
    return sweep_command.read_settings(arguments)

  def test_settings_of_runs(self):
    tuned = self.read(*_PPO)
    assert (tuned['preset'], tuned['config.num_epochs']) == ('auto', 20)
    plain = self.read(*_PPO, '--preset=none')
    assert (plain['preset'], plain['config.num_epochs']) == (None, 4)
    # As in a sweep that has begun before there were such presets.
    assert self.read('--agent=ppo', '--env=catch')['preset'] is None

  def test_presets_depend_on_the_environment(self, tmp_path):
    manifest = manifest_lib.SweepManifest(str(tmp_path))
    given = {
      'agent': ('ppo',),
      'env': ('gym:CartPole-v1', 'gym:Acrobot-v1', 'catch'),
      'seed': ('0',),
    }

    def add(**more):
      plan = plans.GridPlan({**given, **more}, sweep_command.read_settings)
      plan.open(manifest)
      return len(manifest.codes)

    assert add() == add() == 3
    with pytest.raises(SettingError, match=r'--preset: auto there, None now'):
      add(preset=('none',))
    with pytest.raises(SettingError, match=r'lambda_: .* there, 0.5 now'):
      add(**{'config.lambda_': ('0.5',)})
