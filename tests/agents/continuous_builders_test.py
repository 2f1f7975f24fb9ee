"""Tests of the builders of agents for bounded continuous actions."""

import dm_env
import numpy as np
import pytest
import sonnet as snt
import tensorflow as tf
from acme import specs

from repertory.agents import d4pg, iql, qtopt, sac, td3
from repertory.agents.interface import builder as builder_lib
from repertory.components import networks, replay
from support.replay import recording_writer
from support.system import rare_cases

FLOAT = specs.Array((), np.float32)
AGENTS = {
  'sac': (sac.SACBuilder, sac.SACConfig),
  'd4pg': (d4pg.D4PGBuilder, d4pg.D4PGConfig),
  'qtopt': (qtopt.QTOptBuilder, qtopt.QTOptConfig),
  'td3': (td3.TD3Builder, td3.TD3Config),
  'iql': (iql.IQLBuilder, iql.IQLConfig),
}


def make_spec(actions=None, observations=None):
  if actions is None:
    actions = specs.BoundedArray((2,), np.float32, [-1, 2], [3, 4])
  if observations is None:
    observations = specs.Array((3,), np.float32)
  return specs.EnvironmentSpec(observations, actions, FLOAT, FLOAT)


def make_builder(agent, **config):
  builder_class, config_class = AGENTS[agent]
  return builder_class(config_class(**{'hidden_sizes': (8,), **config}))


def make_policy(builder, spec, num_environments=4, seed=0, **settings):
  return builder.make_policy(
    builder.make_network(spec),
    builder_lib.Acting(spec, num_environments, seed, **settings),
  )


def actions_of(policy, num_rows, num_steps=3, scale=1.0):
  """Returns `[T, B, ...]`; observations are of that scale."""
  step = tf.function(policy.step, autograph=False)
  state, actions = policy.initial_state(range(num_rows)), []
  random = np.random.default_rng(0)
  for _ in range(num_steps):
    observation = tf.constant(scale * random.normal(size=(num_rows, 3)))
    output = step(tf.cast(observation, tf.float32), state)
    actions.append(output.action.numpy())
    state = output.state
  return np.stack(actions)


class TestPolicy:
  @pytest.mark.parametrize('agent', AGENTS)
  @pytest.mark.parametrize(
    'bounds',
    rare_cases.daily(
      [(-2, 2), (0.1, 0.7), (1e6, 1e6 + 1), (-3e38, 3e38)],
      [(-2, 2), (1e6, 1e6 + 1)],
    ),
  )
  @pytest.mark.parametrize(
    'kind',
    rare_cases.daily(
      [((), np.float32), ((2, 2), np.float64), ((3,), np.float32)],
      [((), np.float32), ((2, 2), np.float64)],
    ),
  )
  @pytest.mark.parametrize(
    'evaluation', rare_cases.daily([False, True], [False])
  )
  def test_actions_are_valid(self, agent, bounds, kind, evaluation):
    actions = specs.BoundedArray(*kind, *bounds)
    builder = make_builder(agent)
    spec = make_spec(actions)
    policy = make_policy(builder, spec, evaluation=evaluation)
    # Where tanh is flat, too.
    found = actions_of(policy, 50, scale=100.0)
    for action in found.reshape(-1, *actions.shape):
      actions.validate(np.asarray(action))

  @pytest.mark.parametrize('agent', AGENTS)
  def test_evaluation_is_the_same_for_all_seeds(self, agent):
    builder, spec = make_builder(agent), make_spec()
    network = builder.make_network(spec)

    def act(seed, evaluation):
      acting = builder_lib.Acting(spec, 4, seed, 10**6, evaluation)
      policy = builder.make_policy(network, acting)
      return actions_of(policy, 4)

    np.testing.assert_array_equal(act(1, True), act(2, True))
    assert np.abs(act(1, False) - act(2, False)).max() > 0.1

  @pytest.mark.parametrize('sigma', [0.0, 0.1, 0.4])
  def test_d4pg_sigma(self, sigma):
    builder = make_builder('d4pg', sigma=sigma)
    spec = make_spec(specs.BoundedArray((2,), np.float32, -3, 3))
    policy = make_policy(builder, spec, num_environments=2_000)
    # The head begins near 0. A sigma of 1 is half of the range.
    actions = actions_of(policy, 2_000)
    limited = np.clip(np.random.default_rng(0).normal(0, sigma, 100_000), -1, 1)
    np.testing.assert_allclose(actions.std(), 3 * limited.std(), atol=0.05)

  def test_sac_shares_random_steps(self):
    policy = make_policy(make_builder('sac', num_random_steps=100), make_spec())
    assert policy.describe([0]) == {'num_random_steps': 25}
    policy = make_policy(
      make_builder('sac', num_random_steps=100), make_spec(), 128
    )
    assert policy.describe([0]) == {'num_random_steps': 1}


class VolumeSAC(sac.SACBuilder):
  """Supports observations of rank 4 by custom networks."""

  def make_network(self, spec):
    network = snt.Sequential([snt.Flatten(), snt.Linear(2 * 2)])
    networks.create_variables(network, spec.observations)
    return network

  def make_critics(self, spec):
    return make_own_critics(spec, 1)


class VolumeD4PG(d4pg.D4PGBuilder):
  """Supports observations of rank 4 by custom networks."""

  def make_network(self, spec):
    network = snt.Sequential([snt.Flatten(), snt.Linear(2), tf.tanh])
    networks.create_variables(network, spec.observations)
    return network

  def make_critic(self, spec):
    return make_own_critics(spec, self.config.num_atoms)


class OwnCritic(snt.Module):
  def __init__(self, num_outputs):
    super().__init__()
    self.head = snt.Linear(num_outputs)

  def __call__(self, observation, action):
    return self.head(tf.concat([snt.Flatten()(observation), action], -1))


def make_own_critics(spec, num_outputs):
  critic = OwnCritic(num_outputs)
  networks.create_critic_variables(critic, spec.observations, 2)
  return critic


class TestOwnNetworks:
  @pytest.mark.parametrize('builder_class', [VolumeSAC, VolumeD4PG])
  def test_policy_and_critics_are_replaced(self, builder_class):
    spec = make_spec(observations=specs.Array((2, 2, 2, 2), np.float32))
    builder = builder_class()
    update = builder.make_update(builder.make_network(spec), spec)
    name = 'own_critic/linear/w:0'
    sizes = [np.prod(v.shape) for v in update.variables if v.name == name]
    outputs = getattr(builder.config, 'num_atoms', 1)
    # Online and target critic.
    assert sizes == [(16 + 2) * outputs] * 2


class TestNetwork:
  @pytest.mark.parametrize('agent', AGENTS)
  @pytest.mark.parametrize(
    'actions',
    [
      specs.DiscreteArray(3),
      specs.Array((2,), np.float32),
      specs.BoundedArray((2,), np.float32, -1, np.inf),
      specs.BoundedArray((2,), np.int32, -1, 1),
    ],
  )
  def test_refuses_actions(self, agent, actions):
    if agent == 'sac' and np.issubdtype(actions.dtype, np.integer):
      pytest.skip('SAC is for discrete actions, too.')
    with pytest.raises(ValueError, match=r'^actions must ') as caught:
      make_builder(agent).make_network(make_spec(actions))
    assert repr(actions) in str(caught.value)

  @pytest.mark.parametrize('agent', AGENTS)
  def test_refuses_one_part_of_an_action(self, agent):
    fire = specs.DiscreteArray(2)
    actions = {'fire': fire, 'move': specs.BoundedArray((2,), float, -1, 1)}
    refused = r"^actions\['fire'\] must be a non-empty array of floats"
    if agent == 'sac':
      refused = '^actions must be .*, not both'
    with pytest.raises(ValueError, match=refused) as caught:
      make_builder(agent).make_network(make_spec(actions))
    assert repr(fire) in str(caught.value)

  @pytest.mark.parametrize('agent', AGENTS)
  def test_refuses_observations(self, agent):
    video = specs.BoundedArray((4, 84, 84, 3), np.uint8, 0, 255)
    with pytest.raises(ValueError, match='a custom network'):
      make_builder(agent).make_network(make_spec(observations=video))

  @pytest.mark.parametrize('agent', AGENTS)
  def test_takes_nests_and_images(self, agent):
    builder = make_builder(agent)
    spec = make_spec(
      observations={
        'x': specs.Array((3,), np.float32),
        'eye': specs.BoundedArray((36, 36, 1), np.uint8, 0, 255),
      }
    )
    network = builder.make_network(spec)
    update = builder.make_update(network, spec)
    assert len(update.exports['policy']) == len(network.variables)


class TestTables:
  @pytest.mark.parametrize('agent', AGENTS)
  @pytest.mark.parametrize('num_environments', [1, 7, 64, 1000])
  @pytest.mark.parametrize('n_step', [1, 5, 40])
  @pytest.mark.parametrize(
    'config',
    [
      {},
      {'batch_size': 1, 'min_replay_size': 1},
      {'samples_per_insert': 0.25, 'prioritized': True},
    ],
  )
  def test_can_run(self, agent, num_environments, n_step, config):
    builder = make_builder(agent, n_step=n_step, **config)
    table = builder.experience(make_spec(), num_environments).table
    # When all episodes end in the same step, it writes n + 1 items of each: the
    # one held back, and all that are open.
    table.check(
      builder.config.batch_size,
      items_per_insert=num_environments * (n_step + 1),
    )

  @pytest.mark.parametrize('agent', AGENTS)
  @pytest.mark.parametrize('prioritized', [True, False])
  def test_sampler_and_priorities(self, agent, prioritized):
    builder = make_builder(agent, prioritized=prioritized)
    experience = builder.experience(make_spec(), 1)
    sampler = 'prioritized' if prioritized else 'uniform'
    assert experience.table.sampler == sampler
    connection = replay.Connection('localhost:1', 1)
    updater = builder.make_priority_updater(experience, connection)
    assert (updater is not None) == prioritized
    if updater is not None:
      updater.close()

  @pytest.mark.parametrize('agent', AGENTS)
  def test_items(self, agent):
    # γ = ½ between the two rewards; the second step is cut off, not the end.
    builder = make_builder(agent, n_step=2, discount=0.5)
    spec = make_spec()
    experience = builder.experience(spec, 1)
    writer = recording_writer.RecordingWriter(experience.table.signature)
    adder = builder.make_adder(experience, writer, 1)
    steps = [
      dm_env.TimeStep(
        np.array([step_type], np.int32),
        np.array([reward], np.float32),
        np.ones([1], np.float32),
        np.full([1, 3], t, np.float32),
      )
      for t, (step_type, reward) in enumerate([(0, 0), (1, 10), (2, 100)])
    ]
    adder.add_first(steps[0])
    for t, step in enumerate(steps[1:]):
      adder.add(np.full([1, 2], t, np.float32), step)
    found = sorted(
      (float(item.action[0]), float(item.reward), float(item.discount))
      for item in writer.items
    )
    assert found == [(0, 10 + 0.5 * 100, 0.5), (1, 100, 1)]
