"""Tests of `agents/vmpo/learning.py`."""

import dataclasses

import numpy as np
import tensorflow as tf
import tree

from repertory.agents import vmpo
from repertory.components import specs
from support.agents import numpy_vmpo, sequence_updates

B, T = sequence_updates.B, sequence_updates.T
MASK = sequence_updates.MASK
KINDS = {
  'discrete': sequence_updates.SPEC,
  'continuous': sequence_updates.SPEC._replace(
    actions=specs.BoundedArray((2,), np.float32, -1, 1)
  ),
}
# No defaults, so that ignored settings are found.
CONFIG = vmpo.VMPOConfig(
  shared_sizes=(4,),
  hidden_sizes=(3,),
  scale_rewards=False,
  unroll_length=T,
  batch_size=B,
  num_epochs=2,
  num_minibatches=1,
  target_update_period=2,
  discount=0.8,
  lambda_=0.7,
  normalize_advantages=False,
  epsilon=0.3,
  epsilon_policy=0.04,
  epsilon_mean=0.05,
  epsilon_stddev=0.02,
  initial_temperature=0.8,
  initial_alpha_policy=0.6,
  initial_alpha_mean=0.7,
  initial_alpha_stddev=1.2,
  learning_rate=0.05,
  dual_learning_rate=0.1,
  adam_epsilon=0.1,  # Does not amplify rounding errors.
  max_gradient_norm=0.9,
  baseline_cost=0.7,
  max_abs_reward=1.5,
  jit_compile=False,
)


def make(config=CONFIG, kind='discrete'):
  builder, spec = vmpo.VMPOBuilder(config), KINDS[kind]
  network = builder.make_network(spec)
  random = np.random.default_rng(0)
  for variable in network.variables:
    variable.assign(random.normal(size=variable.shape))
  return network, builder.make_update(network, spec)


def make_sample(network, kind='discrete', spoil=0.0, seed=3):
  """A batch of any actions; padded steps are filled with `spoil`."""
  random = np.random.default_rng(seed)
  batch = sequence_updates.make_unrolls(random, spoil)
  state = sequence_updates.random_state(network, random)
  if kind == 'discrete':
    sample = random.integers(3, size=[B, T]).astype(np.int32)
  else:
    sample = random.normal(size=[B, T, 2]).astype(np.float32)
  log_prob = np.where(MASK, random.normal(size=[B, T]) - 1, -spoil)
  extras = {
    'sample': tf.constant(sample),
    'log_prob': tf.constant(log_prob, tf.float32),
  }
  return sequence_updates.to_sample(batch, sample, state, extras=extras)


def to_arrays(sample):
  """Time-major inputs of the twin."""
  data = sample.data
  names = ('observation', 'reward', 'discount', 'mask')
  found = {name: getattr(data, name) for name in names}
  return {
    name: np.asarray(x).swapaxes(0, 1) for name, x in
    {**found, **data.extras}.items()
  }  # fmt: skip


def duals_of(update):
  variables = [v for dual in update._duals for v in dual.variables]
  return {v.name: v.numpy().astype(np.float64) for v in variables}


def arrays(module):
  return {v.name: v.numpy().astype(np.float64) for v in module.variables}


def assert_close(found, expected):
  assert found.keys() == expected.keys()
  for name, value in expected.items():
    np.testing.assert_allclose(
      found[name], value, rtol=1e-3, atol=1e-4, err_msg=name
    )


class TestUpdate:
  def test_equals_the_twin(self):
    config = dataclasses.replace(
      CONFIG, normalize_advantages=True, scale_rewards=True
    )
    network, update = make(config)
    twin = numpy_vmpo.Twin(
      config, arrays(update._online), arrays(network), duals_of(update)
    )
    call = tf.function(update, autograph=False)
    for seed in range(3):  # The second one copies to what acts.
      sample = make_sample(network, seed=seed)
      metrics = call(sample).metrics
      assert_close(metrics, twin.step(to_arrays(sample)))
      assert_close(arrays(update._online), twin.online)
      assert_close(arrays(network), twin.target)
      assert_close(duals_of(update), twin.duals)

  def test_recurrent_state_starts_from_the_acting_network(self):
    config = dataclasses.replace(
      CONFIG, core='lstm', core_size=4, num_epochs=1, learning_rate=1e-12
    )
    network, update = make(config)
    duals = duals_of(update)
    samples = [make_sample(network, spoil=spoil) for spoil in (0.0, 500.0)]
    outcomes = sequence_updates.compiled_outcomes(update, samples, None)
    tree.map_structure(
      lambda x, y: np.testing.assert_allclose(x, y, rtol=1e-4, atol=1e-5),
      *outcomes,
    )
    data, batch = samples[0].data, to_arrays(samples[0])
    output, _ = network.unroll(
      tf.constant(batch['observation']), tf.transpose(data.first), data.state
    )
    parameters, values = output.parameters.numpy(), output.value.numpy()
    losses = numpy_vmpo.Losses(
      config, batch, parameters[:-1],
      *numpy_vmpo.estimate(config, batch, values, config.lambda_,
                           config.max_abs_reward), duals,
    )  # fmt: skip
    metrics = outcomes[0][0]
    for name, value in losses.metrics(parameters[:-1], values[:-1]).items():
      np.testing.assert_allclose(
        metrics[name], value, rtol=1e-3, atol=1e-5, err_msg=name
      )

  def test_takes_all_gradient_steps_and_anneals(self):
    config = dataclasses.replace(
      CONFIG, num_epochs=3, num_minibatches=4, anneal_learner_steps=1
    )
    network, update = make(config)
    call = tf.function(update, autograph=False)
    sample = make_sample(network)
    assert call(sample).metrics['gradient_steps'] == 12
    learned = arrays(update._online)
    call(sample)  # The learning rate is 0.
    for name, value in arrays(update._online).items():
      np.testing.assert_array_equal(value, learned[name])

  def test_both_networks_begin_with_that_of_the_policy(self):
    network, update = make()
    given = [v.ref() for v in update.exports['policy']]
    assert given == [v.ref() for v in network.variables]
    for name, value in arrays(network).items():
      np.testing.assert_array_equal(arrays(update._online)[name], value)
