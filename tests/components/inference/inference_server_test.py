"""Tests of an inference server with thin actors in real environments."""

import functools

import numpy as np
import pytest
import tensorflow as tf

from repertory.components import actors, variables
from repertory.components.actors import environment_loop
from repertory.components.network import network_interfaces
from repertory.environments.games import catch, memory_chain
from support.agents import acting_policies, counting_policy
from support.launch import inference_fixture, raw_lane
from support.replay import recording_adder, replay_fixture

NUM_ENVIRONMENTS = 10

ENVIRONMENTS = {
  'catch': functools.partial(catch.Catch, 4, 5),
  'memory_chain': functools.partial(memory_chain.MemoryChain, 3),
}


def make_policy(kind, spec):
  if kind == 'counting':
    return counting_policy.CountingPolicy()
  return acting_policies.MAKERS[kind](spec, NUM_ENVIRONMENTS)


def local_calls(policy, make_environment, ids, num_steps):
  """Returns the calls of a local actor's adder."""
  environments = inference_fixture.make_batch(make_environment, ids)
  adder = recording_adder.RecordingAdder()
  actor = actors.PolicyActor(
    policy, environments.observation_spec(), ids, adder=adder
  )
  loop = environment_loop.EnvironmentLoop(environments, actor)
  for _ in range(num_steps):
    loop.step()
  return adder.calls


class TestLikeLocal:
  def check(self, kind, make_environment, connections, num_steps, **settings):
    """Compares all lanes, which run at once, with local actors."""
    spec = inference_fixture.make_spec(make_environment)
    with inference_fixture.serving(
      make_policy(kind, spec),
      spec,
      num_environments=NUM_ENVIRONMENTS,
      **settings,
    ) as it:
      loops = [
        inference_fixture.ThinLoop(it, make_environment, ids, actor=str(ids))
        for ids in connections
      ]
      calls = [replay_fixture.Call(loop.run, num_steps) for loop in loops]
      for call in calls:
        call.result(60)
      for ids in connections:
        adder = it.adder(str(ids))
        assert adder.is_closed
        expected = local_calls(
          make_policy(kind, spec), make_environment, ids, num_steps
        )
        all_ended = num_steps // 5 if len(ids) == 1 else None
        inference_fixture.assert_same_calls(adder.calls, expected, all_ended)

  @pytest.mark.parametrize(
    ('kind', 'host'),
    [
      ('recurrent_epsilon_greedy', 'localhost'),
      ('stochastic', '127.0.0.1'),
    ],
  )
  def test_several_lanes_of_several_sizes(self, kind, host):
    self.check(
      kind,
      ENVIRONMENTS['memory_chain'],
      [(3,), (0, 5, 9), (1, 8)],
      40,
      buckets=(1, 2, 4, 6),
      interface=network_interfaces.Interface(host, ('lo',)),
    )


class TestRaw:
  def test_last_has_no_answer(self):
    with inference_fixture.serving() as it:
      connection = it.connection([3, 5])
      connection.step(0)
      last, first = (
        raw_lane.timestep_frame(connection.observations[0], step_type)
        for step_type in (raw_lane.LAST, raw_lane.FIRST)
      )
      connection.stream.sendall(last + first)
      actions = np.frombuffer(
        raw_lane.read_frame(connection.stream)[1], np.int32
      )
      # The one answer is to FIRST: the count of steps is 0.
      assert actions[:10].reshape(2, 5)[:, 2].tolist() == [0, 0]
      connection.step()
      connection.stream.sendall(last)
      connection.finish()  # The next message is a goodbye.
      calls = it.adders[0].calls
    assert [call[1].step_type.tolist()[0] for call in calls[:3]] == [0, 2, 0]
    assert len(calls) == 5
    np.testing.assert_array_equal(calls[2][0], np.zeros([2, 5]))
    np.testing.assert_array_equal(calls[2][2]['count'], np.zeros([2]))

  def test_versions_are_of_the_actions(self):
    policy = inference_fixture.EchoPolicy()
    theirs = [tf.Variable(0) for _ in range(2)]
    publisher = variables.Publisher(theirs)
    published = variables.LocalVariableClient(publisher, policy.versions)

    def publish(version):
      for variable in theirs:
        variable.assign(version)
      publisher.publish(version, 1.0)

    publish(5)
    with inference_fixture.serving(policy, variables=published) as it:
      connection = it.connection([0, 1, 2, 3], num_frames=4)
      versions = [5, 5, 6, 8, 8]
      for now, version in enumerate(versions):
        publish(version)
        assert connection.step(now)[0, 3] == version
      connection.finish()
      adder = it.adders[0]
    # Each step has the version of the action that led there.
    assert adder.versions == versions[:-1]
    for version, (action, _, _) in zip(versions, adder.calls[1:]):
      assert action[0, 3] == version

  def test_variables_that_never_come_end_the_server(self):
    class Failing:
      version = 0

      def update(self, wait=False):
        raise TimeoutError('no variables')

    with (
      pytest.raises(TimeoutError, match='no variables'),
      inference_fixture.serving(variables=Failing()) as it,
    ):
      it.connection([0]).send(0)
      it.call.result()
