"""Tests of `components/actions/discrete_actions.py`."""

import itertools

import numpy as np
import pytest
import tensorflow as tf
import tree

from repertory.components import specs
from repertory.components.actions import discrete_actions

DIALS = specs.BoundedArray((2,), np.int64, [5, -1], [6, 1])
GRID = specs.BoundedArray((2, 2), np.int8, 0, [[1, 2], [0, 1]])
MOVE = specs.DiscreteArray(3, np.int32)
SPECS = {
  'dials': DIALS,
  'scalar': specs.BoundedArray((), np.uint8, 250, 255),
  'whole_int8': specs.BoundedArray((1,), np.int8, -128, 127),
  'large': specs.BoundedArray((1,), np.uint64, 2**63, 2**63 + 2),
  'dict': {'move': MOVE, 'dials': DIALS},
  'list': [MOVE, GRID],
  'many': specs.BoundedArray((40,), np.int32, 0, [1, *[0] * 38, 2]),
}


def combinations(spec):
  """Yields all actions, as rows of the integers of all leaves."""
  ranges = []
  for leaf in tree.flatten(spec):
    minimum, maximum = (
      np.broadcast_to(bound, leaf.shape).ravel().tolist()
      for bound in (leaf.minimum, leaf.maximum)
    )
    ranges += [range(a, b + 1) for a, b in zip(minimum, maximum)]
  return itertools.product(*ranges)


@pytest.mark.parametrize('name', SPECS)
def test_numbers_all_combinations(name):
  spec = SPECS[name]
  actions = discrete_actions.DiscreteActions(spec)
  expected = list(combinations(spec))
  assert actions.num_actions == len(expected)

  @tf.function(jit_compile=name == 'dict', autograph=False)
  def there_and_back(numbers):
    action = actions.to_action(numbers)
    return action, actions.from_action(action)

  numbers = np.arange(len(expected), dtype=np.int32)
  found, back = there_and_back(tf.constant(numbers))
  tree.assert_same_structure(found, spec)
  columns = []
  for leaf, array in zip(tree.flatten(spec), tree.flatten(found)):
    assert array.dtype == leaf.dtype
    assert array.shape == [len(expected), *leaf.shape]
    for row in array.numpy():
      leaf.validate(row)
    columns.append(array.numpy().reshape(len(expected), -1).astype(object))
  np.testing.assert_array_equal(np.concatenate(columns, 1), expected)
  np.testing.assert_array_equal(back, numbers)


def test_by_hand():
  actions = discrete_actions.DiscreteActions({'move': MOVE, 'dials': DIALS})
  # Sorted: dials of 2 and 3, move of 3. 5 + 1, −1 + 2, 2: (1 · 3 + 2) · 3 + 2.
  action = {'dials': tf.constant([[6, 1]], tf.int64), 'move': tf.constant([2])}
  np.testing.assert_array_equal(actions.from_action(action), [17])


def test_takes_sequences_of_steps_and_padding():
  actions = discrete_actions.DiscreteActions(DIALS)
  # Zeros are the padding of sequences, and out of the first dial's bounds.
  steps = tf.constant([[[6, 1], [5, 0]], [[0, 0], [9, 9]]], tf.int64)
  np.testing.assert_array_equal(actions.from_action(steps), [[5, 1], [1, 5]])


def test_lists_may_have_become_tuples():
  actions = discrete_actions.DiscreteActions([MOVE, MOVE])
  action = tf.constant([1]), tf.constant([2])
  np.testing.assert_array_equal(actions.from_action(action), [5])


@pytest.mark.parametrize('dtype', [np.int64, np.uint8])
def test_one_discrete_action_is_its_number(dtype):
  # More than there may be combinations, too.
  actions = discrete_actions.DiscreteActions(specs.DiscreteArray(250, dtype))
  assert actions.num_actions == 250
  action = actions.to_action(tf.constant([3, 249]))
  assert action.dtype == dtype
  np.testing.assert_array_equal(action, [3, 249])
  number = actions.from_action(action)
  assert number.dtype == tf.int32
  np.testing.assert_array_equal(number, [3, 249])
  many = discrete_actions.DiscreteActions(specs.DiscreteArray(10**6))
  assert many.num_actions == 10**6


@pytest.mark.parametrize(
  ('spec', 'message'),
  [
    (specs.Array((), np.int32), r'^actions must be a DiscreteArray'),
    (specs.Array((2,), np.float32), r'^actions must be a DiscreteArray'),
    (
      {'move': MOVE, 'force': specs.BoundedArray((), np.float32, -1, 1)},
      r"^actions\['force'\] must be a DiscreteArray.*got BoundedArray",
    ),
    (
      specs.BoundedArray((6,), np.int32, 0, 4),
      r'at most 4,096 combinations.*got 15,625',
    ),
    ((), 'must have at least one array'),
  ],
)
def test_refuses(spec, message):
  with pytest.raises(ValueError, match=message):
    discrete_actions.DiscreteActions(spec)
