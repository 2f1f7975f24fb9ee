"""Tests that central inference gives the same items as local inference."""

import contextlib
import dataclasses
import threading

import numpy as np
import pytest
import tensorflow as tf
import tree

from repertory import launch
from repertory.agents import dqn, impala, ppo, r2d2, sac
from repertory.components import core, replay, variables
from repertory.components.runtime import signals
from repertory.environments.registry import registry
from repertory.launch.coordination import coordinator as coordinator_lib
from repertory.launch.experiments import environment_batches
from repertory.launch.nodes import actor as actor_lib
from repertory.launch.nodes import inference
from repertory.launch.nodes import thin_actor as thin
from repertory.launch.topologies import central
from support.environments import follow
from support.launch import lone_nodes, sessions
from support.replay import replay_fixture
from support.system import rare_cases

_NUM_ACTORS, _PER_ACTOR, _NUM_STEPS = 2, 3, 60
# XLA takes most of the time: it compiles for one agent of each kind.
_SEQUENCES = {'unroll_length': 5, 'hidden_sizes': (8,), 'jit_compile': False}
_CASES = {
  'impala': (impala, {**_SEQUENCES, 'jit_compile': True}),
  'impala_lstm': (
    impala,
    {
      **_SEQUENCES,
      'core': 'lstm',
      'core_size': 8,
      'previous_action_and_reward': True,
    },
  ),
  'impala_gtrxl': (
    impala,
    {
      **_SEQUENCES,
      'core': 'gtrxl',
      'core_size': 8,
      'core_heads': 2,
      'core_window': 6,
    },
  ),
  'r2d2': (
    r2d2,
    {**_SEQUENCES, 'core_size': 8, 'burn_in_length': 2, 'jit_compile': True},
  ),
  'ppo_normalized': (
    ppo, {**_SEQUENCES, 'batch_size': 8, 'normalize_observations': True},
  ),
  'dqn': (dqn, {'hidden_sizes': (8,), 'n_step': 3}),
}  # fmt: skip


class _Source(core.VariableSource):
  """Source of constant variables."""

  def __init__(self, network):
    for variable in network.variables:
      if variable.dtype == tf.float64:  # Statistics of observations.
        variable.assign(tf.fill(variable.shape, tf.constant(0.3, tf.float64)))
    self.values = [variable.numpy() for variable in network.variables]

  def get_variables(self, names):
    values = {'policy': self.values, 'learner_steps': 7, 'max_priority': 1.0}
    return [values[name] for name in names]


def _make_builder(agent, config):
  (builder_class,) = (
    getattr(agent, name) for name in dir(agent) if name.endswith('Builder')
  )
  (config_class,) = (
    getattr(agent, name) for name in dir(agent) if name.endswith('Config')
  )

  class Kept(builder_class):
    """All items are kept, in order."""

    def experience(self, spec, num_environments):
      experience = super().experience(spec, num_environments)
      kept = replay.queue(experience.table.signature, 100_000)
      return dataclasses.replace(experience, tables=[kept])

  return Kept(config_class(**config))


@contextlib.contextmanager
def _open(tmp_path, name, environment_factory, builder, num_connections=1):
  experiment = launch.Experiment(
    builder=builder,
    environment_factory=environment_factory,
    max_steps=1_000,
    directory=str(tmp_path / name),
    seed=3,
    num_actors=_NUM_ACTORS,
    environments_per_actor=_PER_ACTOR,
    timeout_seconds=20,
  )
  topology = central.Central(double_buffering=num_connections == 2)
  with sessions.open_session(experiment, topology) as session:
    coordinator = coordinator_lib.Coordinator(session)
    stop = signals.StopSignal()
    with (
      contextlib.closing(coordinator),
      replay_fixture.serve(*session.tables, stop=stop) as connection,
    ):
      yield session, coordinator, connection


def _fetch(context, session, source):
  """Makes a network, and a client that fetches its variables at each step."""
  network = session.experiment.builder.make_network(session.spec)
  return network, variables.RemoteVariableClient(
    source,
    network.variables,
    update_period=1,
    timeout_seconds=20.0,
    stop=context.stop,
  )


def _ids(index):
  return range(index * _PER_ACTOR, (index + 1) * _PER_ACTOR)


def _act_locally(session, coordinator, connection, source):
  for index in range(_NUM_ACTORS):
    context = lone_nodes.make_context(f'actor/{index}', coordinator)
    network, variable_client = _fetch(context, session, source)
    node = actor_lib.ActorNode(
      context,
      session,
      _ids(index),
      network=network,
      variable_client=variable_client,
      transport=session.connect(connection.address, connection.stop),
    )
    variable_client.update(wait=True)
    for variable, value in zip(network.variables, source.values):
      np.testing.assert_array_equal(variable, value)
    for _ in range(_NUM_STEPS):
      node.step()
    context.closing.close()


def _act_centrally(session, coordinator, connection, source, num_connections):
  context = lone_nodes.make_context('inference/0', coordinator, connection.stop)
  network, variable_client = _fetch(context, session, source)
  server = inference.InferenceNode(
    context,
    session,
    network=network,
    variable_client=variable_client,
    transport=session.connect(connection.address, connection.stop),
    rows=[_PER_ACTOR] * _NUM_ACTORS,
  )
  coordinator.register('inference/0', server.description)
  thread = threading.Thread(target=server.run)
  thread.start()
  actors = [
    thin.ThinActorNode(
      lone_nodes.make_context(f'actor/{index}', coordinator),
      server='inference/0',
      environment_ids=_ids(index),
      seeds=session.environment_seeds(_ids(index)),
      environments=environment_batches.settings_of(session.experiment),
      spec=session.spec,
      timeout_seconds=20,
      num_connections=num_connections,
    )
    for index in range(_NUM_ACTORS)
  ]

  def act(node):
    for _ in range(_NUM_STEPS):
      node.step()
    for client in node._clients:
      client.finish()
    node._context.closing.close()

  threads = [threading.Thread(target=act, args=[node]) for node in actors]
  for thread_of_actor in threads:
    thread_of_actor.start()
  for thread_of_actor in threads:
    thread_of_actor.join(60)
    assert not thread_of_actor.is_alive()
  connection.stop.set()
  thread.join(10)
  assert not thread.is_alive()


def _key(leaf):
  return np.round(np.asarray(leaf, np.float64), 3).tobytes()


def _items(connection):
  """Returns the items in an order that does not depend on timing."""
  items = [tree.flatten(item.data) for item in replay_fixture.drain(connection)]
  return sorted(items, key=lambda item: [_key(leaf) for leaf in item])


@pytest.mark.parametrize('case', rare_cases.daily(_CASES, ['impala_lstm']))
def test_items_are_equal(tmp_path, case):
  factory = registry.make_factory('catch')
  _check_items_are_equal(tmp_path, *_CASES[case], factory, 2)


@pytest.mark.parametrize('case', ['r2d2', 'impala'])
def test_items_of_masked_actions_are_equal(tmp_path, case):
  agent, config = _CASES[case]
  config = {**config, 'jit_compile': False}
  factory = registry.make_factory('tensor:gates')
  _check_items_are_equal(tmp_path, agent, config, factory, 1)


def test_items_of_continuous_actions_are_equal(tmp_path):
  config = {'hidden_sizes': (8,), 'num_random_steps': 60}
  _check_items_are_equal(tmp_path, sac, config, follow.Follow, 1)


def _check_items_are_equal(
  tmp_path, agent, config, environment_factory, num_connections
):
  found = []
  for name in ('local', 'central'):
    builder = _make_builder(agent, config)
    connections = num_connections if name == 'central' else 1
    with _open(
      tmp_path, name, environment_factory, builder, connections
    ) as parts:
      session = parts[0]
      tf.random.set_seed(5)
      network = builder.make_network(session.spec)
      source = _Source(network)
      if name == 'local':
        _act_locally(*parts, source)
      else:
        _act_centrally(*parts, source, num_connections)
      found.append(_items(parts[2]))
  local, central = found
  assert len(local) == len(central) > 20
  for ours, theirs in zip(local, central):
    for leaf, other in zip(ours, theirs, strict=True):
      assert leaf.dtype == other.dtype
      # Above 8, a float32 is no more exact than to 1e-6 itself.
      rtol = 1e-6 if leaf.dtype.kind == 'f' else 0
      np.testing.assert_allclose(leaf, other, rtol=rtol, atol=1e-6)
