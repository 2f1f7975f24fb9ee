"""Tests of `agents/vmpo/learning.py`."""

import dataclasses

import numpy as np
import tensorflow as tf

from repertory.agents import vmpo
from support.agents import (
  acting_policies,
  numpy_vmpo,
  sequence_updates,
  transition_updates,
)

B, T = sequence_updates.B, sequence_updates.T
arrays = transition_updates.arrays
assert_close = transition_updates.assert_all_close
SPEC = sequence_updates.SPEC
# No defaults, so that ignored settings are found.
CONFIG = vmpo.VMPOConfig(
  shared_sizes=(4,),
  hidden_sizes=(3,),
  normalize_rewards=False,
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


def make(config=CONFIG):
  builder = vmpo.VMPOBuilder(config)
  network = builder.make_network(SPEC)
  acting_policies.fill(network.variables)
  return network, builder.make_update(network, SPEC)


def make_sample(network, seed=3):
  """A batch of any actions."""
  random = np.random.default_rng(seed)
  batch = sequence_updates.make_unrolls(random)
  state = sequence_updates.random_state(network, random)
  sample = random.integers(3, size=[B, T]).astype(np.int32)
  extras = {
    'sample': tf.constant(sample),
    'log_prob': tf.constant(random.normal(size=[B, T]) - 1, tf.float32),
  }
  return sequence_updates.to_sample(batch, sample, state, extras=extras)


def duals_of(update):
  variables = [v for dual in update._duals for v in dual.variables]
  return {v.name: v.numpy().astype(np.float64) for v in variables}


class TestUpdate:
  def test_equals_the_twin(self):
    config = dataclasses.replace(
      CONFIG, normalize_advantages=True, normalize_rewards=True
    )
    network, update = make(config)
    twin = numpy_vmpo.Twin(
      config, arrays(update._online), arrays(network), duals_of(update)
    )
    call = tf.function(update, autograph=False)
    for seed in range(3):  # The second one copies to what acts.
      sample = make_sample(network, seed=seed)
      metrics = call(sample).metrics
      assert_close(metrics, twin.step(sequence_updates.to_arrays(sample)))
      assert_close(arrays(update._online), twin.online)
      assert_close(arrays(network), twin.target)
      assert_close(duals_of(update), twin.duals)

  def test_recurrent_state_starts_from_the_acting_network(self):
    config = dataclasses.replace(
      CONFIG, core='lstm', core_size=4, num_epochs=1, learning_rate=1e-12
    )
    network, update = make(config)
    duals = duals_of(update)
    sample = make_sample(network)
    found = tf.function(update, autograph=False)(sample).metrics
    data, batch = sample.data, sequence_updates.to_arrays(sample)
    output, _ = network.unroll(
      tf.constant(batch['observation']), tf.transpose(data.first), data.state
    )
    parameters, values = output.parameters.numpy(), output.value.numpy()
    losses = numpy_vmpo.Losses(
      config, batch, parameters[:-1],
      *numpy_vmpo.estimate(config, batch, values, config.lambda_,
                           config.max_abs_reward), duals,
    )  # fmt: skip
    expected = losses.metrics(parameters[:-1], values[:-1])
    assert_close({name: found[name] for name in expected}, expected)

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
