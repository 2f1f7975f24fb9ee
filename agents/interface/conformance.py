"""Conformance tests of agent builders, to inherit for custom agents.

    class TestMyBuilder(conformance.BuilderConformance):
      def make_builder(self): ...
      def make_spec(self): ...

Run them by pytest, or by unittest with `unittest.TestCase` as a further base.
`components.testing` has those of policies and updates.
"""

import contextlib
import dataclasses
import itertools
from collections.abc import Iterator
from typing import Any

import cloudpickle
import dm_env
import numpy as np
import tensorflow as tf
import tree

from repertory.agents.interface import builder as builder_lib
from repertory.components import (
  actors,
  interfaces,
  specs,
  transports,
  types,
)
from repertory.components.replay import served
from repertory.components.testing import policies

_FIRST, _MID, _LAST = (int(step_type) for step_type in dm_env.StepType)


class BuilderConformance:
  """The contract of `builder.Builder`: its parts fit together.

  Attributes:
    num_environments: Number of environments of the single actor.
    max_steps: Maximum steps of each environment to fill a batch.
  """

  num_environments = 2
  max_steps = 500

  def make_builder(self) -> builder_lib.Builder:
    """Creates the builder, with small networks and replay sizes."""
    raise NotImplementedError

  def make_spec(self) -> specs.EnvironmentSpec:
    """Returns the environment spec that the agent gets."""
    raise NotImplementedError

  def test_can_be_sent(self):
    builder, spec = self.make_builder(), self.make_spec()
    sent = cloudpickle.loads(cloudpickle.dumps(builder))
    assert dataclasses.is_dataclass(builder.config)
    assert sent.config == builder.config
    assert self._tables(sent, spec) == self._tables(builder, spec), (
      'A sent builder must describe the same tables.'
    )

  def _tables(self, builder, spec):
    tables = builder.experience(spec, self.num_environments).tables
    return [(t.name, t.signature, t.max_size, t.rate_limit) for t in tables]

  def test_networks_are_alike_and_share_nothing(self):
    builder, spec = self.make_builder(), self.make_spec()
    one, other = (builder.make_network(spec) for _ in range(2))
    assert one.variables, (
      'A network must have all its variables after make_network.'
    )
    self._check_alike('Another network', other.variables, one.variables)
    assert not {v.ref() for v in one.variables} & {
      v.ref() for v in other.variables
    }, 'Networks must not share variables.'

  def test_exports_what_a_network_has(self):
    builder, spec = self.make_builder(), self.make_spec()
    network = builder.make_network(spec)
    expected = list(network.variables)
    exported = builder.make_update(network, spec).exports['policy']
    self._check_alike("exports['policy']", exported, expected)

  def _check_alike(self, name, found, expected):
    found, expected = (
      [(v.name, v.shape.as_list(), v.dtype) for v in variables]
      for variables in (found, expected)
    )
    assert found == expected, (
      f'{name} must have the variables of the network after make_network, in '
      'their order, because values are copied between them; got '
      f'{found} for {expected}.'
    )

  def test_tables_can_run(self):
    builder, spec = self.make_builder(), self.make_spec()
    experience = builder.experience(spec, self.num_environments)
    assert experience.batch_size >= 1
    experience.check(self.num_environments)

  def test_evaluation_is_the_same(self):
    builder, spec = self.make_builder(), self.make_spec()
    network = builder.make_network(spec)
    actions = [
      list(itertools.islice(self._play(network, seed, True), 20))
      for seed in (1, 2)
    ]
    pairs = zip(*map(tree.flatten, actions))
    assert all(np.array_equal(one, other) for one, other in pairs), (
      'Evaluation must not explore, so not depend on the seed.'
    )

  def _play(self, network, seed=0, evaluation=False, adder=None):
    """Acts on random timesteps, and yields the actions."""
    spec, size = self.make_spec(), self.num_environments
    acting = builder_lib.Acting(spec, size, seed, evaluation=evaluation)
    actor = actors.PolicyActor(
      self.make_builder().make_policy(network, acting),
      spec.observations,
      range(size),
      adder=adder,
    )
    timesteps = self.live()
    timestep = next(timesteps)
    actor.observe_first(timestep)
    for following in timesteps:
      action = actor.select_action(timestep.observation)
      actor.observe(action, following)
      timestep = following
      yield action

  def live(self) -> Iterator[dm_env.TimeStep]:
    """Yields batched random timesteps of the spec, independent of actions."""
    random = np.random.default_rng(0)
    spec, size = self.make_spec(), self.num_environments
    lengths = 7 + np.arange(size) % 2  # Episodes end at different times.
    for t in range(self.max_steps):
      index = t % (lengths + 1)
      step_type = np.full([size], _MID, np.int32)
      step_type[index == 0] = _FIRST
      step_type[index == lengths] = _LAST
      first, last = step_type == _FIRST, step_type == _LAST
      yield dm_env.TimeStep(
        step_type,
        np.where(first, 0, random.normal(size=size)).astype(np.float32),
        np.where(last, 0, 1).astype(np.float32),
        tree.map_structure(
          lambda leaf: policies.draw(leaf, size, random), spec.observations
        ),
      )

  def test_parts_fit_together(self):
    builder, spec = self.make_builder(), self.make_spec()
    experience = builder.experience(spec, self.num_environments)
    with contextlib.ExitStack() as stack:
      server = served.ReplayServer(experience.tables, seed=0)
      stack.callback(server.stop)
      connection = served.ServerConnection(server.address, 60.0)
      transport = transports.ServedTransport(
        experience, builder.make_adder, connection
      )
      end = transport.make_learner_side()
      stack.callback(end.close)
      adder = transport.make_adder(
        self.num_environments,
        priority=lambda: 1.0,
        version=lambda: 0,
        max_pending_items=0,
      )
      stack.callback(adder.close)
      # Otherwise closing the adder would wait for pending items.
      stack.callback(connection.stop.set)
      network = builder.make_network(spec)
      for _ in self._play(network, adder=adder):
        if end.updates_due(0):
          break
      else:
        raise AssertionError(
          f'{self.max_steps} steps made only {adder.num_items} items, too few '
          'for a learner step. Reduce batch and replay sizes.'
        )
      sample = tree.map_structure(tf.convert_to_tensor, next(end.batches))
      assert sample.keys.shape == [experience.batch_size]
      self.check_update(builder, network, sample)

  def check_update(
    self, builder: builder_lib.Builder, network: Any, sample: types.Sample
  ) -> None:
    """Updates with a sample; overridden where a node prepares it."""
    update = builder.make_update(network, self.make_spec())
    for name, value in interfaces.call_update(update, sample).metrics.items():
      assert np.isfinite(np.asarray(value)), f'{name} must be finite.'
