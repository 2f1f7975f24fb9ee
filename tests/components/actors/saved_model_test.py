"""Tests of `components/actors/saved_model.py`."""

import os

import numpy as np
import pytest
import tensorflow as tf
import tree

from repertory.components import interfaces, policies, specs
from repertory.components.actions import action_scaling
from repertory.components.actors import saved_model
from support.agents import counting_policy

_SPEC = specs.Array((2,), np.float32)


class _Chained(interfaces.Policy):
  """Acts by `a`, which depends on `b`, which depends on itself."""

  def initial_state(self, environment_ids):
    size = len(environment_ids)
    names = ('a', 'b', 'c', 'd')
    return {name: tf.zeros([size]) for name in names}

  def step(self, observation, state):
    return interfaces.PolicyOutput(
      action=state['a'] + tf.reduce_sum(observation, -1),
      extras=state['c'],
      state={
        'a': state['b'] + 1.0,
        'b': 2.0 * state['b'] + 1.0,
        # Unused.
        'c': state['c'] + state['a'],
        'd': state['d'] + observation[:, 0],
      },
    )


def export(policy, path, spec=_SPEC):
  def initial_leaves(num_rows):
    state = policy.initial_state(range(num_rows))
    return [leaf.numpy() for leaf in tree.flatten(state)]

  names = saved_model.name_leaves(spec, 'observation')
  saved_model.export(policy, spec, names, initial_leaves, str(path))
  return tf.saved_model.load(str(path)).signatures


def names_of(signature):
  return sorted(signature.structured_input_signature[1])


def test_state_is_what_an_action_may_depend_on(tmp_path):
  signatures = export(_Chained(), tmp_path / 'model')
  act = signatures['serving_default']
  assert names_of(act) == ['observation', 'state_a', 'state_b']
  assert sorted(act.structured_outputs) == ['action', 'state_a', 'state_b']
  state = signatures['initial_state'](batch_size=tf.constant(2))
  actions = []
  for _ in range(4):
    state = act(observation=tf.ones([2, 2]), **state)
    actions.append(state.pop('action').numpy().tolist())
  # a: 0, b + 1 with b = 0, 1, 3; and 2 of the observation.
  assert actions == [[2, 2], [3, 3], [4, 4], [6, 6]]


@pytest.mark.parametrize('evaluation', [True, False])
def test_noise_is_the_only_state_of_continuous_actions(tmp_path, evaluation):
  policy = policies.ContinuousPolicy(
    lambda observation: observation,
    lambda parameters, noise: parameters + 0.1 * noise,
    action_scaling.ActionScaling(specs.BoundedArray((2,), np.float32, -2, 2)),
    seed=1,
    num_random_steps=3,
    evaluation=evaluation,
  )
  act = export(policy, tmp_path / 'model')['serving_default']
  if not evaluation:
    assert names_of(act) == ['observation', 'state_random', 'state_steps']
    return
  assert names_of(act) == ['observation']
  # More rows than a model with random numbers supports; actions within ± 2.
  action = act(observation=tf.fill([2000, 2], 0.25))['action']
  np.testing.assert_array_equal(action, np.full([2000, 2], 0.5))


def test_rows_that_differ_are_limited(tmp_path):
  limit = saved_model.MAX_DIFFERING_ROWS
  policy = counting_policy.CountingPolicy()
  initial_state = export(policy, tmp_path / 'a')['initial_state']
  state = initial_state(batch_size=tf.constant(limit))
  assert state['state_id'].numpy().tolist() == list(range(limit))
  with pytest.raises(tf.errors.InvalidArgumentError, match='at most 1024'):
    initial_state(batch_size=tf.constant(limit + 1))
  initial_state = export(_Chained(), tmp_path / 'b')['initial_state']
  assert initial_state(batch_size=tf.constant(2000))['state_a'].shape == [2000]


def test_names_are_paths(tmp_path):
  nest = {'arm.left': [_SPEC, _SPEC], 'eye': _SPEC}
  assert saved_model.name_leaves(nest, 'observation') == [
    'observation_arm_left_0', 'observation_arm_left_1', 'observation_eye'
  ]  # fmt: skip
  with pytest.raises(ValueError, match='must have paths that differ'):
    saved_model.name_leaves({'a': {'b': 1}, 'a_b': 2})


def test_appears_as_a_whole_or_not_at_all(tmp_path, monkeypatch):
  empty = tmp_path / 'parent' / 'empty'
  empty.mkdir(parents=True)
  assert export(_Chained(), empty)
  full = tmp_path / 'full'
  full.mkdir()
  (full / 'file').touch()
  with pytest.raises(OSError, match='not empty'):
    export(_Chained(), full)

  def fail(module, folder, signatures):
    os.makedirs(folder)
    raise OSError('no space')

  monkeypatch.setattr(tf.saved_model, 'save', fail)
  with pytest.raises(OSError, match='no space'):
    export(_Chained(), tmp_path / 'new')
  assert sorted(os.listdir(tmp_path)) == ['full', 'parent']
