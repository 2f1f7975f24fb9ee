"""Tests of the builders of agents for bounded continuous actions."""

import numpy as np
import pytest
import tensorflow as tf
from acme import specs

from repertory.agents.interface import builder as builder_lib
from repertory.agents.interface import registry
from support.agents import known_agents

_FLOAT = specs.Array((), np.float32)
_AGENTS = [n for n in known_agents.taking('continuous') if n != 'bc']
_WITH_BOUNDS = [n for n in _AGENTS if n not in ('impala', 'ppo', 'vmpo')]


def _make_spec(actions=None, observations=None):
  if actions is None:
    actions = specs.BoundedArray((2,), np.float32, [-1, 2], [3, 4])
  if observations is None:
    observations = specs.Array((3,), np.float32)
  return specs.EnvironmentSpec(observations, actions, _FLOAT, _FLOAT)


def _make_builder(agent, **config):
  return registry.make_builder(agent, {'hidden_sizes': (8,), **config})


def _actions_of(builder, spec, num_rows, num_steps=3, scale=1.0):
  """Returns `[T, B, ...]`; observations are of that scale."""
  policy = builder.make_policy(
    builder.make_network(spec), builder_lib.Acting(spec, num_rows, 0)
  )
  step = tf.function(policy.step, autograph=False)
  state, actions = policy.initial_state(range(num_rows)), []
  random = np.random.default_rng(0)
  for _ in range(num_steps):
    observation = tf.constant(scale * random.normal(size=(num_rows, 3)))
    output = step(tf.cast(observation, tf.float32), state)
    actions.append(output.action.numpy())
    state = output.state
  return np.stack(actions)


@pytest.mark.parametrize('agent', _WITH_BOUNDS)
@pytest.mark.parametrize(
  'actions',
  [
    specs.BoundedArray((), np.float32, 1e6, 1e6 + 1),
    specs.BoundedArray((2, 2), np.float64, -2, 2),
  ],
  ids=['far', 'doubles'],
)
def test_actions_are_valid(agent, actions):
  # Where tanh is flat, too.
  spec = _make_spec(actions)
  found = _actions_of(_make_builder(agent), spec, 50, scale=100.0)
  for action in found.reshape(-1, *actions.shape):
    actions.validate(np.asarray(action))


def test_d4pg_sigma():
  # The head begins near 0. A sigma of 1 is half of the range.
  spec = _make_spec(specs.BoundedArray((2,), np.float32, -3, 3))
  actions = _actions_of(_make_builder('d4pg', sigma=0.4), spec, 2_000)
  clipped = np.clip(np.random.default_rng(0).normal(0, 0.4, 100_000), -1, 1)
  np.testing.assert_allclose(actions.std(), 3 * clipped.std(), atol=0.05)


@pytest.mark.parametrize(('num_environments', 'steps'), [(4, 25), (128, 1)])
def test_environments_share_random_steps(num_environments, steps):
  builder, spec = _make_builder('sac', num_random_steps=100), _make_spec()
  acting = builder_lib.Acting(spec, num_environments, 0)
  policy = builder.make_policy(builder.make_network(spec), acting)
  assert policy._num_random_steps == steps


@pytest.mark.parametrize(
  'actions',
  [
    specs.DiscreteArray(3),
    specs.Array((2,), np.float32),
    specs.BoundedArray((2,), np.float32, -1, np.inf),
    specs.BoundedArray((2,), np.int32, -1, 1),
  ],
)
def test_rejects_actions(actions):
  with pytest.raises(ValueError, match=r'^actions must ') as caught:
    _make_builder('td3').make_network(_make_spec(actions))
  assert repr(actions) in str(caught.value)


@pytest.mark.parametrize(
  ('agent', 'message'),
  [
    ('td3', r"^actions\['fire'\] must be a non-empty array of floats"),
    ('sac', '^actions must be .*, not both'),
    ('bc', 'must be arrays of floats with bounds'),
  ],
)
def test_rejects_a_part_of_an_action(agent, message):
  fire = specs.DiscreteArray(2)
  actions = {'fire': fire, 'move': specs.BoundedArray((2,), float, -1, 1)}
  with pytest.raises(ValueError, match=message):
    _make_builder(agent).make_network(_make_spec(actions))
