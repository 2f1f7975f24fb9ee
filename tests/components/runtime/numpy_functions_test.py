"""Tests of policies run by NumPy, against TensorFlow."""

import dm_env
import numpy as np
import pytest
import sonnet as snt
import tensorflow as tf
import tree

from repertory.components import distributions, networks, policies, specs
from repertory.components.actions import action_masks, discrete_actions
from repertory.components.distributions import categorical
from repertory.components.networks import masked_network
from repertory.components.runtime import (
  compilation,
  numpy_functions,
)

_FLAT = {
  'number': specs.DiscreteArray(3),
  'vector': specs.Array([2, 2], np.float64),
}
_MASKED = {'action_mask': specs.Array([5], np.bool_), **_FLAT}
_MASKS = action_masks.find(
  specs.EnvironmentSpec(_MASKED, specs.DiscreteArray(5), None, None)
)
_COMBINATIONS = discrete_actions.DiscreteActions(
  [specs.BoundedArray([2], np.int8, -1, 1), specs.DiscreteArray(2)]
)
_ONE = discrete_actions.DiscreteActions(specs.DiscreteArray(5, np.int64))


def _make_network(head, sizes=(8,), observations=None, body='mlp'):
  observations = observations or _FLAT
  torso = networks.ObservationTorso(observations, sizes, body=body)
  network = snt.Sequential([torso, head])
  networks.create_variables(network, observations)
  return network


def _make_masked(head):
  return masked_network.mask_actions(
    _make_network(head, observations=_MASKED), _MASKS
  )


def _make_masked_stochastic():
  network = networks.SequenceNetwork(
    networks.ObservationTorso(_MASKED, (8,)), None, networks.ActorCriticHead(5)
  )
  network.create_variables(_MASKED)
  return policies.StochasticPolicy(
    masked_network.mask_actions(network, _MASKS),
    distributions.make_distribution(specs.DiscreteArray(5)),
    seed=1,
  )


def _make_stochastic(core='none', evaluation=False, actions=None):
  actions = actions or specs.DiscreteArray(5)
  distribution = distributions.make_distribution(actions)
  network = networks.SequenceNetwork(
    networks.ObservationTorso(_FLAT, ()),
    networks.make_core(core, 4),
    networks.ActorCriticHead(distribution.num_parameters, (8, 8)),
  )
  network.create_variables(_FLAT)
  return policies.StochasticPolicy(
    network, distribution, seed=1, evaluation=evaluation
  )


def _make_normalized():
  policy = _make_stochastic()
  normalizer = networks.ObservationNormalizer(_FLAT)
  policy._network = networks.NormalizedNetwork(policy._network, normalizer)
  return policy


def _make_greedy(network, epsilon=0.5, **settings):
  return policies.EpsilonGreedyPolicy(network, [epsilon] * 4, 1, **settings)


def _compile(policy, num_rows, observations):
  def act(observation, step_type, state):
    output = policy.act(observation, step_type, state)
    return output.action, output.extras, output.state

  state = policy.initial_state(range(num_rows))
  return compilation.CompiledFunction(
    act,
    (
      specs.tensor_spec(observations, num_rows),
      tf.TensorSpec([num_rows], tf.int32),
      compilation.specs_of(state),
    ),
    jit_compile=False,
  ), state  # fmt: skip


_POLICIES = {
  'greedy': lambda: _make_greedy(_make_network(snt.Linear(5)), 0.0),
  'annealed': lambda: _make_greedy(
    _make_network(networks.DuelingHead(18)),
    anneal_steps=10,
    to_action=_COMBINATIONS.to_action,
  ),
  'categorical': lambda: policies.CategoricalPolicy(
    _make_network(snt.Linear(5)), _ONE, 1, num_random_steps=3
  ),
  'stochastic': _make_stochastic,
  'normalized': _make_normalized,
  'its mode': lambda: _make_stochastic(evaluation=True),
}
_MASKED_POLICIES = {
  'masked greedy': lambda: _make_greedy(
    _make_masked(networks.DuelingHead(5)), masked=True
  ),
  'masked categorical': lambda: policies.CategoricalPolicy(
    _make_masked(snt.Linear(5)), _ONE, 1, num_random_steps=3
  ),
  'masked stochastic': _make_masked_stochastic,
}


@pytest.mark.skipif(
  not compilation.WRAPS_OPERATIONS, reason='There is an accelerator.'
)
@pytest.mark.parametrize('name', [*_POLICIES, *_MASKED_POLICIES])
@pytest.mark.parametrize('num_rows', [1, 3])
def test_acts_as_tensorflow(name, num_rows):
  """For several steps, with new variables and with ends of episodes."""
  is_masked = name in _MASKED_POLICIES
  policy = {**_POLICIES, **_MASKED_POLICIES}[name]()
  observations = _MASKED if is_masked else _FLAT
  compiled, state = _compile(policy, num_rows, observations)
  version = [0]
  act = numpy_functions.find(policy, compiled, num_rows, lambda: version[0])
  assert act is not None
  random = np.random.default_rng(1)
  state = [np.asarray(leaf) for leaf in tree.flatten(state)]
  for step in range(8):
    if step == 4:
      for variable in policy.variables:
        if variable.dtype.is_floating and variable.shape.rank:
          drawn = tf.random.stateless_uniform(variable.shape, [1, step])
          variable.assign(tf.cast(drawn, variable.dtype))
      version[0] += 1
    step_type = np.full([num_rows], dm_env.StepType.MID, np.int32)
    step_type[0] = dm_env.StepType.LAST if step == 2 else dm_env.StepType.MID
    mask = [random.random([num_rows, 5]) < 0.5] if is_masked else []
    inputs = (
      *mask,
      random.integers(3, size=[num_rows]).astype(np.int32),
      random.normal(size=[num_rows, 2, 2]),
      step_type,
      *state,
    )
    ours, theirs = act(*inputs), compiled(*inputs)
    for found, expected in zip(ours, theirs, strict=True):
      assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
      np.testing.assert_allclose(found, expected.numpy(), rtol=1e-5, atol=1e-5)
    state = ours[len(ours) - len(state) :]


def test_choices_of_probability_0_are_never_drawn():
  """Also not where rounding leaves a number beyond the last sum."""
  logits = np.array([[-1e30, 0, 0, -1e30]] * 3, np.float32)
  drawn = np.array([0, 0.7, 1], np.float32)
  sample, _ = categorical.choose_in_numpy(
    logits, np.zeros(3), lambda counters: (drawn, drawn, counters)
  )
  assert sample.tolist() == [1, 2, 2]


class OwnLinear(snt.Linear):
  """A user's layer."""


_IMAGE = specs.BoundedArray([40, 40, 3], np.uint8, 0, 255)


@pytest.mark.parametrize(
  ('make', 'observations'),
  [
    (lambda: _make_stochastic('lstm'), _FLAT),
    (lambda: _make_stochastic(actions=specs.Array([2], np.float32)), _FLAT),
    (lambda: _make_greedy(_make_network(OwnLinear(5))), _FLAT),
    # Too large.
    (lambda: _make_greedy(_make_network(snt.Linear(5), (400, 400))), _FLAT),
    (lambda: _make_greedy(
      _make_network(snt.Linear(5), body='layer_norm_mlp')), _FLAT),
    (lambda: _make_greedy(
      _make_network(snt.Linear(5), (8,), _IMAGE)), _IMAGE),
    # A user's conversion of actions, in TensorFlow.
    (lambda: _make_greedy(
      _make_network(snt.Linear(5)), to_action=lambda n: tf.cast(n, 'int8')),
      _FLAT),
  ],
)  # fmt: skip
def test_tensorflow_acts_otherwise(make, observations):
  policy = make()
  compiled, _ = _compile(policy, 1, observations)
  assert numpy_functions.find(policy, compiled, 1, lambda: 0) is None


def test_tensorflow_acts_if_results_differ():
  policy = _POLICIES['greedy']()
  compiled, _ = _compile(policy, 1, _FLAT)
  policy._to_action = lambda number: number + 1
  assert numpy_functions.find(policy, compiled, 1, lambda: 0) is None


def test_large_product_of_a_row():
  """Large matrix–vector products are computed in another way."""
  layer = snt.Linear(700)
  row = np.linspace(0, 1, 20, dtype=np.float32)[None]
  expected = layer(row)
  weights = numpy_functions.Weights(1)
  function = numpy_functions.forward(layer, weights)
  weights.read()
  np.testing.assert_allclose(function(row), expected, rtol=1e-5, atol=1e-5)
