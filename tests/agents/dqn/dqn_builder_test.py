"""Tests of `DQNBuilder`, and of its parts together."""

import dm_env
import numpy as np
import pytest
import tensorflow as tf
import tree
from acme import specs

from repertory.agents import dqn
from repertory.agents.dqn import learning
from repertory.agents.interface import builder as builder_lib
from repertory.components import replay, types
from support.replay import recording_writer

_FLOAT = specs.Array((), np.float32)
_SPEC = specs.EnvironmentSpec(
  observations=specs.Array((1,), np.float32),
  actions=specs.DiscreteArray(2, np.int32),
  rewards=_FLOAT,
  discounts=_FLOAT,
)


def _make_builder(**config):
  return dqn.DQNBuilder(dqn.DQNConfig(**config))


def _make_policy(spec, num_environments, acting=None, **config):
  builder = _make_builder(**config)
  return builder.make_policy(
    builder.make_network(spec),
    builder_lib.Acting(spec, num_environments, seed=0, **(acting or {})),
  )


def test_static_method_gets_the_spec():
  class Static(dqn.DQNBuilder):
    @staticmethod
    def make_network(spec):
      return spec

  assert Static(dqn.DQNConfig()).make_network(_SPEC) == _SPEC


def _timestep(t, discount):
  """A batch of one; observation t, and reward 10^(t − 1)."""
  kind = {0: dm_env.StepType.FIRST, 4: dm_env.StepType.LAST}
  return dm_env.TimeStep(
    step_type=np.array([kind.get(t, dm_env.StepType.MID)], np.int32),
    reward=np.array([10 ** (t - 1) if t else 0], np.float32),
    discount=np.array([discount], np.float32),
    observation=np.array([[t]], np.float32),
  )


@pytest.mark.parametrize(
  ('settings', 'discounts', 'expected'),
  [
    (
      {'n_step': 3},
      [1, 1, 1, 0],
      [
        1
        + 0.5 * 10
        + 0.25 * 100
        + 0.125 * 6,  # Bootstrapped with 2 s', s' = 3.
        # The last three reach to the end, where nothing follows.
        10 + 0.5 * 100 + 0.25 * 1000,
        100 + 0.5 * 1000,
        1000,
      ],
    ),
    (
      {'n_step': 2},
      [0.8, 0.4, 1, 0.2],  # Discounts of the environment; no termination.
      [
        1 + 0.5 * 0.8 * 10 + 0.25 * 0.8 * 0.4 * 4,
        10 + 0.5 * 0.4 * 100 + 0.25 * 0.4 * 1 * 6,
        100 + 0.5 * 1 * 1000 + 0.25 * 1 * 0.2 * 8,
        1000 + 0.5 * 0.2 * 8,
      ],
    ),
    (
      {'n_step': 2, 'max_abs_reward': 20.0},
      [1, 1, 1, 0],
      [1 + 0.5 * 10 + 0.25 * 4, 10 + 0.5 * 20 + 0.25 * 6, 20 + 0.5 * 20, 20],
    ),
  ],
)
def test_targets_of_the_adders_items(settings, discounts, expected):
  """γ: between rewards by the adder, before bootstrapping by the learner.

  The episode: observations 0, 1, ..., 4; rewards 1, 10, 100, 1000. The target
  network values observation s as (−s, 2 s), the online network as 0, so that
  the error of a transition is the n-step return itself, and its priority too.
  """
  builder = _make_builder(
    discount=0.5, double=False, dueling=False, hidden_sizes=(), **settings
  )
  online, target = builder.make_network(_SPEC), builder.make_network(_SPEC)
  update = learning.DQNUpdate(online, target, builder.config)
  for network, weights in ((online, [[0.0, 0.0]]), (target, [[-1.0, 2.0]])):
    for variable in network.variables:
      variable.assign(
        weights if variable.shape == [1, 2] else tf.zeros_like(variable)
      )
  experience = builder.experience(_SPEC, 1)
  writer = recording_writer.RecordingWriter(experience.table.signature)
  adder = builder.make_adder(experience, writer, 1)
  adder.add_first(_timestep(0, 1))
  for t, discount in enumerate(discounts):
    adder.add(np.array([1], np.int32), _timestep(t + 1, discount))
  items = sorted(writer.items, key=lambda item: item.observation[0])
  data = tree.map_structure(lambda *x: tf.constant(np.stack(x)), *items)
  size = len(items)
  sample = types.Sample(
    data,
    tf.range(size),
    tf.fill([size], tf.constant(0.1, tf.float64)),
    tf.fill([size], tf.constant(9, tf.int64)),
  )
  priorities = np.asarray(update(sample).priorities)
  np.testing.assert_allclose(priorities, expected, rtol=1e-5)


class TestTable:
  def test_has_the_configs_limits(self):
    builder = _make_builder(
      samples_per_insert=3.0, min_replay_size=20, error_buffer=1000.0,
      max_replay_size=77, priority_exponent=0.3,
    )  # fmt: skip
    table = builder.experience(_SPEC, 4).table
    assert table.max_size == 77
    assert table.rate_limit == replay.RateLimit(
      samples_per_insert=3.0, min_size=20, error_buffer=1000.0
    )
    assert (table.sampler, table.priority_exponent) == ('prioritized', 0.3)
    uniform = _make_builder(prioritized=False).experience(_SPEC, 2).table
    assert uniform.sampler == 'uniform'

  def test_rejects_error_buffers(self):
    table = _make_builder(error_buffer=60.0).experience(_SPEC, 1).table
    with pytest.raises(ValueError, match='error_buffer of table'):
      table.check(64, 1)
    with pytest.raises(ValueError, match='error_buffer must be at least'):
      _make_builder(error_buffer=-1.0).experience(_SPEC, 1)


class TestPolicy:
  @pytest.mark.parametrize(
    ('config', 'evaluation', 'expected'),
    [
      ({}, False, [0.4, 0.4**8]),
      ({'epsilon_base': 0.9, 'epsilon_exponent': 1.0}, False, [0.9, 0.9**2]),
      ({'evaluation_epsilon': 0.25}, True, [0.25, 0.25]),
    ],
  )
  def test_epsilons(self, config, evaluation, expected):
    policy = _make_policy(_SPEC, 2, {'evaluation': evaluation}, **config)
    found = policy.describe([0, 1])['epsilons']
    np.testing.assert_allclose(found, expected, rtol=1e-9)

  @pytest.mark.parametrize(
    ('anneal_steps', 'acting', 'expected'),
    [
      # All values are 0, so that a greedy action is 0: half of the random ones
      # are 1. The steps to anneal in are those of 1,000 environments together.
      (10**9, {}, 500),
      (10**9, {'steps_done': 5 * 10**5}, 250),
      (0, {}, 0),
      (10**9, {'evaluation': True}, 0),
    ],
  )
  def test_annealing(self, anneal_steps, acting, expected):
    # The end of the ladder: ε = 1e-6^8.
    policy = _make_policy(
      _SPEC, 1000, acting, epsilon_anneal_steps=anneal_steps, epsilon_base=1e-6
    )
    actions = policy.step(
      tf.zeros([1000, 1]), policy.initial_state(range(1000))
    ).action
    # Five deviations √(1000 · ½ · ½).
    assert np.sum(actions) == pytest.approx(expected, abs=80 if expected else 0)

  def test_actions_are_of_the_specs_dtype(self):
    spec = _SPEC._replace(actions=specs.DiscreteArray(2, np.uint8))
    policy = _make_policy(spec, 1)
    output = policy.step(tf.zeros([1, 1]), policy.initial_state([0]))
    assert output.action.dtype == tf.uint8
