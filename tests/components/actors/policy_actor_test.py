"""Tests of `components/actors/policy_actor.py`."""

import math

import dm_env
import numpy as np
import pytest
import tensorflow as tf

from repertory.components import actors, interfaces, variables
from repertory.components.config import settings
from repertory.components.runtime import compilation, numpy_functions
from repertory.environments import wrappers
from repertory.environments.batches import batch
from repertory.environments.games import catch
from support.agents import counting_policy
from support.replay import recording_adder


def make_environments(lengths):
  return batch.EnvironmentBatch(
    [
      wrappers.StepLimit(catch.Catch(seed=i), length)
      for i, length in enumerate(lengths)
    ]
  )


class _Counting(interfaces.Policy):
  """Scales observations, and adds the number of steps."""

  def __init__(self):
    super().__init__()
    self.scale = tf.Variable(1.0)

  def initial_state(self, environment_ids):
    return {'steps': tf.zeros([len(environment_ids)])}

  def step(self, observation, state):
    action = self.scale * tf.reduce_sum(observation, [1, 2]) + state['steps']
    return interfaces.PolicyOutput(action, (), {'steps': state['steps'] + 1.0})


class _Learner:
  """The calls of a learner whose variables are shared."""

  version = 0
  max_priority = 1.0


class TestPolicyActor:
  def make(self, lengths=(2, 3, 9), ids=(4, 0, 7), **kwargs):
    environments = make_environments(lengths)
    adder = recording_adder.RecordingAdder()
    actor = actors.PolicyActor(
      counting_policy.CountingPolicy(),
      environments.observation_spec(),
      ids,
      adder=adder,
      **kwargs,
    )
    return environments, adder, actor

  @pytest.mark.parametrize('jit_compile', [False, True])
  def test_rows_are_reset_each_for_itself(self, jit_compile, monkeypatch):
    if jit_compile:  # The policy's state is not recurrent.
      monkeypatch.setattr(compilation, 'WRAPS_OPERATIONS', False)
    lengths, ids = (2, 3, 9), (4, 0, 7)
    environments, adder, actor = self.make(
      lengths, ids, jit_compile=jit_compile
    )
    timestep = environments.reset()
    actor.observe_first(timestep)
    for t in range(40):
      # An episode of L steps has L + 1 timesteps, FIRST to LAST.
      counts = [t % (length + 1) for length in lengths]
      np.testing.assert_array_equal(
        timestep.step_type == dm_env.StepType.FIRST, np.equal(counts, 0)
      )
      action = actor.select_action(timestep.observation)
      assert isinstance(action, np.ndarray)
      assert action.dtype == np.int32
      np.testing.assert_array_equal(action, (np.add(ids, counts)) % 3)
      timestep = environments.step(action)
      actor.observe(action, timestep)
      added_action, added_timestep, extras = adder.calls[-1]
      np.testing.assert_array_equal(extras['count'], counts)
      np.testing.assert_array_equal(added_action, action)
      for leaf, expected in zip(added_timestep, timestep, strict=True):
        np.testing.assert_array_equal(leaf, expected)
    assert len(adder.calls) == 41
    assert adder.calls[0][0] == 'first'

  def test_observe_first_resets_all_rows(self):
    environments, _, actor = self.make()
    for _ in range(2):
      timestep = environments.reset()
      actor.observe_first(timestep)
      for count in range(2):
        action = actor.select_action(timestep.observation)
        np.testing.assert_array_equal(action, np.add((4, 0, 7), count) % 3)
        timestep = environments.step(action)
        actor.observe(action, timestep)

  def test_first_flags_are_those_of_the_coming_observation(self):
    seen = []

    class Spy(counting_policy.CountingPolicy):
      def reset_state(self, state, first):
        # Python, so it runs only in tracing; the rest in each call.
        tf.py_function(lambda f: seen.append(f.numpy().tolist()), [first], [])
        return super().reset_state(state, first)

    environments = make_environments([1, 2])
    actor = actors.PolicyActor(Spy(), environments.observation_spec(), range(2))
    timestep = environments.reset()
    actor.observe_first(timestep)
    for _ in range(6):
      action = actor.select_action(timestep.observation)
      timestep = environments.step(action)
      actor.observe(action, timestep)
    # Slot 0 alternates FIRST and LAST, slot 1 goes FIRST, MID, LAST.
    assert seen == [
      [True, True],
      [False, False],
      [True, False],
      [False, True],
      [True, False],
      [False, False],
    ]

  def test_xla_is_used_if_asked_for(self):
    class Uncompilable(interfaces.Policy):
      def initial_state(self, environment_ids):
        return tf.zeros([len(environment_ids), 2])  # Recurrent, so for XLA.

      def step(self, observation, state):
        tf.py_function(lambda: None, [], [])  # XLA cannot call Python.
        return interfaces.PolicyOutput(tf.zeros([1], tf.int32), (), state)

    environments = make_environments([2])
    timestep = environments.reset()
    parts = Uncompilable(), environments.observation_spec(), [0]
    actor = actors.PolicyActor(*parts, jit_compile=False)
    actor.select_action(timestep.observation)
    with pytest.raises(settings.SettingError, match=r'calls tf\.py_function,'):
      actors.PolicyActor(*parts, jit_compile=True)

  def test_observations_and_variables_reach_the_policy(self):
    class Scaling(interfaces.Policy):
      def __init__(self):
        super().__init__()
        self.scale = tf.Variable(1, dtype=tf.int32)

      def initial_state(self, environment_ids):
        return ()

      def step(self, observation, state):
        action = self.scale * tf.reduce_sum(
          tf.cast(observation['b'], tf.int32), axis=-1
        )
        return interfaces.PolicyOutput({'move': action}, (), state)

    policy = Scaling()
    spec = {
      'a': catch.Catch().observation_spec(),
      'b': catch.Catch(rows=2).observation_spec(),
    }
    spec['b'] = spec['b'].replace(shape=(3,))
    actor = actors.PolicyActor(policy, spec, [0, 1])
    observation = {
      'a': np.zeros([2, 10, 5], np.float32),
      'b': np.array([[1, 2, 3], [4, 5, 6]], np.float32),
    }
    action = actor.select_action(observation)
    assert action['move'].tolist() == [6, 15]
    policy.scale.assign(10)
    assert actor.select_action(observation)['move'].tolist() == [60, 150]

  def test_numpy_acts_with_the_newest_variables(self, monkeypatch):
    """Only if requested and if there is a variable client."""
    monkeypatch.setattr(numpy_functions, '_SHARE_OF_TIME', math.inf)
    policy = _Counting()
    spec = catch.Catch().observation_spec()
    learner = _Learner()
    actor = actors.PolicyActor(
      policy, spec, [0, 1],
      variables=variables.SharedVariableClient(learner), in_numpy=True,
    )  # fmt: skip
    assert actor.runs_in_numpy == compilation.WRAPS_OPERATIONS
    observation = np.ones([2, *spec.shape], spec.dtype)
    expected = spec.shape[0] * spec.shape[1]
    actor.observe_first(dm_env.restart(observation))
    actions = [actor.select_action(observation)]
    policy.scale.assign(10)
    learner.version = 1
    actions.append(actor.select_action(observation))
    assert actions[0].tolist() == [expected, expected]
    assert actions[1].tolist() == [10 * expected + 1, 10 * expected + 1]
    saved = actor.save()
    other = actors.PolicyActor(policy, spec, [0, 1])
    assert not other.runs_in_numpy
    other.restore(saved)
    assert other.select_action(observation).tolist() == [10 * expected + 2] * 2

  def test_adder_may_be_missing(self):
    environments = make_environments([2])
    actor = actors.PolicyActor(
      counting_policy.CountingPolicy(), environments.observation_spec(), [1]
    )
    timestep = environments.reset()
    actor.observe_first(timestep)
    action = actor.select_action(timestep.observation)
    actor.observe(action, environments.step(action))
    actor.update()
    assert action.tolist() == [1]

  def test_update_is_that_of_the_variables(self):
    calls = []

    class Client:
      def update(self, wait=False):
        calls.append(wait)

    _, _, actor = self.make(variables=Client())
    actor.update()
    actor.update(wait=True)
    actor.update(True)
    assert calls == [False, True, True]
