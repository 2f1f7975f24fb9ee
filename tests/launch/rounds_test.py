"""Tests of the deterministic schedule of rounds."""

import threading

import dm_env
import numpy as np
import pytest
import tensorflow as tf
from dm_env import specs

from repertory import launch
from repertory.agents import impala
from repertory.components import variables
from repertory.components.runtime import signals
from repertory.launch.nodes import rounds
from repertory.launch.topologies import sebulba
from support.agents import acting_policies
from support.replay import replay_fixture

_SECONDS = 60.0


def _make(schedule, num_actors, restored=None):
  publisher = variables.Publisher([tf.Variable(0.0)])
  publisher.keep(3)
  publisher.publish(0, 1.0)
  return rounds.Rounds(
    schedule, num_actors, publisher, max_steps=10, num_episodes=5,
    timeout_seconds=_SECONDS, stop=signals.StopSignal(),
    restored=restored or rounds.Restored(),
  )  # fmt: skip


@pytest.mark.parametrize(
  ('num_environments', 'versions', 'num_versions'),
  [
    # Of round k there may be three: k − 1, and what is learned from the rounds
    # k − 1 and k.
    (4, [0, 0, 1, 2, 3], 3),
    (6, [0, 0, 1, 3, 4], 4),  # Of 0, 0, 6, 12 and 18 items. And 2 × 6 / 4 + 1.
  ],
)
def test_schedule(num_environments, versions, num_versions):
  schedule = rounds.Schedule(20, num_environments, batch_size=4)
  assert [schedule.version_of(k) for k in range(5)] == versions
  assert schedule.num_versions == num_versions


class TestRounds:
  @pytest.fixture(name='lockstep')
  def _lockstep(self):
    schedule = rounds.Schedule(period=2, num_environments=4, batch_size=4)
    return _make(schedule, 2)

  def test_all_end_after_the_same(self, lockstep):
    num_rounds = {}

    def act(name, steps_per_round):
      number = 0
      while lockstep.begin(
        number, number * steps_per_round, signals.StopSignal()
      ):
        number += 1
      num_rounds[name] = number

    threads = [
      threading.Thread(target=act, args=[i, steps])
      for i, steps in enumerate((3, 1))
    ]
    for thread in threads:
      thread.start()
    for thread in threads:
      thread.join(_SECONDS)
    # 4 steps per round: after three there are 12, on which round 4 depends.
    assert num_rounds == {0: 4, 1: 4}

  def test_ends_after_the_last_round_begun(self, lockstep):
    stop = signals.StopSignal()
    arrived = threading.Thread(target=lockstep.begin, args=[0, 0, stop])
    arrived.start()
    assert lockstep.begin(0, 0, stop)
    arrived.join(_SECONDS)
    assert lockstep.begin(1, 1, stop)  # The other one has not come to it.
    lockstep.end()
    assert lockstep.begin(1, 1, stop)
    assert not lockstep.begin(2, 2, stop)
    assert not lockstep.begin(2, 2, stop)

  def test_resumes_from_a_later_round(self):
    schedule = rounds.Schedule(period=2, num_environments=4, batch_size=4)
    restored = rounds.Restored(4, {3: 8, 4: 12})
    lockstep = _make(schedule, 1, restored=restored)
    stop = signals.StopSignal()
    assert lockstep.begin(4, 12, stop)  # Before round 3 there were but 8 steps.
    assert not lockstep.begin(5, 15, stop)

  def test_wait_for_others_has_a_time_out(self, lockstep):
    lockstep._timeout_seconds = 0.0
    with pytest.raises(TimeoutError, match='all actors to arrive at round 0'):
      lockstep.begin(0, 0, signals.StopSignal())


class TestSnapshots:
  @pytest.fixture(autouse=True)
  def _set_up(self):
    schedule = rounds.Schedule(period=1, num_environments=4, batch_size=4)
    self.rounds = _make(schedule, 2)

  def arrive(self, index, number, takes_place=True):
    deposit = rounds.ActorDeposit(4 * number, 1, b'here')
    self.rounds.arrive(index, number, takes_place, lambda: deposit)

  def begin(self, number):
    threads = [
      threading.Thread(
        target=self.rounds.begin,
        args=[number, 2 * number, signals.StopSignal()],
      )
      for _ in range(2)
    ]
    for thread in threads:
      thread.start()
    for thread in threads:
      thread.join(_SECONDS)

  def test_the_end_replaces_a_requested_round(self):
    self.begin(0)
    assert not self.rounds.prepare(0)
    self.begin(1)
    self.arrive(0, 1)
    self.begin(2)  # The end, for another reason than that.
    self.arrive(0, 2, takes_place=False)
    self.arrive(1, 2, takes_place=False)
    for _ in range(2):  # A checkpoint that was due, and the last one.
      moment = self.rounds.take()
      assert moment is not None
      assert moment.num_inserts == 8
      assert moment.counts == {'steps': 8, 'episodes': 5 + 2}

  def test_waits_before_an_update_from_the_round(self):
    self.begin(0)
    assert not self.rounds.prepare(0)
    call = replay_fixture.Call(self.rounds.prepare, 1)  # Of 4 before it.
    assert call.is_waiting(0.1)
    self.begin(1)
    self.arrive(0, 1)
    assert call.is_waiting(0.1)
    self.arrive(1, 1)
    assert call.result(60)


class _Episodes(dm_env.Environment):
  """Environment with episodes of 2 to 50 steps, determined by the seed."""

  def __init__(self, seed):
    self._length = (2, 50, 7, 13)[seed % 4]
    self._num_steps = self._length

  def reset(self):
    self._num_steps = 0
    return dm_env.restart(np.zeros(1, np.float32))

  def step(self, action):
    if self._num_steps == self._length:
      return self.reset()
    self._num_steps += 1
    observation = np.full(1, self._num_steps / 50, np.float32)
    if self._num_steps == self._length:
      return dm_env.termination(float(action), observation)
    return dm_env.transition(float(action), observation)

  def observation_spec(self):
    return specs.Array((1,), np.float32)

  def action_spec(self):
    return specs.DiscreteArray(2)


def _run(directory, actor_threads):
  builder = acting_policies.row_by_row(impala.IMPALABuilder)(
    impala.IMPALAConfig(
      unroll_length=5, batch_size=4, hidden_sizes=(8,), jit_compile=False
    )
  )
  experiment = launch.Experiment(
    builder, _Episodes, max_steps=600,
    directory=str(directory), num_actors=4,
    environments_per_actor=1, evaluation_episodes=0, deterministic=True,
    timeout_seconds=_SECONDS,
  )  # fmt: skip
  return launch.run(experiment, sebulba.Sebulba(actor_threads), display=False)


@pytest.mark.chaos
def test_run_depends_on_the_seed_not_on_the_number_of_threads(tmp_path):
  found = set()
  for actor_threads in (1, 2, 4):
    result = _run(tmp_path / str(actor_threads), actor_threads)
    status = result.status
    assert 600 <= status.steps <= 600 + 2 * 4 * 5
    found.add((result.variables_sha256, status.steps, status.learner_steps))
  assert len(found) == 1


def test_tables_that_are_no_queue_are_refused(tmp_path):
  experiment = launch.make_experiment(
    'dqn', 'catch', max_steps=1_000, directory=str(tmp_path), deterministic=True
  )
  with pytest.raises(ValueError, match=r"deterministic must be false.*'dqn'"):
    launch.run(experiment, 'sebulba', display=False)
  assert not list(tmp_path.iterdir())
