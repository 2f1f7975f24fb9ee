"""Tests of `stochastic.py`, and of the recurrent ε-greedy policy."""

import numpy as np
import pytest
import tensorflow as tf
import tree

from repertory.components import distributions, networks, policies, specs

IDS = [3, 0, 5]
B = len(IDS)
ACTIONS = {
  'discrete': specs.DiscreteArray(4, np.int64),
  'continuous': specs.BoundedArray((2,), np.float32, -3, 5),
}


def normal(*shape, seed=0):
  random = np.random.default_rng(seed)
  return tf.constant(random.normal(size=shape), tf.float32)


def make_network(num_parameters, core='lstm', values=False):
  head = networks.ActorCriticHead(num_parameters)
  network = networks.SequenceNetwork(
    networks.ObservationTorso(specs.Array((3,), np.float32), (6,)),
    networks.make_core(core, 5),
    (lambda features: head(features).parameters) if values else head,
  )
  network.step(normal(1, 3), network.initial_state(1))
  random = np.random.default_rng(0)
  for variable in network.trainable_variables:
    variable.assign(random.normal(size=variable.shape))
  # A function's variables are not those of the module.
  for variable in head.trainable_variables:
    variable.assign(random.normal(size=variable.shape))
  return network


def make_stochastic(kind, core='lstm', evaluation=False, seed=7):
  distribution = distributions.make_distribution(ACTIONS[kind])
  network = make_network(distribution.num_parameters, core)
  policy = policies.StochasticPolicy(
    network, distribution, seed, evaluation=evaluation
  )
  return policy, network, distribution


def make_recurrent(epsilons, core='lstm', **settings):
  network = make_network(4, core, values=True)
  policy = policies.RecurrentEpsilonGreedyPolicy(
    network, epsilons, 7, **settings
  )
  return policy, network


def _to_int64(number):
  return tf.cast(number, tf.int64)


def firsts(t):
  """Row 1 starts an episode at step 2, row 2 at steps 3 and 4."""
  return tf.constant([t == 0, t in (0, 2), t in (0, 3, 4)])


def run(policy, ids=IDS, rows=slice(None), num_steps=6, jit_compile=None):
  """Returns the outputs of all steps."""

  def act(observation, first, state):
    return policy.step(observation, policy.reset_state(state, first))

  if jit_compile is not None:
    act = tf.function(act, jit_compile=jit_compile, autograph=False)
  state, outputs = policy.initial_state(ids), []
  for t in range(num_steps):
    outputs.append(act(normal(B, 3, seed=t)[rows], firsts(t)[rows], state))
    state = outputs[-1].state
  return outputs


def loop(network, num_steps=6):
  """Returns states before each observation, and the network's outputs."""
  state, result = network.initial_state(B), []
  for t in range(num_steps):
    keep = 1 - tf.cast(firsts(t), tf.float32)[:, None]
    state = tree.map_structure(lambda leaf, keep=keep: leaf * keep, state)
    output, after = network.step(normal(B, 3, seed=t), state)
    result.append((state, output))
    state = after
  return result


def assert_close(found, expected):
  tree.assert_same_structure(found, expected)
  for x, y in zip(tree.flatten(found), tree.flatten(expected), strict=True):
    np.testing.assert_allclose(x, y, rtol=1e-4, atol=1e-5)


class TestStochasticPolicy:
  @pytest.mark.parametrize(
    ('kind', 'core', 'evaluation', 'jit_compile'),
    [
      ('discrete', 'lstm', False, True),
      ('continuous', 'none', False, None),
      ('continuous', 'gru', True, None),
    ],
  )
  def test_extras(self, kind, core, evaluation, jit_compile):
    policy, network, distribution = make_stochastic(kind, core, evaluation)
    outputs = run(policy, jit_compile=jit_compile)
    for t, (found, (state, expected)) in enumerate(zip(outputs, loop(network))):
      step = found.extras.step
      assert set(step) == {'sample', 'log_prob'}
      np.testing.assert_allclose(
        step['log_prob'],
        distribution.log_prob(expected.parameters, step['sample']),
        rtol=1e-3,
        atol=1e-4,
      )
      assert_close(found.extras.state, state)
      np.testing.assert_allclose(
        found.action, distribution.to_action(step['sample']), rtol=1e-6
      )
      if evaluation:
        mode = distribution.mode(expected.parameters)
        np.testing.assert_allclose(step['sample'], mode, 1e-4, 1e-5)
      assert found.action.dtype == ACTIONS[kind].dtype
      # Zeros after a reset, and only then.
      for leaf in tree.flatten(found.extras.state):
        is_zero = np.all(leaf.numpy() == 0, axis=-1)
        np.testing.assert_array_equal(is_zero, firsts(t))

  def test_spec_matches_the_extras(self):
    policy, network, distribution = make_stochastic('continuous', 'lstm')
    spec = policies.stochastic_extras_spec(distribution, network.state_spec())
    extras = run(policy, num_steps=1)[0].extras
    tree.assert_same_structure(spec, extras)
    for leaf_spec, leaf in zip(tree.flatten(spec), tree.flatten(extras)):
      assert leaf.shape == [B, *leaf_spec.shape]
      assert leaf.dtype.as_numpy_dtype == leaf_spec.dtype


class TestRecurrentEpsilonGreedyPolicy:
  def test_greedy_action_and_extras(self):
    policy, network = make_recurrent([0.0] * 6, 'lstm', to_action=_to_int64)
    outputs = run(policy)
    for t, (found, (state, values)) in enumerate(zip(outputs, loop(network))):
      np.testing.assert_array_equal(found.action, np.argmax(values, axis=-1))
      assert found.action.dtype == tf.int64
      assert found.extras.step == ()
      assert_close(found.extras.state, state)
      for leaf in tree.flatten(found.extras.state):
        is_zero = np.all(leaf.numpy() == 0, axis=-1)
        np.testing.assert_array_equal(is_zero, firsts(t))
