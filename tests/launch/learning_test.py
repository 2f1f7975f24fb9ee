"""Trains agents to a stated return; run by `make test-learning`."""

import statistics

import pytest

from repertory import launch
from repertory.agents import impala
from support.agents import trainings
from support.environments import follow

pytestmark = pytest.mark.learning

_WITH_CENTRAL = (
  *trainings.TOPOLOGIES,
  ('central', 'local_mt'),
  ('central', 'local_mp'),
)

_WITH_SEBULBA = (*_WITH_CENTRAL, ('sebulba',))


# Of DQN, by the name of the test: what it may have beside the defaults.
_BY_NOISE = (
  '--config.noisy=True', '--config.epsilon_base=0',
  '--config.epsilon_anneal_steps=0',
)  # fmt: skip
_OPTIONS_OF_DQN = {
  'c51': ('--config.distribution=categorical',),
  'qr': ('--config.distribution=quantile',),
  'iqn': ('--config.distribution=implicit_quantile',),
  'noisy': _BY_NOISE,
  'munchausen': ('--config.munchausen=True',),
  'rainbow': ('--preset=rainbow_small',),
}

# Of IMPALA on small problems: more and earlier learner steps.
_SMALL_IMPALA = ('--config.batch_size=4', '--config.learning_rate=2e-3')
# An unroll must be able to hold a whole episode of 11 steps.
_MEMORY_IMPALA = (*_SMALL_IMPALA, '--config.unroll_length=40')

# Those of rl-baselines3-zoo, hyperparams/ppo.yml; 200,000 steps are 781 learner
# steps. With the defaults, the policy that draws its actions balances the pole,
# but now and then that of the most probable ones drifts away.
_CARTPOLE_PPO = (
  '--config.unroll_length=32', '--config.num_epochs=20',
  '--config.num_minibatches=1', '--config.discount=0.98',
  '--config.lambda_=0.8', '--config.entropy_cost=0',
  '--config.anneal_learner_steps=780',
)  # fmt: skip
# As well those of rl-baselines3-zoo.
_PENDULUM_PPO = (
  '--config.unroll_length=1024', '--config.batch_size=4',
  '--config.num_epochs=10', '--config.num_minibatches=64',
  '--config.discount=0.9', '--config.entropy_cost=0',
)  # fmt: skip

_in_all_topologies = pytest.mark.parametrize('topology', trainings.TOPOLOGIES)
_in_all_and_central = pytest.mark.parametrize('topology', _WITH_CENTRAL)


class TestDQN:
  @_in_all_topologies
  @trainings.over_seeds
  def test_catch(self, tmp_path, topology, seed):
    # 9,000 steps are 1,000 episodes. The return is that of the greedy policy,
    # over 100 episodes: with two actors the ε ladder makes one of them random.
    environments = 1 if topology == trainings.TOPOLOGIES[0] else 2
    mean_return = trainings.train(
      tmp_path, 'dqn', 'catch',
      steps=9_000, topology=topology, seed=seed, environments=environments,
    )  # fmt: skip
    assert mean_return >= 0.9

  @pytest.mark.parametrize('option', _OPTIONS_OF_DQN)
  @trainings.over_seeds
  def test_catch_with(self, tmp_path, option, seed):
    mean_return = trainings.train(
      tmp_path, 'dqn', 'catch', *_OPTIONS_OF_DQN[option],
      steps=9_000, seed=seed,
    )  # fmt: skip
    assert mean_return >= 0.9

  def test_catch_return_while_training(self, tmp_path):
    # The mean of the last 100 training episodes out of 1,000, ε = 0.016. One
    # seed has a miss more or less, of which each costs 0.02.
    returns = []
    for seed in trainings.SEEDS:
      experiment = launch.make_experiment(
        'dqn', 'catch', max_steps=9_000, seed=seed,
        directory=str(tmp_path / str(seed)), evaluation_episodes=0,
      )  # fmt: skip
      status = launch.run(experiment, display=False).status
      assert status.num_returns == 100
      assert status.episodes == 1_000
      returns.append(status.mean_return or 0.0)
    assert statistics.fmean(returns) >= 0.9, returns

  @pytest.mark.parametrize('topology', trainings.TOPOLOGIES[:2])
  def test_cartpole(self, tmp_path, topology):
    # Each run solves it, and forgets it for a while now and then: of twenty
    # runs two ended below 400. So the median of three is what must not. In some
    # runs most evaluations are below 475, so each has a dozen of them.
    last = []
    for seed in (1, 2, 3):
      directory = tmp_path / str(seed)
      directory.mkdir()
      last.append(
        trainings.train(
          directory,
          'dqn',
          'gym:CartPole-v1',
          steps=60_000,
          topology=topology,
          seed=seed,
          episodes=50,
          evaluations=12,
        )
      )
      assert max(trainings.evaluations_of(directory)) >= 475
    assert statistics.median(last) >= 400


class TestIMPALA:
  @pytest.mark.parametrize('topology', _WITH_SEBULBA)
  @trainings.over_seeds
  def test_catch(self, tmp_path, topology, seed):
    # 3,000 episodes. Most runs catch each ball after 1,500, a few after 2,000.
    mean_return = trainings.train(
      tmp_path, 'impala', 'catch', *_SMALL_IMPALA,
      steps=27_000, topology=topology, seed=seed, environments=4,
    )  # fmt: skip
    assert mean_return >= 0.9

  @_in_all_and_central
  @trainings.over_seeds
  def test_cartpole(self, tmp_path, topology, seed):
    mean_return = trainings.train(
      tmp_path, 'impala', 'gym:CartPole-v1',
      steps=300_000, topology=topology, seed=seed, environments=8,
    )  # fmt: skip
    assert mean_return >= 450

  @trainings.over_seeds
  def test_keeps_a_solved_cartpole(self, tmp_path, seed):
    # It is solved within 400,000 steps. With Adam in place of AMSGrad it is
    # lost again within 1,000,000, see docs/results.md.
    trainings.train(
      tmp_path, 'impala', 'gym:CartPole-v1',
      steps=1_500_000, seed=seed, environments=32,
      episodes=10, evaluations=15,
    )  # fmt: skip
    assert min(trainings.evaluations_of(tmp_path)[5:]) >= 475

  @_in_all_and_central
  @trainings.over_seeds
  def test_memory(self, tmp_path, topology, seed):
    mean_return = trainings.train(
      tmp_path, 'impala', 'memory_chain:10', *_MEMORY_IMPALA,
      '--config.core=lstm',
      steps=150_000, topology=topology, seed=seed, environments=8,
    )  # fmt: skip
    assert mean_return >= 0.95

  @trainings.over_seeds
  def test_without_memory_it_stays_at_chance(self, tmp_path, seed):
    mean_return = trainings.train(
      tmp_path, 'impala', 'memory_chain:10', *_MEMORY_IMPALA,
      steps=150_000, seed=seed, environments=8,
    )  # fmt: skip
    # ± 4 deviations of a mean over 100 episodes of ± 1.
    assert abs(mean_return) <= 0.4

  @trainings.over_seeds
  def test_minatar_breakout(self, tmp_path, seed):
    # gymnax's README has 28 for its PPO, see docs/results.md.
    mean_return = trainings.train(
      tmp_path, 'impala', 'minatar:breakout', '--preset=minatar',
      steps=1_500_000, seed=seed, environments=64,
      deadline_seconds=3_600,
    )  # fmt: skip
    assert mean_return > 28

  @trainings.over_seeds
  def test_continuous_actions(self, tmp_path, seed):
    # Without annealing it falls again, once its actions hardly vary.
    config = impala.IMPALAConfig(
      batch_size=16, learning_rate=3e-4, discount=0.0, entropy_cost=1e-3,
      anneal_learner_steps=680,
    )  # fmt: skip
    experiment = launch.Experiment(
      impala.IMPALABuilder(config), follow.Follow, max_steps=100_000, seed=seed,
      environments_per_actor=8, directory=str(tmp_path),
      evaluation_episodes=100,
    )  # fmt: skip
    status = launch.run(experiment, display=False).status
    assert (status.evaluation_return or -100) >= -0.5


class TestPPO:
  @_in_all_and_central
  @trainings.over_seeds
  def test_cartpole(self, tmp_path, topology, seed):
    mean_return = trainings.train(
      tmp_path, 'ppo', 'gym:CartPole-v1', *_CARTPOLE_PPO,
      steps=200_000, topology=topology, seed=seed, environments=8,
    )  # fmt: skip
    assert mean_return >= 475

  @trainings.over_seeds
  def test_pendulum(self, tmp_path, seed):
    # rl-baselines3-zoo's benchmark.md has −172 ± 104 after as many steps, with
    # a kind of exploration that is not here: the mean, less half a deviation.
    mean_return = trainings.train(
      tmp_path, 'ppo', 'gym:Pendulum-v1', *_PENDULUM_PPO,
      steps=100_000, seed=seed, environments=4,
    )  # fmt: skip
    assert mean_return >= -172 - 104 / 2

  @trainings.over_seeds
  def test_memory(self, tmp_path, seed):
    mean_return = trainings.train(
      tmp_path, 'ppo', 'memory_chain:10', '--config.core=lstm',
      '--config.core_size=64',
      steps=50_000, seed=seed, environments=8,
    )  # fmt: skip
    assert mean_return >= 0.95


class TestR2D2:
  @_in_all_and_central
  @trainings.over_seeds
  def test_memory(self, tmp_path, topology, seed):
    # Previous actions would do for a memory: the agent could act out the cue.
    mean_return = trainings.train(
      tmp_path, 'r2d2', 'memory_chain:10',
      '--config.previous_action_and_reward=False',
      steps=30_000, topology=topology, seed=seed, environments=4,
    )  # fmt: skip
    assert mean_return >= 0.95


class TestPQN:
  @trainings.over_seeds
  def test_cartpole(self, tmp_path, seed):
    # Its authors' scale of rewards; 150,000 steps are 292 learner steps.
    mean_return = trainings.train(
      tmp_path, 'pqn', 'gym:CartPole-v1',
      '--config.reward_scale=0.1', '--config.anneal_learner_steps=292',
      steps=150_000, seed=seed, environments=16,
    )  # fmt: skip
    assert mean_return >= 475


class TestVMPO:
  @pytest.mark.parametrize('topology', _WITH_SEBULBA)
  @trainings.over_seeds
  def test_catch(self, tmp_path, topology, seed):
    # 58 learner steps. Of 39, which are 20,000 steps, two of 18 runs had not
    # learned enough, each with actors that were a learner step behind.
    mean_return = trainings.train(
      tmp_path, 'vmpo', 'catch',
      steps=30_000, topology=topology, seed=seed, environments=8,
    )  # fmt: skip
    assert mean_return >= 0.9

  @trainings.over_seeds
  def test_cartpole(self, tmp_path, seed):
    mean_return = trainings.train(
      tmp_path, 'vmpo', 'gym:CartPole-v1',
      steps=200_000, seed=seed, environments=8,
    )  # fmt: skip
    assert mean_return >= 475

  @trainings.over_seeds
  def test_memory(self, tmp_path, seed):
    mean_return = trainings.train(
      tmp_path, 'vmpo', 'memory_chain:10', '--config.core=lstm',
      '--config.core_size=64',
      steps=50_000, seed=seed, environments=8,
    )  # fmt: skip
    assert mean_return >= 0.95
