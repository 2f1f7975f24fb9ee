"""Trains agents of continuous actions; run by `make test-learning`."""

import pytest

from support.agents import trainings

pytestmark = pytest.mark.learning

# Atoms 10 apart, as for D4PG.
_DMPO = (
  '--config.distribution=categorical', '--config.vmin=-1000',
  '--config.vmax=0', '--config.num_atoms=101',
)  # fmt: skip


def _swing_up(directory, agent, *settings, seed, deadline_seconds=3_600):
  """Trains on cartpole/swingup; returns the mean return, of 1,000."""
  return trainings.train(
    directory, agent, 'dm_control:cartpole/swingup', *settings,
    steps=150_000, seed=seed,
    episodes=10, deadline_seconds=deadline_seconds,
  )  # fmt: skip


class TestD4PG:
  @trainings.over_seeds
  def test_pendulum(self, tmp_path, seed):
    # A random policy gets about −1,200, and about −150 is the best mean: most
    # starts cost something whatever is done. Atoms further apart than 10 leave
    # some seeds near −200.
    mean_return = trainings.train(
      tmp_path, 'd4pg', 'gym:Pendulum-v1',
      '--config.vmin=-1000', '--config.vmax=0', '--config.num_atoms=101',
      '--config.n_step=3', '--config.samples_per_insert=128',
      steps=20_000, seed=seed,
    )  # fmt: skip
    assert mean_return >= -200

  @trainings.over_seeds
  def test_cartpole_swingup(self, tmp_path, seed):
    # An update every four steps, as by default.
    mean_return = _swing_up(tmp_path, 'd4pg', seed=seed)
    assert mean_return >= 700


class TestMPO:
  @trainings.over_seeds
  @pytest.mark.parametrize('flags', [(), _DMPO])
  def test_pendulum(self, tmp_path, flags, seed):
    mean_return = trainings.train(
      tmp_path, 'mpo', 'gym:Pendulum-v1', *flags,
      steps=20_000, seed=seed,
    )  # fmt: skip
    assert mean_return >= -200

  @trainings.over_seeds
  def test_catch(self, tmp_path, seed):
    mean_return = trainings.train(
      tmp_path, 'mpo', 'catch',
      steps=9_000, seed=seed,
    )  # fmt: skip
    assert mean_return >= 0.9

  @trainings.over_seeds
  def test_cartpole_swingup(self, tmp_path, seed):
    # An update every four steps; with the settings for short runs, which are
    # the defaults, returns fall again now and then.
    mean_return = _swing_up(
      tmp_path, 'mpo', '--preset=dm_control',
      '--config.distribution=none', '--config.samples_per_insert=64',
      seed=seed, deadline_seconds=7_200,
    )  # fmt: skip
    assert mean_return >= 800


class TestTD3:
  @trainings.over_seeds
  @pytest.mark.parametrize('flags', [(), ('--preset=ddpg',)])
  def test_pendulum(self, tmp_path, flags, seed):
    mean_return = trainings.train(
      tmp_path, 'td3', 'gym:Pendulum-v1', *flags,
      steps=20_000, seed=seed,
    )  # fmt: skip
    assert mean_return >= -200

  @trainings.over_seeds
  def test_cartpole_swingup(self, tmp_path, seed):
    mean_return = _swing_up(tmp_path, 'td3', seed=seed, deadline_seconds=7_200)
    assert mean_return >= 800


class TestQTOpt:
  @trainings.over_seeds
  @pytest.mark.parametrize('flags', [(), ('--config.train_buffer_size=10000',)])
  def test_pendulum(self, tmp_path, flags, seed):
    mean_return = trainings.train(
      tmp_path, 'qtopt', 'gym:Pendulum-v1', *flags,
      steps=10_000, seed=seed, deadline_seconds=3_600,
    )  # fmt: skip
    assert mean_return >= -200

  @trainings.over_seeds
  def test_reach(self, tmp_path, seed):
    # The share of successes; a random policy has 0.2.
    mean_return = trainings.train(
      tmp_path, 'qtopt', 'reach', '--preset=success',
      '--config.batch_size=64', '--config.samples_per_insert=64',
      steps=20_000, seed=seed, deadline_seconds=7_200,
    )  # fmt: skip
    assert mean_return >= 0.75


class TestSAC:
  @trainings.over_seeds
  @pytest.mark.parametrize(
    ('preset', 'steps', 'changes'),
    [
      ('crossq', 10_000, ()),
      ('droq', 4_000, ()),
      ('redq', 4_000, ()),
      # Smaller than the paper's, of which a learner step takes six times as
      # long.
      (
        'tqc',
        10_000,
        ('--config.num_critics=2', '--config.critic_hidden_sizes=256,256'),
      ),
    ],
  )
  def test_descendants(self, tmp_path, preset, steps, changes, seed):
    mean_return = trainings.train(
      tmp_path, 'sac', 'gym:Pendulum-v1', f'--preset={preset}', *changes,
      steps=steps, seed=seed, deadline_seconds=3_600,
    )  # fmt: skip
    assert mean_return >= -200

  @trainings.over_seeds
  def test_pendulum(self, tmp_path, seed):
    # After half of it a seed may be in a dip, see docs/agents/sac.md.
    mean_return = trainings.train(
      tmp_path, 'sac', 'gym:Pendulum-v1',
      steps=20_000, seed=seed,
    )  # fmt: skip
    assert mean_return >= -200

  @trainings.over_seeds
  def test_cartpole_swingup(self, tmp_path, seed):
    # An update every other step; with one every four steps, seed 3 stays below.
    mean_return = _swing_up(tmp_path, 'sac', '--preset=dm_control', seed=seed)
    assert mean_return >= 700


class TestVMPO:
  @trainings.over_seeds
  def test_pendulum(self, tmp_path, seed):
    # Large batches and many gradient steps of each, for the few learner steps:
    # see docs/agents/vmpo.md, which has eight seeds.
    mean_return = trainings.train(
      tmp_path, 'vmpo', 'gym:Pendulum-v1',
      '--config.unroll_length=256', '--config.num_epochs=20',
      '--config.discount=0.9', '--config.num_minibatches=16',
      '--config.epsilon_mean=0.1', '--config.epsilon_stddev=1e-4',
      steps=200_000, seed=seed, environments=8,
    )  # fmt: skip
    assert mean_return >= -225
