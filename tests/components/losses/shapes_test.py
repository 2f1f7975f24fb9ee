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

# Valid arguments, tensors first, and the indices of those without a gradient.
_CASES = {
  losses.vtrace: ([_STEPS] * 5 + [_STEPS[0], _MASK], range(6)),
  losses.generalized_advantages: (
    [_STEPS] * 3 + [_STEPS[0], _MASK], range(4)
  ),
  losses.sequence_double_q_errors: (
    [_VALUES, _ACTIONS, _STEPS, _STEPS, _VALUES, _MASK, 2], (2, 3, 4)
  ),
  losses.sequence_priorities: ([_STEPS, _MASK, 0.9], ()),
  losses.policy_gradient_loss: ([_STEPS, _STEPS, _MASK], [1]),
  losses.entropy_loss: ([_STEPS, _MASK], ()),
  losses.value_loss: ([_STEPS, _STEPS, _MASK], [1]),
  losses.importance_ratios: ([_STEPS, _STEPS, _MASK], ()),
  losses.clipped_surrogate_loss: ([_STEPS, _STEPS, _MASK, 0.2], [1]),
  losses.clipped_value_loss: ([_STEPS, _STEPS, _STEPS, _MASK, 0.2], [1, 2]),
  losses.standardize: ([_STEPS, _MASK], ()),
  losses.approximate_kl: ([_STEPS, _MASK], ()),
  losses.explained_variance: ([_STEPS, _STEPS, _MASK], ()),
  losses.deterministic_policy_loss: ([_PAIR, _PAIR], [1]),
  losses.vmpo_e_step: ([_STEPS, _MASK, _ONE, 0.1], [0]),
  losses.vmpo_policy_loss: ([_STEPS, _STEPS, _MASK], [0]),
  losses.mpo_e_step: ([_PAIR, _PAIR, _ONE, 0.1], [0, 1]),
  losses.mpo_policy_loss: ([_PAIR, _PAIR], ()),
  losses.mpo_kl_loss: ([_PAIR, _ROW[:2], 0.1], ()),
  losses.categorical_mixture: ([_VALUES, _VALUES[..., 0]], ()),
  losses.categorical_td_targets: (
    [_ROW, _ROW, _PAIR, np.float32([0, 1])], range(4)
  ),
  losses.categorical_mixture_targets: (
    [_ROW, _ROW, _floats(4, 3, 2), _floats(4, 3), _floats(4, 3), _ROW[:2]],
    range(6),
  ),
  losses.quantile_huber: ([_PAIR, _PAIR, _PAIR, 1.0], [2]),
  losses.importance_weights: ([_ROW, _INDICES + 9, 0.5], ()),
  losses.clipped_double_q_targets: ([_ROW, _ROW, _PAIR], range(3)),
  losses.conservative_q_loss: ([_PAIR, _PAIR, _ROW], ()),
  losses.large_margin_loss: ([_PAIR, _INDICES, 0.8], ()),
  losses.munchausen_bonus: ([_PAIR, _INDICES, 0.9, 0.03, -1.0], [0]),
  losses.soft_q_targets: ([_ROW, _ROW, _PAIR, _ROW, _ONE], range(5)),
  losses.soft_policy_loss: ([_ROW, _ROW, _ONE], [2]),
  losses.truncated_quantiles: ([_VALUES, 1], ()),
  losses.squared_cloning_loss: ([_PAIR, _PAIR], ()),
  losses.td3_bc_policy_loss: ([_ROW, _PAIR, _PAIR, 2.5], ()),
  losses.discriminator_loss: ([_ROW, _ROW > 0.5, _ROW > 0], ()),
  losses.gradient_penalty: ([_PAIR, _ROW > 0], ()),
  losses.prediction_errors: ([_PAIR, _PAIR], [1]),
}  # fmt: skip
_NAMES = [loss.__name__ for loss in _CASES]


def _call(loss, arguments):
  options = {'lambda_': 0.9} if loss is losses.generalized_advantages else {}
  return loss(*arguments, **options)


def _tensors(arguments):
  return [tf.constant(x) if np.ndim(x) else x for x in arguments]


@pytest.mark.parametrize('loss', _CASES, ids=_NAMES)
def test_wrong_shapes_are_named(loss):
  arguments, _ = _CASES[loss]
  for index, argument in enumerate(arguments):
    if np.ndim(argument):
      wrong = _tensors(arguments)
      wrong[index] = wrong[index][:1, ..., None]
      with pytest.raises(ValueError, match=r'^\w+ must have (rank|shape)'):
        _call(loss, wrong)


@pytest.mark.parametrize('loss', _CASES, ids=_NAMES)
def test_no_gradient_flows_into_targets(loss):
  arguments, without = _CASES[loss]
  inputs = _tensors(arguments)
  sources = [tf.constant(arguments[i]) for i in without]
  for i, source in zip(without, sources):
    inputs[i] = source
  with tf.GradientTape() as tape:
    tape.watch(sources)
    outputs = tf.nest.flatten(_call(loss, inputs))
  assert tape.gradient(outputs, sources) == [None] * len(sources)


def test_compiled_equals_eager():
  """All in one program, because compilation takes long."""

  def call():
    return {
      loss.__name__: _call(loss, _tensors(arguments))
      for loss, (arguments, _) in _CASES.items()
    }

  compiled = tf.function(call, jit_compile=True, autograph=False)()
  for name, expected in call().items():
    tf.nest.map_structure(
      lambda x, y: np.testing.assert_allclose(x, y, 1e-4, 1e-5),
      compiled[name], expected,
    )  # fmt: skip
