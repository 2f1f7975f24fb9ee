"""Trains agents to a stated return; run by `make test-learning`."""

import dataclasses
import statistics

import pytest

from repertory import launch
from repertory.agents import impala
from support.agents import trainings
from support.environments import follow

pytestmark = pytest.mark.learning

_SINGLE = trainings.TOPOLOGIES[:1]
_ANAKIN = (('anakin',),)
_CENTRAL = (
  *trainings.TOPOLOGIES,
  ('central', 'local_mt'),
  ('central', 'local_mp'),
)
_SEBULBA = (*_CENTRAL, ('sebulba',))


@dataclasses.dataclass(frozen=True)
class _Case:
  """Training that must reach a mean return.

  Attributes:
    settings: Flags, or settings of the agent without `--config.`, as a text.
    least: Minimum of the last evaluation.
    most: Its maximum.
    environments: Number of environments; None for the agent's default.
  """

  agent: str
  environment: str
  settings: str
  steps: int
  least: float
  most: float = float('inf')
  environments: int | None = 1
  topologies: tuple[tuple[str, ...], ...] = _SINGLE
  episodes: int = 100
  deadline_seconds: float = 900
  seeds: tuple[int, ...] = trainings.SEEDS


def _swing_up(agent, settings, least=700):
  """Trains on cartpole/swingup, whose largest return is 1,000.

  With one seed, since a run takes 20 to 40 minutes; docs/results.md has more.
  """
  return _Case(
    agent, 'dm_control:cartpole/swingup', settings, 150_000, least,
    episodes=10, deadline_seconds=7_200, seeds=(1,),
  )  # fmt: skip


_CHEETAH = 'gym:HalfCheetah-v5'
_CARTPOLE, _PENDULUM = 'gym:CartPole-v1', 'gym:Pendulum-v1'
# Of IMPALA on small problems: more and earlier learner steps.
_SMALL_IMPALA = 'batch_size=4 learning_rate=2e-3'
# An unroll must be able to hold a whole episode of 11 steps.
_MEMORY_IMPALA = f'{_SMALL_IMPALA} unroll_length=40'
# Those of rl-baselines3-zoo, hyperparams/ppo.yml; 200,000 steps are 781 learner
# steps. With the defaults, the policy that draws its actions balances the pole,
# but now and then that of the most probable ones drifts away.
_CARTPOLE_PPO = (
  'unroll_length=32 num_epochs=20 num_minibatches=1 discount=0.98 lambda_=0.8 '
  'entropy_cost=0 anneal_learner_steps=780'
)
_LSTM = 'core=lstm core_size=64'
# Returns of Pendulum down to −1,000, with atoms 10 apart.
_ATOMS = 'vmin=-1000 vmax=0 num_atoms=101'
_DIALS, _KEY = 'tensor:lock', 'tensor:lock?key=true'

_CASES = {
  # 9,000 steps are 1,000 episodes. The return is that of the greedy policy,
  # over 100 episodes: with two actors the ε ladder makes one of them random.
  'dqn_catch': _Case('dqn', 'catch', '', 9_000, 0.9),
  'dqn_catch_in_nodes': _Case(
    'dqn', 'catch', '', 9_000, 0.9, environments=2,
    topologies=trainings.TOPOLOGIES[1:],
  ),
  **{
    f'dqn_catch_{name}': _Case('dqn', 'catch', settings, 9_000, 0.9)
    for name, settings in (
      ('c51', 'distribution=categorical'),
      ('qr', 'distribution=quantile'),
      ('iqn', 'distribution=implicit_quantile'),
      ('noisy', 'noisy=True epsilon_base=0 epsilon_anneal_steps=0'),
      ('munchausen', 'munchausen=True'),
      ('rainbow', '--preset=rainbow_small'),
    )
  },
  'dqn_catch_compiled': _Case(
    'dqn', 'tensor:catch', '', 9_000, 0.9, environments=2, topologies=_ANAKIN
  ),
  # 3,000 episodes. Most runs catch each ball after 1,500, a few after 2,000.
  'impala_catch': _Case(
    'impala', 'catch', _SMALL_IMPALA, 27_000, 0.9, environments=4,
    topologies=_SEBULBA,
  ),
  'impala_cartpole': _Case(
    'impala', _CARTPOLE, '', 300_000, 450, environments=8, topologies=_CENTRAL
  ),
  'impala_cartpole_compiled': _Case(
    'impala', 'tensor:cartpole', 'batch_size=64 hidden_sizes=64,64', 2_000_000,
    475, environments=64, topologies=_ANAKIN,
  ),
  'impala_memory': _Case(
    'impala', 'memory_chain:10', f'{_MEMORY_IMPALA} core=lstm', 150_000, 0.95,
    environments=8, topologies=_CENTRAL,
  ),
  'impala_memory_compiled': _Case(
    'impala', 'tensor:memory_chain',
    'core=lstm core_size=32 hidden_sizes=32 batch_size=16 unroll_length=40 '
    'learning_rate=2e-3', 400_000, 0.95, environments=16, topologies=_ANAKIN,
  ),
  # Half Cheetah with the normalizers of the preset, and without.
  'ppo_half_cheetah': _Case(
    'ppo', _CHEETAH, '--preset=mujoco', 200_000, 2_500, environments=None,
    episodes=5,
  ),
  'ppo_half_cheetah_raw': _Case(
    'ppo', _CHEETAH, '--preset=mujoco normalize_observations=False '
    'normalize_rewards=False', 200_000, 0, 1_800, environments=None, episodes=5,
  ),
  # Ten minutes each; docs/normalization.md has more.
  'sac_half_cheetah': _Case(
    'sac', _CHEETAH, 'normalize_observations=True normalize_rewards=True',
    50_000, 2_500, episodes=5, deadline_seconds=3_600, seeds=(1,),
  ),
  # The cue is three unrolls before its query: an LSTM stays at chance, GTrXL
  # finds the cue in its window.
  **{
    f'impala_far_memory_{core[:5]}': _Case(
      'impala', 'tensor:memory_chain:60',
      f'core={core} core_size=32 hidden_sizes=32 batch_size=16 '
      'unroll_length=20 entropy_cost=0.03', 600_000, least, most,
      environments=16, topologies=_ANAKIN,
    )
    for core, least, most in (
      ('gtrxl core_layers=1', 0.95, 1), ('lstm', -0.4, 0.4)
    )
  },
  # Chance: ± 4 deviations of a mean over 100 episodes of ± 1.
  'impala_without_memory': _Case(
    'impala', 'memory_chain:10', _MEMORY_IMPALA, 150_000, -0.4, 0.4,
    environments=8,
  ),
  # gymnax's README has 28 for its PPO, see docs/results.md.
  **{
    f'impala_breakout_{topologies[0][0]}': _Case(
      'impala', f'{prefix}minatar{mark}breakout', '--preset=minatar', 1_500_000,
      28, environments=64, topologies=topologies, deadline_seconds=3_600,
    )
    for prefix, mark, topologies in (
      ('', ':', _SINGLE), ('tensor:', '/', _ANAKIN)
    )
  },
  # Seeds 1, 2 and 3 had 11 to 13, and at first it is below 1. The run is 122
  # learner steps, a twentieth of what the preset is for.
  'pqn_breakout_compiled': _Case(
    'pqn', 'tensor:minatar/breakout',
    '--preset=minatar anneal_learner_steps=122 epsilon_anneal_steps=100000',
    500_000, 8, environments=128, topologies=_ANAKIN,
  ),
  # Its authors' scale of rewards; 150,000 steps are 292 learner steps.
  'pqn_cartpole': _Case(
    'pqn', _CARTPOLE, 'reward_scale=0.1 anneal_learner_steps=292', 150_000, 475,
    environments=16,
  ),
  'ppo_cartpole': _Case(
    'ppo', _CARTPOLE, _CARTPOLE_PPO, 200_000, 475, environments=8,
    topologies=_CENTRAL,
  ),
  'ppo_cartpole_compiled': _Case(
    'ppo', 'tensor:cartpole', _CARTPOLE_PPO, 200_000, 475, environments=8,
    topologies=_ANAKIN,
  ),
  # Settings of rl-baselines3-zoo, whose benchmark.md has −172 ± 104 after as
  # many steps, with a kind of exploration that is not here: the mean, less half
  # a deviation.
  'ppo_memory': _Case(
    'ppo', 'memory_chain:10', _LSTM, 50_000, 0.95, environments=8
  ),
  # Previous actions would do for a memory: the agent could act out the cue.
  'r2d2_memory': _Case(
    'r2d2', 'memory_chain:10', 'previous_action_and_reward=False', 30_000, 0.95,
    environments=4, topologies=_CENTRAL,
  ),
  'r2d2_memory_compiled': _Case(
    'r2d2', 'tensor:memory_chain', '', 60_000, 0.9, environments=4,
    topologies=_ANAKIN,
  ),
  # 58 learner steps. Of 39, which are 20,000 steps, two of 18 runs had not
  # learned enough, each with actors that were a learner step behind.
  'vmpo_catch': _Case(
    'vmpo', 'catch', '', 30_000, 0.9, environments=8, topologies=_SEBULBA
  ),
  'vmpo_cartpole': _Case('vmpo', _CARTPOLE, '', 200_000, 475, environments=8),
  'vmpo_memory': _Case(
    'vmpo', 'memory_chain:10', _LSTM, 50_000, 0.95, environments=8
  ),
  # Large batches and many gradient steps of each, for the few learner steps:
  # see docs/agents/vmpo.md, which has eight seeds.
  'vmpo_pendulum': _Case(
    'vmpo', _PENDULUM, 'unroll_length=256 num_epochs=20 discount=0.9 '
    'num_minibatches=16 epsilon_mean=0.1 epsilon_stddev=1e-4', 200_000, -225,
    environments=8,
  ),
  # On Pendulum, a random policy gets about −1,200, and about −150 is the best
  # mean: most starts cost something whatever is done. Atoms further apart than
  # 10 leave some seeds near −200.
  'd4pg_pendulum': _Case(
    'd4pg', _PENDULUM, f'{_ATOMS} n_step=3 samples_per_insert=128', 20_000, -200
  ),
  'd4pg_pendulum_compiled': _Case(
    'd4pg', 'tensor:pendulum', f'{_ATOMS} n_step=3 samples_per_insert=128',
    20_000, -250, topologies=_ANAKIN,
  ),
  # An update every four steps, as by default.
  'd4pg_swingup': _swing_up('d4pg', ''),
  'mpo_pendulum': _Case('mpo', _PENDULUM, '', 20_000, -200),
  'dmpo_pendulum': _Case(
    'mpo', _PENDULUM, f'distribution=categorical {_ATOMS}', 20_000, -200
  ),
  'mpo_catch': _Case('mpo', 'catch', '', 9_000, 0.9),
  # An update every four steps; with the settings for short runs, which are the
  # defaults, returns fall again now and then.
  'mpo_swingup': _swing_up(
    'mpo', '--preset=dm_control distribution=none samples_per_insert=64'
  ),
  'td3_pendulum': _Case('td3', _PENDULUM, '', 20_000, -200),
  'ddpg_pendulum': _Case('td3', _PENDULUM, '--preset=ddpg', 20_000, -200),
  # It had 743 after 807. With the larger default some runs' policies saturate,
  # at 75, see docs/results.md.
  'td3_swingup': _swing_up('td3', 'learning_rate=3e-4', 600),
  'qtopt_pendulum': _Case(
    'qtopt', _PENDULUM, '', 10_000, -200, deadline_seconds=3_600
  ),
  'qtopt_train_buffer': _Case(
    'qtopt', _PENDULUM, 'train_buffer_size=10000', 10_000, -200,
    deadline_seconds=3_600, topologies=[('distributed', 'local_mt')],
  ),
  # The share of successes; a random policy has 0.2.
  'qtopt_reach': _Case(
    'qtopt', 'reach', '--preset=success batch_size=64 samples_per_insert=64',
    20_000, 0.75, deadline_seconds=7_200,
  ),
  **{
    f'{preset}_pendulum': _Case(
      'sac', _PENDULUM, f'--preset={preset} {settings}', steps, -200,
      deadline_seconds=3_600,
    )
    for preset, steps, settings in (
      ('crossq', 10_000, ''),
      ('droq', 4_000, ''),
      ('redq', 4_000, ''),
      # Smaller than the paper's, of which a learner step takes six times as
      # long.
      ('tqc', 10_000, 'num_critics=2 critic_hidden_sizes=256,256'),
    )
  },
  # After half of it a seed may be in a dip, see docs/agents/sac.md.
  'sac_pendulum': _Case('sac', _PENDULUM, '', 20_000, -200),
  'sac_pendulum_compiled': _Case(
    'sac', 'tensor:pendulum', '', 10_000, -250, topologies=_ANAKIN
  ),
  # Independent noise does not find the goal, and the best return is 0 then.
  **{
    f'sac_mountain_car{suffix}': _Case(
      'sac', 'gym:MountainCarContinuous-v0',
      f'--preset=auto noise_correlation={correlation}', 15_000, *limits,
    )
    for suffix, correlation, limits in (
      ('', 0.95, (90,)), ('_independent', 0, (-100, 10)),
    )
  },
  # An update every other step; with one every four steps, seed 3 stays below.
  'sac_swingup': _swing_up('sac', '--preset=dm_control'),
  # Both dials right in all of 8 steps. Who leaves out one has 8/3 at most.
  **{
    f'{agent}_dials': _Case(
      agent, _DIALS, settings, steps, 7.9, environments=None,
      topologies=_ANAKIN,
    )
    for agent, steps, settings in (
      ('ppo', 30_000, ''), ('impala', 60_000, ''),
      ('dqn', 20_000, 'discount=0.5'),
    )
  },
  # Without masks, three times the steps are too few.
  **{
    f'{agent}_gates{suffix}': _Case(
      agent, f'tensor:gates?masked={masked}', settings, number * steps, *limits,
      environments=None, episodes=20,
    )
    for agent, steps, settings in (
      ('dqn', 1_500, ''), ('ppo', 5_000, ''),
      ('r2d2', 6_000, 'samples_per_insert=4'),
    )
    for suffix, masked, number, limits in (
      ('', 'true', 1, (0.95,)), ('_unmasked', 'false', 3, (0, 0.5)),
    )
  },
  # An integer of each dial and a float: without the key the return is at most
  # 4.
  'ppo_key': _Case('ppo', _KEY, '', 50_000, 6.5, environments=None),
  # Gaussians want a smaller learning rate that falls, see docs/agents.
  'impala_key': _Case(
    'impala', _KEY, 'learning_rate=5e-4 anneal_learner_steps=2800', 200_000,
    6.5, environments=None, topologies=_ANAKIN,
  ),
}  # fmt: skip


@pytest.mark.parametrize(
  ('seed', 'name', 'topology'),
  [
    (seed, name, one)
    for seed in trainings.SEEDS
    for name, case in _CASES.items()
    for one in case.topologies
    if seed in case.seeds
  ],
  ids=lambda one: '_'.join(one) if isinstance(one, tuple) else None,
)
def test_reaches_a_return(tmp_path, seed, name, topology):
  case = _CASES[name]
  flags = [
    one if one.startswith('--') else f'--config.{one}'
    for one in case.settings.split()
  ]
  mean_return = trainings.train(
    tmp_path, case.agent, case.environment, *flags,
    steps=case.steps, topology=topology, seed=seed,
    environments=case.environments, episodes=case.episodes,
    deadline_seconds=case.deadline_seconds,
  )  # fmt: skip
  assert case.least <= mean_return <= case.most


def _train_with_all_seeds(tmp_path, *arguments, **settings):
  """Trains an agent with each seed; returns the last evaluations."""
  returns = []
  for seed in trainings.SEEDS:
    directory = tmp_path / str(seed)
    directory.mkdir()
    returns.append(
      trainings.train(directory, *arguments, **settings, seed=seed)
    )
  return returns


def test_ppo_pendulum(tmp_path):
  # With the settings of rl-baselines3-zoo, whose return is −172 ± 104. One run
  # in seven was worse at its end, −427 after −189; so the median is tested.
  settings = (
    'unroll_length=1024', 'batch_size=4', 'num_epochs=10', 'num_minibatches=64',
    'discount=0.9', 'entropy_cost=0',
  )  # fmt: skip
  returns = _train_with_all_seeds(
    tmp_path, 'ppo', _PENDULUM, *(f'--config.{one}' for one in settings),
    steps=100_000, environments=4,
  )  # fmt: skip
  assert statistics.median(returns) >= -172 - 104 / 2


class TestDQN:
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
    last = _train_with_all_seeds(
      tmp_path, 'dqn', _CARTPOLE,
      steps=60_000, topology=topology, episodes=50, evaluations=12,
    )  # fmt: skip
    for seed in trainings.SEEDS:
      assert max(trainings.evaluations_of(tmp_path / str(seed))) >= 475
    assert statistics.median(last) >= 400

  @trainings.over_seeds
  def test_compiled_cartpole(self, tmp_path, seed):
    # As much as in `single`. Of nine runs two had a mean of their last five
    # evaluations below 400, and none a median below 440.
    trainings.train(
      tmp_path, 'dqn', 'tensor:cartpole',
      steps=60_000, topology=_ANAKIN[0], seed=seed, evaluations=10,
    )  # fmt: skip
    returns = trainings.evaluations_of(tmp_path)
    assert max(returns) >= 475
    assert statistics.median(returns[-5:]) >= 420


class TestIMPALA:
  @trainings.over_seeds
  def test_keeps_a_solved_cartpole(self, tmp_path, seed):
    # It is solved within 400,000 steps. With Adam in place of AMSGrad it is
    # lost again within 1,000,000, see docs/results.md.
    trainings.train(
      tmp_path, 'impala', _CARTPOLE,
      steps=1_500_000, seed=seed, environments=32,
      episodes=10, evaluations=15,
    )  # fmt: skip
    assert min(trainings.evaluations_of(tmp_path)[5:]) >= 475

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
