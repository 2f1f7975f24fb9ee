"""Tests of `components/inference/state_store.py`."""

import numpy as np
import pytest
import tensorflow as tf

from repertory.components import interfaces, specs
from repertory.components.inference import state_store
from support.agents import counting_policy
from support.launch.raw_lane import FIRST, MID

N = 7  # Environments.


def act(store, bucket, ids, step_types, observations):
  """Returns the leaves of actions and extras of the rows."""
  inputs = store.inputs[bucket]
  for array, rows in zip(inputs, (ids, step_types, observations), strict=True):
    array[: len(ids)] = rows
  actions, extras = store.act(bucket, len(ids))
  return [leaf[: len(ids)] for leaf in actions + extras]


def _check_zero(values):
  if np.any(values):
    raise ValueError('not zero')


def _waited_for(operation):
  """Returns all operations that precede this one."""
  found, left = set(), [operation]
  while left:
    operation = left.pop()
    inputs = [t.op for t in operation.inputs] + operation.control_inputs
    left += set(inputs) - found
    found.update(inputs)
  return found


@pytest.mark.parametrize('check', ['EagerPyFunc', 'GatherV2'])
def test_a_call_that_fails_changes_no_state(check):
  """By an assertion that no action depends on, or by the action itself."""

  class Failing(counting_policy.CountingPolicy):
    def step(self, observation, state):
      self.graph = tf.compat.v1.get_default_graph()
      output = super().step(observation, state)
      if check == 'EagerPyFunc':
        tf.py_function(_check_zero, [observation], [])
        return output
      zeros = tf.gather([0], tf.cast(observation, tf.int32))
      return output._replace(action=output.action + zeros)

  policy = Failing()
  store = state_store.StateStore(policy, specs.Array((), np.float32), N, [2])
  act(store, 2, [0, 1], [FIRST] * 2, [0.0, 0.0])
  with pytest.raises(tf.errors.OpError):
    act(store, 2, [0, 1], [MID] * 2, [0.0, 1.0])
  _, found = act(store, 2, [0, 1], [MID] * 2, [0.0, 0.0])
  assert found.tolist() == [1, 1]
  # The graph alone shows which of two operations is ordered first.
  operations = policy.graph.get_operations()
  updates = [o for o in operations if o.type == 'ResourceScatterUpdate']
  assert len(updates) == len(policy.initial_state([0]))
  for update in updates:
    assert check in {o.type for o in _waited_for(update)}


def test_nests_and_dtypes():
  class Summing(interfaces.Policy):
    def initial_state(self, environment_ids):
      return ()

    def step(self, observation, state):
      total = tf.reduce_sum(observation['b'], 1) + tf.cast(
        observation['a'], tf.int64
      )
      return interfaces.PolicyOutput(
        {'x': total, 'y': (tf.cast(total, tf.float32) / 2,)},
        {'flag': total > 10},
        state,
      )

  spec = {'a': specs.Array((), np.uint8), 'b': specs.Array((2,), np.int64)}
  store = state_store.StateStore(Summing(), spec, N, [3])
  inputs = store.inputs[3]
  assert [(a.shape, a.dtype) for a in inputs] == [((3,), np.int32)] * 2 + [
    ((3,), np.uint8),
    ((3, 2), np.int64),
  ]
  inputs[0][:2], inputs[1][:2] = [5, 2], FIRST
  inputs[2][:2], inputs[3][:2] = [1, 200], [[2, 3], [4, -5]]
  (x, y), extras = store.act(3, 2)
  assert x[:2].tolist() == [1 + 2 + 3, 200 + 4 - 5]
  assert y[:2].tolist() == [6 / 2, 199 / 2]
  assert store.unflatten_extras(extras)['flag'][:2].tolist() == [False, True]
  (empty,) = store.empty_extras(4)
  assert (empty.shape, empty.dtype) == ((4,), np.bool_)
  assert not empty.any()
