"""Tests of `agents/dqn/builder.py`, and of its parts together."""

import contextlib
import dataclasses

import dm_env
import numpy as np
import pytest
import tensorflow as tf
from acme import specs

from repertory.agents import dqn
from repertory.agents.dqn import learning
from repertory.agents.interface import builder as builder_lib
from repertory.components import actors, replay, transports
from repertory.components.actors import environment_loop
from repertory.environments.batches import batch
from repertory.environments.games import catch

FLOAT = specs.Array((), np.float32)
SPEC = specs.EnvironmentSpec(
  observations=specs.Array((1,), np.float32),
  actions=specs.DiscreteArray(2, np.int32),
  rewards=FLOAT,
  discounts=FLOAT,
)


def make_builder(**config):
  return dqn.DQNBuilder(dqn.DQNConfig(**config))


def test_static_method_gets_the_spec():
  class Static(dqn.DQNBuilder):
    @staticmethod
    def make_network(spec):
      return spec

  assert Static(dqn.DQNConfig()).make_network(SPEC) == SPEC


@contextlib.contextmanager
def replaying(builder, spec, batch_size, timeout_seconds=20.0):
  """Yields an adder and the learner side of its transport."""
  experience = builder.experience(spec, batch_size)
  with contextlib.ExitStack() as stack:
    server = replay.make_server(experience.tables)
    stack.callback(server.stop)
    connection = replay.Connection(
      f'localhost:{server.port}', timeout_seconds=timeout_seconds
    )
    transport = transports.ReverbTransport(connection, experience, builder)
    end = transport.make_learner_side()
    stack.callback(end.close)
    adder = transport.make_adder(
      batch_size, priority=lambda: 1.0, version=lambda: 0, max_pending_items=0
    )
    stack.callback(adder.close)
    # Otherwise closing the adder would wait for pending items.
    stack.callback(connection.stop.set)
    yield adder, end


def timestep(step_type, reward, discount, observation):
  """A batch of one."""
  return dm_env.TimeStep(
    step_type=np.array([step_type], np.int32),
    reward=np.array([reward], np.float32),
    discount=np.array([discount], np.float32),
    observation=np.array([[observation]], np.float32),
  )


class TestTarget:
  """γ: between rewards by the adder, before bootstrapping by the learner.

  The episode: observations 0, 1, ..., 4; rewards 1, 10, 100, 1000. The target
  network values observation s as (−s, 2 s), the online network as 0, so that
  the error of a transition is the n-step return itself, and its priority too.
  """

  @pytest.mark.parametrize(
    ('n_step', 'discounts', 'expected', 'max_abs_reward'),
    [
      pytest.param(
        1,
        [1, 1, 1, 0],
        [
          1 + 0.5 * 2,  # Bootstrapped with 2 s' for s' = 1.
          10 + 0.5 * 4,
          100 + 0.5 * 6,
          1000,
        ],
        None,
        id='one_step',
      ),
      pytest.param(
        3,
        [1, 1, 1, 0],
        [
          1 + 0.5 * 10 + 0.25 * 100 + 0.125 * 6,
          # The last three reach to the end, where nothing follows.
          10 + 0.5 * 100 + 0.25 * 1000,
          100 + 0.5 * 1000,
          1000,
        ],
        None,
        id='three_steps',
      ),
      pytest.param(
        3,
        # The time limit is not the end: 2 s' for s' = 4 counts.
        [1, 1, 1, 1],
        [
          1 + 0.5 * 10 + 0.25 * 100 + 0.125 * 6,
          10 + 0.5 * 100 + 0.25 * 1000 + 0.125 * 8,
          100 + 0.5 * 1000 + 0.25 * 8,
          1000 + 0.5 * 8,
        ],
        None,
        id='truncated',
      ),
      pytest.param(
        2,
        [0.8, 0.4, 1, 0.2],
        [
          1 + 0.5 * 0.8 * 10 + 0.25 * 0.8 * 0.4 * 4,
          10 + 0.5 * 0.4 * 100 + 0.25 * 0.4 * 1 * 6,
          100 + 0.5 * 1 * 1000 + 0.25 * 1 * 0.2 * 8,
          1000 + 0.5 * 0.2 * 8,
        ],
        None,
        id='discounts_of_the_environment',
      ),
      pytest.param(
        10,
        [1, 1, 1, 1],
        [
          1 + 0.5 * 10 + 0.25 * 100 + 0.125 * 1000 + 0.0625 * 8,
          10 + 0.5 * 100 + 0.25 * 1000 + 0.125 * 8,
          100 + 0.5 * 1000 + 0.25 * 8,
          1000 + 0.5 * 8,
        ],
        None,
        id='longer_than_the_episode',
      ),
      pytest.param(
        2,
        [1, 1, 1, 0],
        [
          1 + 0.5 * 10 + 0.25 * 4,
          10 + 0.5 * 20 + 0.25 * 6,
          20 + 0.5 * 20,
          20,
        ],
        20.0,
        id='clipped_rewards',
      ),
    ],
  )
  def test_is_the_textbooks_return(
    self, n_step, discounts, expected, max_abs_reward
  ):
    builder = make_builder(
      max_abs_reward=max_abs_reward,
      n_step=n_step,
      discount=0.5,
      double=False,
      dueling=False,
      hidden_sizes=(),
      batch_size=4,
      min_replay_size=4,
      max_replay_size=100,
      learning_rate=1e-30,  # The networks stay as they are.
    )
    online, target = builder.make_network(SPEC), builder.make_network(SPEC)
    update = learning.DQNUpdate(online, target, builder.config)
    for network, weights in (
      (online, [[0.0, 0.0]]),
      (target, [[-1.0, 2.0]]),
    ):
      for variable in network.variables:
        variable.assign(
          weights if variable.shape == [1, 2] else tf.zeros_like(variable)
        )
    with replaying(builder, SPEC, batch_size=1) as (adder, end):
      adder.add_first(timestep(dm_env.StepType.FIRST, 0, 1, 0))
      for t in range(4):
        adder.add(
          np.array([1], np.int32),
          timestep(
            dm_env.StepType.LAST if t == 3 else dm_env.StepType.MID,
            10**t,
            discounts[t],
            t + 1,
          ),
        )
      assert adder.num_items == 4
      found = {}
      for _ in range(8):  # As many as the rate limit gives for four items.
        sample = next(end.batches)
        if len(found) == 4:
          break
        priorities = update(sample).priorities.numpy()
        for observation, priority in zip(sample.data.observation, priorities):
          found[int(observation[0])] = float(priority)
    assert sorted(found) == [0, 1, 2, 3]
    np.testing.assert_allclose(
      [found[start] for start in range(4)], expected, rtol=1e-5
    )


class TestRateLimit:
  @pytest.mark.parametrize('num_environments', [1, 2, 7, 64, 1000])
  @pytest.mark.parametrize('n_step', [1, 3, 5, 40])
  @pytest.mark.parametrize(
    'config',
    [
      {},
      {'batch_size': 1, 'min_replay_size': 1},
      {'batch_size': 512, 'samples_per_insert': 0.25},
      {'samples_per_insert': 64.0, 'prioritized': False},
    ],
  )
  def test_tables_can_run(self, num_environments, n_step, config):
    builder = make_builder(n_step=n_step, **config)
    table = builder.experience(SPEC, num_environments).table
    # When all episodes end in the same step, it writes n + 1 items of each: the
    # one held back, and all that are open.
    table.check(
      builder.config.batch_size,
      items_per_insert=num_environments * (n_step + 1),
    )

  def test_one_thread_does_not_block_when_all_episodes_end_at_once(self):
    builder = make_builder(
      n_step=9,
      batch_size=4,
      min_replay_size=8,
      max_replay_size=1000,
      hidden_sizes=(),
      prefetch=0,
    )
    environments = batch.EnvironmentBatch([catch.Catch() for _ in range(8)])
    spec = specs.make_environment_spec(catch.Catch())
    with replaying(builder, spec, 8, timeout_seconds=20) as (adder, end):
      step = environments.reset()
      adder.add_first(step)
      num_updates = 0
      for _ in range(3 * 10):
        action = np.ones(8, np.int32)
        step = environments.step(action)
        adder.add(action, step)
        while end.updates_due(num_updates, adder.num_items):
          next(end.batches)
          num_updates += 1
      assert adder.num_items == 3 * 9 * 8

  def test_is_the_configs(self):
    builder = make_builder(
      samples_per_insert=3.0,
      min_replay_size=20,
      error_buffer=1000.0,
      max_replay_size=77,
    )
    table = builder.experience(SPEC, 4).table
    assert table.max_size == 77
    assert table.rate_limit == replay.RateLimit(
      samples_per_insert=3.0, min_size=20, error_buffer=1000.0
    )

  def test_wrong_limits_are_refused(self):
    table = make_builder(error_buffer=60.0).experience(SPEC, 1).table
    with pytest.raises(ValueError, match='error_buffer of table'):
      table.check(64, 1)
    with pytest.raises(ValueError, match='error_buffer must be at least'):
      make_builder(error_buffer=-1.0).experience(SPEC, 1)


class TestSettings:
  """Effects of settings on parts other than the update."""

  def tables(self, **config):
    return make_builder(**config).experience(SPEC, 2).table

  @pytest.mark.parametrize(
    'config',
    [
      {'max_replay_size': 1000},
      {'min_replay_size': 7},
      {'samples_per_insert': 2.0},
      {'error_buffer': 5000.0},
      {'batch_size': 500},  # In the error buffer.
      {'n_step': 50},
    ],
  )
  def test_changes_the_table(self, config):
    usual, changed = self.tables(), self.tables(**config)
    assert (usual.max_size, usual.rate_limit) != (
      changed.max_size,
      changed.rate_limit,
    )

  def test_sampler(self):
    assert self.tables(prioritized=False).sampler == 'uniform'
    for exponent in (0.3, 0.6):
      table = self.tables(priority_exponent=exponent)
      assert table.sampler == 'prioritized'
      assert table.priority_exponent == exponent

  @pytest.mark.parametrize(
    ('config', 'expected'),
    [
      ({}, [0.4, 0.4**8]),
      ({'epsilon_base': 0.9}, [0.9, 0.9**8]),
      ({'epsilon_exponent': 1.0}, [0.4, 0.4**2]),
    ],
  )
  def test_exploration(self, config, expected):
    builder = make_builder(**config)
    policy = builder.make_policy(
      builder.make_network(SPEC),
      builder_lib.Acting(SPEC, 2, seed=0),
    )
    np.testing.assert_allclose(
      policy.describe([0, 1])['epsilons'], expected, rtol=1e-9
    )

  @pytest.mark.parametrize('epsilon', [0.0, 0.25])
  def test_evaluation(self, epsilon):
    builder = make_builder(evaluation_epsilon=epsilon)
    policy = builder.make_policy(
      builder.make_network(SPEC),
      builder_lib.Acting(SPEC, 3, seed=0, evaluation=True),
    )
    assert policy.describe([0, 1, 2])['epsilons'] == [epsilon] * 3

  @pytest.mark.parametrize(
    ('anneal_steps', 'steps_done', 'expected', 'evaluation'),
    [
      # All values are 0, so that a greedy action is 0: half of the random ones
      # are 1. The steps to anneal in are those of 1,000 environments together.
      (10**9, 0, 500, False),
      (10**9, 5 * 10**5, 250, False),
      (10_000, 10, 0, False),
      (0, 0, 0, False),
      (10**9, 0, 0, True),
    ],
  )
  def test_annealing(self, anneal_steps, steps_done, expected, evaluation):
    # The end of the ladder: ε = 1e-6^8.
    builder = make_builder(epsilon_anneal_steps=anneal_steps, epsilon_base=1e-6)
    network = builder.make_network(SPEC)
    policy = builder.make_policy(
      network,
      builder_lib.Acting(
        SPEC, 1000, seed=0, steps_done=steps_done, evaluation=evaluation
      ),
    )
    actions = policy.step(
      tf.zeros([1000, 1]), policy.initial_state(range(1000))
    ).action
    # Five deviations √(1000 · ½ · ½).
    assert np.sum(actions) == pytest.approx(expected, abs=80 if expected else 0)

  def test_actions_are_of_the_specs_dtype(self):
    for dtype in (np.int64, np.uint8):
      spec = SPEC._replace(actions=specs.DiscreteArray(2, dtype))
      builder = make_builder()
      policy = builder.make_policy(
        builder.make_network(spec),
        builder_lib.Acting(spec, 1, seed=0),
      )
      output = policy.step(tf.zeros([1, 1]), policy.initial_state([0]))
      assert output.action.dtype.as_numpy_dtype == dtype

  def test_priority_updater(self):
    connection = replay.Connection('localhost:1')

    def make(**config):
      builder = make_builder(**config)
      experience = builder.experience(SPEC, 1)
      return builder.make_priority_updater(experience, connection)

    assert make(prioritized=False) is None
    updates = []

    class Client:
      def mutate_priorities(self, table, updates_by_key=None, **kwargs):
        updates.append((table, kwargs['updates']))

    connection.__dict__['client'] = Client()
    updater = make(min_priority=0.25)
    updater.update(np.array([3, 4], np.uint64), np.array([0.1, 0.5]))
    updater.close()
    assert updates == [('replay', {3: 0.25, 4: 0.5})]

  def test_config_has_a_default(self):
    assert dqn.DQNBuilder().config == dqn.DQNConfig()

  def test_every_setting_is_looked_at(self):
    """A new setting must have a test of its effect."""
    here = {'max_replay_size', 'min_replay_size', 'samples_per_insert'}
    here |= {'error_buffer', 'batch_size', 'n_step', 'prioritized'}
    here |= {'priority_exponent', 'epsilon_base', 'epsilon_exponent'}
    here |= {'evaluation_epsilon', 'min_priority', 'jit_compile', 'prefetch'}
    here |= {'epsilon_anneal_steps', 'max_abs_reward'}
    in_network_tests = {'hidden_sizes', 'dueling', 'image_torso'}
    in_learning_tests = {'double', 'discount', 'learning_rate', 'adam_epsilon'}
    in_learning_tests |= {'max_gradient_norm', 'huber_threshold'}
    in_learning_tests |= {'target_update_period', 'importance_exponent'}
    in_learning_tests |= {'importance_anneal_learner_steps'}
    in_learning_tests |= {'conservative_weight', 'margin_weight', 'margin'}
    in_launch = {'variable_update_period'}
    in_series_test = {'num_sgd_steps_per_step'}
    in_rainbow_test = {'distribution', 'noisy', 'noisy_sigma', 'munchausen'}
    in_rainbow_test |= {'munchausen_alpha', 'munchausen_temperature'}
    in_rainbow_test |= {'munchausen_clip', 'num_atoms', 'vmin', 'vmax'}
    in_rainbow_test |= {'num_quantiles', 'num_taus', 'num_target_taus'}
    in_rainbow_test |= {'num_policy_taus'}
    assert {field.name for field in dataclasses.fields(dqn.DQNConfig)} == (
      here
      | in_network_tests
      | in_learning_tests
      | in_launch
      | in_series_test
      | in_rainbow_test
    )


class TestWholeAgent:
  @pytest.mark.parametrize(
    ('prioritized', 'jit_compile', 'prefetch'),
    [
      pytest.param(True, True, 1, marks=pytest.mark.chaos),
      (True, False, 0),
      pytest.param(False, False, 2, marks=pytest.mark.chaos),
    ],
  )
  def test_acts_and_learns(self, prioritized, jit_compile, prefetch):
    builder = make_builder(
      prioritized=prioritized,
      jit_compile=jit_compile,
      prefetch=prefetch,
      hidden_sizes=(8,),
      batch_size=16,
      min_replay_size=16,
      # Acting is not limited: the error buffer allows all steps before any
      # batch, 88 = 16 + 4 (16 + 2) items.
      samples_per_insert=1.0,
    )
    environments = batch.EnvironmentBatch([catch.Catch(seed=i) for i in (0, 1)])
    spec = specs.make_environment_spec(environments)
    network = builder.make_network(spec)
    rows = []

    class Logger:
      def write(self, row):
        rows.append(row)

    with replaying(builder, spec, batch_size=2) as (adder, end):
      learner = builder.make_learner(
        builder.make_update(network, spec),
        end.batches,
        end.priorities,
        Logger(),
        jit_compile=jit_compile,
      )
      policy = builder.make_policy(
        network,
        builder_lib.Acting(spec, 2, seed=0),
      )
      loop = environment_loop.EnvironmentLoop(
        environments,
        actors.PolicyActor(
          policy,
          spec.observations,
          [0, 1],
          adder=adder,
          jit_compile=jit_compile,
        ),
      )
      before = [variable.numpy() for variable in network.variables]
      loop.run(num_steps=60)
      # An item a step, except those of the steps that have not been followed.
      assert 60 - 2 * 4 <= adder.num_items <= 60
      for _ in range(5):
        learner.step()
    assert len(rows) == 5
    assert learner.steps == 5
    assert any(
      np.any(old != new.numpy()) for old, new in zip(before, network.variables)
    )
    assert set(rows[0]) == {'loss', 'td_error', 'q_value', 'gradient_norm'}
