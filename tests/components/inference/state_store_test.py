"""Tests of `components/inference/state_store.py`."""

import numpy as np
import pytest
import tensorflow as tf
import tree

from repertory.components import interfaces, specs
from repertory.components.inference import state_store
from repertory.components.runtime import compilation
from support.agents import acting_policies, counting_policy
from support.launch.raw_lane import FIRST, LAST, MID
from support.system import rare_cases

N = 7  # Environments.


class Twin:
  """The policy itself as a reference, for one environment at a time."""

  def __init__(self, policy, num_environments):
    self._policy = policy
    self._states = [policy.initial_state([i]) for i in range(num_environments)]

  def act(self, i, step_type, observation):
    output = self._policy.act(
      tree.map_structure(lambda leaf: tf.constant(leaf[None]), observation),
      tf.constant([step_type]),
      self._states[i],
    )
    if step_type != LAST:  # The output of ended rows is not compared.
      self._states[i] = output.state
    return [
      leaf.numpy()[0] for leaf in tree.flatten((output.action, output.extras))
    ]


def act(store, bucket, ids, step_types, observations):
  """Returns the leaves of actions and extras of the rows."""
  inputs = store.inputs(bucket)
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


@pytest.mark.parametrize('kind', ['counting', *acting_policies.MAKERS])
@pytest.mark.parametrize(
  'jit_compile', rare_cases.daily([False, True], [False])
)
def test_equals_acting_with_the_policy(kind, jit_compile, monkeypatch):
  if jit_compile:  # For the others too, as beside an accelerator.
    monkeypatch.setattr(compilation, 'WRAPS_OPERATIONS', False)
  spec = acting_policies.SPEC
  if kind == 'counting':
    policy = counting_policy.CountingPolicy()
  else:
    policy = acting_policies.MAKERS[kind](spec, N)
  store = state_store.StateStore(
    policy, spec.observations, N, [1, 3, 6], jit_compile=jit_compile
  )
  twin, random = Twin(policy, N), np.random.default_rng(0)
  has_started, used, num_compared = set(), set(), 0
  for _ in range(25):
    num_rows = random.integers(1, 7)
    ids = random.permutation(N)[:num_rows]
    bucket = random.choice([b for b in store.buckets if b >= num_rows])
    used.add((bucket, num_rows))
    step_types = random.choice([FIRST, MID, MID, LAST], num_rows)
    step_types = [
      int(s) if i in has_started else FIRST for i, s in zip(ids, step_types)
    ]
    has_started.update(ids)
    observations = random.normal(size=(num_rows, 3)).astype(np.float32)
    found = act(store, bucket, ids, step_types, observations)
    for row, (i, step_type) in enumerate(zip(ids, step_types)):
      expected = twin.act(i, step_type, observations[row])
      if step_type == LAST:
        continue
      num_compared += 1
      for a, b in zip(found, expected, strict=True):
        assert a.dtype == b.dtype
        np.testing.assert_allclose(a[row], b, 1e-4, 1e-5)
  assert num_compared > 50
  assert len(used) > 5


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
  inputs = store.inputs(3)
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
