"""Tests of properties that losses share: shapes, gradients and compilation."""

import numpy as np
import pytest
import tensorflow as tf

from repertory.components import losses


def _floats(*shape):
  return np.random.default_rng(0).uniform(0.1, 0.9, shape).astype(np.float32)


_ROW, _PAIR = _floats(4), _floats(4, 2)
_STEPS, _VALUES = _floats(5, 2), _floats(6, 2, 3)
_MASK = np.array([[True, True]] * 4 + [[False, True]])
_INDICES, _ACTIONS = np.zeros([4], np.int32), np.zeros([5, 2], np.int32)
_ONE = np.float32(0.5)

# Valid arguments; the wrong one, by index; and the start of the message.
_CASES = {
  'vtrace': (
    losses.vtrace, [_STEPS] * 5 + [_STEPS[0], _MASK], {}, [4, 5],
    ['values must have shape', 'bootstrap_value must have shape'],
  ),
  'generalized_advantages': (
    losses.generalized_advantages, [_STEPS] * 3 + [_STEPS[0], _MASK],
    {'lambda_': 0.9}, [1, 3],
    ['discounts must have shape', 'bootstrap_value must have shape'],
  ),
  'sequence_double_q_errors': (
    losses.sequence_double_q_errors,
    [_VALUES, _ACTIONS, _STEPS, _STEPS, _VALUES, _MASK, 2], {}, [4, 5],
    ['q and target_q must', 'mask must have shape'],
  ),
  'sequence_priorities': (
    losses.sequence_priorities, [_STEPS, _MASK, 0.9], {}, [1],
    ['mask must have shape'],
  ),
  'policy_gradient_loss': (
    losses.policy_gradient_loss, [_STEPS, _STEPS, _MASK], {}, [1],
    ['advantages must have shape'],
  ),
  'entropy_loss': (
    losses.entropy_loss, [_STEPS, _MASK], {}, [1], ['mask must have shape']
  ),
  'value_loss': (
    losses.value_loss, [_STEPS, _STEPS, _MASK], {}, [1],
    ['targets must have shape'],
  ),
  'importance_ratios': (
    losses.importance_ratios, [_STEPS, _STEPS, _MASK], {}, [1],
    ['behavior_log_probs must have shape'],
  ),
  'clipped_surrogate_loss': (
    losses.clipped_surrogate_loss, [_STEPS, _STEPS, _MASK, 0.2], {}, [1],
    ['advantages must have shape'],
  ),
  'clipped_value_loss': (
    losses.clipped_value_loss, [_STEPS, _STEPS, _STEPS, _MASK, 0.2], {}, [2],
    ['targets must have shape'],
  ),
  'standardize': (
    losses.standardize, [_STEPS, _MASK], {}, [1], ['mask must have shape']
  ),
  'approximate_kl': (
    losses.approximate_kl, [_STEPS, _MASK], {}, [1], ['mask must have shape']
  ),
  'explained_variance': (
    losses.explained_variance, [_STEPS, _STEPS, _MASK], {}, [1],
    ['targets must have shape'],
  ),
  'deterministic_policy_loss': (
    losses.deterministic_policy_loss, [_PAIR, _PAIR], {}, [0, 1],
    [r'a_t and dqda_t must have the same shape \[B, D\]'] * 2,
  ),
  'vmpo_e_step': (
    losses.vmpo_e_step, [_STEPS, _MASK, _ONE, 0.1], {}, [1],
    ['mask must have shape'],
  ),
  'vmpo_policy_loss': (
    losses.vmpo_policy_loss, [_STEPS, _STEPS, _MASK], {}, [1],
    ['log_probs must have shape'],
  ),
  'mpo_e_step': (
    losses.mpo_e_step, [_PAIR, _PAIR, _ONE, 0.1], {}, [1],
    ['log_prior must have rank 2'],
  ),
  'mpo_policy_loss': (
    losses.mpo_policy_loss, [_PAIR, _PAIR], {}, [0], ['probs must have rank 2']
  ),
  'mpo_kl_loss': (
    losses.mpo_kl_loss, [_PAIR, _ROW[:2], 0.1], {}, [1],
    ['alpha must have rank 1'],
  ),
  'categorical_mixture': (
    losses.categorical_mixture, [_VALUES, _VALUES[..., 0]], {}, [1],
    ['log_weights must have rank 2'],
  ),
  'categorical_td_targets': (
    losses.categorical_td_targets, [_ROW, _ROW, _PAIR, np.float32([0, 1])], {},
    [2, 3], ['logits_t must have rank 2', 'z must have rank 1'],
  ),
  'categorical_mixture_targets': (
    losses.categorical_mixture_targets,
    [_ROW, _ROW, _floats(4, 3, 2), _floats(4, 3), _floats(4, 3), _ROW[:2]],
    {}, [2, 4], ['logits_t must have rank 3', 'bonuses_t must have rank 2'],
  ),
  'quantile_huber': (
    losses.quantile_huber, [_PAIR, _PAIR, _PAIR, 1.0], {}, [1, 2],
    ['taus must have rank 2', 'targets must have rank 2'],
  ),
  'importance_weights': (
    losses.importance_weights, [_ROW, _INDICES + 9, 0.5], {}, [1],
    ['table_sizes must have rank 1'],
  ),
  'clipped_double_q_targets': (
    losses.clipped_double_q_targets, [_ROW, _ROW, _PAIR], {}, [2],
    ['q_t must have rank 2'],
  ),
  'conservative_q_loss': (
    losses.conservative_q_loss, [_PAIR, _PAIR, _ROW], {}, [2],
    ['q_data must have rank 1'],
  ),
  'large_margin_loss': (
    losses.large_margin_loss, [_PAIR, _INDICES, 0.8], {}, [0],
    ['q must have rank 2'],
  ),
  'munchausen_bonus': (
    losses.munchausen_bonus, [_PAIR, _INDICES, 0.9, 0.03, -1.0], {}, [0],
    ['q_tm1 must have rank 2'],
  ),
  'soft_q_targets': (
    losses.soft_q_targets, [_ROW, _ROW, _PAIR, _ROW, _ONE], {}, [3],
    ['log_prob_t must have rank 1'],
  ),
  'soft_policy_loss': (
    losses.soft_policy_loss, [_ROW, _ROW, _ONE], {}, [0], ['q must have rank 1']
  ),
  'truncated_quantiles': (
    losses.truncated_quantiles, [_VALUES, 1], {}, [0],
    ['quantiles must have rank 3'],
  ),
  'squared_cloning_loss': (
    losses.squared_cloning_loss, [_PAIR, _PAIR], {}, [1],
    ['a_data must have rank 2'],
  ),
  'td3_bc_policy_loss': (
    losses.td3_bc_policy_loss, [_ROW, _PAIR, _PAIR, 2.5], {}, [0],
    ['q must have rank 1'],
  ),
  'discriminator_loss': (
    losses.discriminator_loss, [_ROW, _ROW > 0.5, _ROW > 0], {}, [0],
    ['logits must have rank 1'],
  ),
  'gradient_penalty': (
    losses.gradient_penalty, [_PAIR, _ROW > 0], {}, [0],
    ['gradients must have rank 2'],
  ),
  'prediction_errors': (
    losses.prediction_errors, [_PAIR, _PAIR], {}, [1],
    ['target must have rank 2'],
  ),
}  # fmt: skip


def _tensors(arguments):
  return [tf.constant(x) if np.ndim(x) else x for x in arguments]


@pytest.mark.parametrize('name', _CASES)
def test_wrong_shapes_are_named(name):
  loss, arguments, options, indices, messages = _CASES[name]
  for index, message in zip(indices, messages, strict=True):
    wrong = _tensors(arguments)
    wrong[index] = wrong[index][:1, ..., None]
    with pytest.raises(ValueError, match=f'^{message}'):
      loss(*wrong, **options)


@pytest.mark.parametrize(
  ('name', 'without'),
  [
    ('vtrace', range(6)),
    ('generalized_advantages', range(4)),
    ('sequence_double_q_errors', (2, 3, 4)),
    ('policy_gradient_loss', (1,)),
    ('value_loss', (1,)),
    ('clipped_surrogate_loss', (1,)),
    ('clipped_value_loss', (1, 2)),
    ('vmpo_e_step', (0,)),
    ('vmpo_policy_loss', (0,)),
    ('mpo_e_step', (0, 1)),
    ('categorical_td_targets', range(4)),
    ('categorical_mixture_targets', range(6)),
    ('quantile_huber', (2,)),
    ('clipped_double_q_targets', range(3)),
    ('munchausen_bonus', (0,)),
    ('soft_q_targets', range(5)),
    ('soft_policy_loss', (2,)),
    ('prediction_errors', (1,)),
  ],
)
def test_no_gradient_flows_into_targets(name, without):
  loss, arguments, options, *_ = _CASES[name]
  inputs = _tensors(arguments)
  sources = [tf.constant(arguments[i]) for i in without]
  for i, source in zip(without, sources):
    inputs[i] = source
  with tf.GradientTape() as tape:
    tape.watch(sources)
    outputs = tf.nest.flatten(loss(*inputs, **options))
  assert tape.gradient(outputs, sources) == [None] * len(sources)


def test_compiled_equals_eager():
  """All in one program, because compilation takes long."""

  def call():
    return {
      name: loss(*_tensors(arguments), **options)
      for name, (loss, arguments, options, *_) in _CASES.items()
    }

  compiled = tf.function(call, jit_compile=True, autograph=False)()
  for name, expected in call().items():
    tf.nest.map_structure(
      lambda x, y: np.testing.assert_allclose(x, y, 1e-4, 1e-5),
      compiled[name], expected,
    )  # fmt: skip
