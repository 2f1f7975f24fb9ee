"""Tests of `components/actors/policy_actor.py`."""

import acme
import dm_env
import numpy as np
import tensorflow as tf
from acme.utils import loggers as acme_loggers

from repertory.components import actors, interfaces, variables
from repertory.components.runtime import compilation
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

  def in_numpy(self, weights):
    scale = weights.add(self.scale)

    def step(observation, state):
      sums = observation[0].sum((1, 2))
      return weights.arrays[scale] * sums + state[0], (), (state[0] + 1,)

    return step


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

  def test_rows_are_reset_each_for_itself(self):
    lengths, ids = (2, 3, 9), (4, 0, 7)
    environments, adder, actor = self.make(lengths, ids)
    timestep = environments.reset()
    actor.observe_first(timestep)
    actor.select_action(timestep.observation)
    actor.observe_first(timestep)  # It resets all rows again.
    adder.calls.pop()
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

  def test_observations_and_variables_reach_the_policy(self):
    class Nested(_Counting):
      def step(self, observation, state):
        output = super().step(observation['b'], state)
        return output._replace(action={'move': output.action})

    policy, board = Nested(), catch.Catch().observation_spec()
    actor = actors.PolicyActor(policy, {'a': board, 'b': board}, [0, 1])
    rows = np.arange(100, dtype=np.float32).reshape([2, 10, 5])
    observation = {'a': np.zeros_like(rows), 'b': rows}
    action = actor.select_action(observation)
    assert action['move'].tolist() == [1225, 3725]
    policy.scale.assign(10)
    # The policy counts its steps.
    assert actor.select_action(observation)['move'].tolist() == [12251, 37251]

  def test_numpy_acts_with_the_newest_variables(self):
    """Only if requested and if there is a variable client."""
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


class TestUnbatched:
  def test_runs_in_acmes_loop(self):
    adder = recording_adder.RecordingAdder()
    environment = catch.Catch(seed=3)
    actor = actors.PolicyActor(
      counting_policy.CountingPolicy(),
      environment.observation_spec(),
      [2],
      adder=adder,
    )
    logger = acme_loggers.InMemoryLogger()
    loop = acme.EnvironmentLoop(
      environment, actors.Unbatched(actor), logger=logger
    )
    loop.run(num_episodes=30)
    rows = logger.data
    assert len(rows) == 30
    assert {row['episode_length'] for row in rows} == {9}
    # The same actions in every episode: some balls are caught, some not.
    assert {float(row['episode_return']) for row in rows} == {-1, 1}
    assert len(adder.calls) == 30 * 10
    kind, first = adder.calls[0]
    assert kind == 'first'
    assert (first.reward.tolist(), first.discount.tolist()) == ([0], [1])
    for step, (action, timestep, extras) in enumerate(adder.calls[1:10]):
      # The policy of id 2 counts from 0 in each episode.
      assert action.tolist() == [(2 + step) % 3]
      assert extras['count'].tolist() == [step]
      assert timestep.observation.shape == (1, 10, 5)
      assert timestep.last().tolist() == [step == 8]
