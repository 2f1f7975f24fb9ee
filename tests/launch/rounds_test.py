"""Tests of the deterministic schedule of rounds."""

import dm_env
import numpy as np
import pytest
from dm_env import specs

from repertory import launch
from repertory.agents import impala
from repertory.components.runtime import signals
from repertory.launch.nodes import rounds
from repertory.launch.platform import watchdog
from repertory.launch.topologies import sebulba
from support.agents import acting_policies
from support.launch import sessions


def test_wait_for_actors_has_a_time_out(tmp_path, monkeypatch):
  monkeypatch.setattr(watchdog, 'START_SECONDS', 0.2)
  experiment = _experiment(tmp_path, timeout_seconds=0.1)
  with sessions.open_session(experiment, sebulba.Sebulba(1)) as session:
    transport = session.make_in_process_transport(signals.StopSignal())
    lockstep = rounds.Rounds(session, 2, transport)
    with pytest.raises(TimeoutError, match=r'0.2 .*arrive at round 0'):
      lockstep.wait_for_actors(signals.StopSignal())


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


def _experiment(directory, **settings):
  builder = acting_policies.row_by_row(impala.IMPALABuilder)(
    impala.IMPALAConfig(
      unroll_length=5, batch_size=4, hidden_sizes=(8,), jit_compile=False
    )
  )
  return launch.Experiment(
    builder, _Episodes, directory=str(directory), num_actors=4,
    environments_per_actor=1, evaluation_episodes=0, deterministic=True,
    **{'max_steps': 600, 'timeout_seconds': 60.0, **settings},
  )  # fmt: skip


@pytest.mark.chaos
def test_run_depends_on_the_seed_not_on_the_number_of_threads(tmp_path):
  found = set()
  for actor_threads in (1, 2, 4):
    result = launch.run(
      _experiment(tmp_path / str(actor_threads)),
      sebulba.Sebulba(actor_threads),
      display=False,
    )
    status = result.status
    assert 600 <= status.steps <= 600 + 4 * 5
    found.add((result.variables_sha256, status.steps, status.learner_steps))
  assert len(found) == 1


def test_tables_that_are_no_queue_are_refused(tmp_path):
  experiment = launch.make_experiment(
    'dqn', 'catch', max_steps=1_000, directory=str(tmp_path), deterministic=True
  )
  with pytest.raises(ValueError, match=r"deterministic must be false.*'dqn'"):
    launch.run(experiment, 'sebulba', display=False)
  assert not list(tmp_path.iterdir())
