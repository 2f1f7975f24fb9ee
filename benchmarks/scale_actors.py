"""Some actors of `scale.py`, in threads of a process.

They step no environment and have no policy, but to others they are actors: each
takes leases of steps, adds the steps of a recorded rollout to replay, reports
four times a second, and fetches variables.

It is told what to do by a pickle on its standard input, starts when it reads
another byte, and prints what it did as JSON.
"""

import dataclasses
import json
import pickle
import random
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import scale_nodes

from repertory.components import replay
from repertory.launch.coordination import kinds, reports
from repertory.launch.nodes import served_variables

_EPISODE_STEPS = 10  # One that is reported, not one that is added.


@dataclasses.dataclass(frozen=True)
class Settings:
  """What the actors of a process do.

  Attributes:
    session: The run's.
    rollout: Actions and timesteps of one environment, `[1, ...]`, from a FIRST
      to a LAST.
    indices: Numbers of the actors.
    addresses: Where the nodes take calls, by name.
    token: What who calls the coordinator must know.
    replay_address: Where the replay server takes items.
    steps_per_second: How fast each actor steps; infinite for as fast as it can.
    fetches_per_second: How often each actor fetches variables.
    warm_up_seconds: How long it acts before it is measured.
    seconds: How long it is measured.
  """

  session: Any
  rollout: Sequence[tuple[Any, Any]]
  indices: Sequence[int]
  addresses: Mapping[str, str]
  token: str
  replay_address: str
  steps_per_second: float
  fetches_per_second: float
  warm_up_seconds: float
  seconds: float


class _Beat:
  """Says when something is due that is done so often.

  Attributes:
    due: When next.
  """

  def __init__(self, per_second: float, start: float):
    self._period = 1 / per_second if per_second else float('inf')
    # Not all actors at the same moment.
    self.due = start + random.random() * self._period

  def take(self, now: float) -> bool:
    """Returns whether it is due, and looks ahead to the next time."""
    if now < self.due:
      return False
    # Who cannot keep up leaves some out.
    self.due = max(self.due + self._period, now - self._period)
    return True


class _Actor:
  """Does what an actor's node and its report's thread do, in one thread."""

  def __init__(self, settings: Settings, index: int):
    self.name = kinds.ACTOR.numbered(index)
    self.counts = dict.fromkeys(('reports', 'leases', 'fetches', 'steps'), 0)
    self.fetched_bytes = 0
    self.report_seconds: list[float] = []
    self._settings = settings
    self._coordinator = scale_nodes.make_coordinator_client(
      settings.addresses, self.name, settings.token
    )
    self._learner = scale_nodes.make_client(
      settings.addresses[kinds.LEARNER.name], settings.token
    )
    connection = replay.Connection(settings.replay_address)
    self._adder = settings.session.make_road(connection).make_adder(
      1, priority=lambda: 1.0, version=lambda: 0
    )
    self._position = 0
    self._adder.add_first(settings.rollout[0][1])
    self._granted = self._steps = self._total = 0
    self._fetch = None
    self._coordinator.register(self.name, {'environment_ids': [index]})
    self._report()
    self._learner.get_variables(['learner_steps'])

  def run(self, start: float) -> None:
    settings = self._settings
    begin = start + settings.warm_up_seconds
    end = begin + settings.seconds
    is_free = settings.steps_per_second == float('inf')
    steps = _Beat(0 if is_free else settings.steps_per_second, start)
    report = _Beat(1 / reports.PERIOD_SECONDS, start)
    fetch = _Beat(settings.fetches_per_second, start)
    is_measured = False
    while (now := time.monotonic()) < end:
      if not is_measured and now >= begin:
        is_measured = True
        self.counts = dict.fromkeys(self.counts, 0)
        self.fetched_bytes = 0
        self.report_seconds.clear()
      if is_free or steps.take(now):
        self._step()
      if report.take(now):
        self._report()
      if fetch.take(now):
        self._fetch_variables()
      if not is_free:
        due = min(steps.due, report.due, fetch.due, end)
        time.sleep(max(0.0, due - time.monotonic()))

  def _step(self) -> None:
    if not self._granted:
      self._coordinator.return_steps(self.name, 0)
      self._granted = self._coordinator.acquire_steps(self.name, 1)
      self.counts['leases'] += 1
    rollout = self._settings.rollout
    self._position = (self._position + 1) % len(rollout)
    self._adder.add(*rollout[self._position])
    self._granted -= 1
    self._steps += 1
    self._total += 1
    self.counts['steps'] += 1

  def _report(self) -> None:
    num_episodes = self._total // _EPISODE_STEPS
    num_episodes -= (self._total - self._steps) // _EPISODE_STEPS
    episodes = [(1.0, _EPISODE_STEPS)] * num_episodes
    report = reports.ActorReport(
      self._steps, self._total, episodes, version=0, age_seconds=1.0
    )
    self._steps = 0
    start = time.perf_counter()
    self._coordinator.report_actor(self.name, report)
    self.report_seconds.append(time.perf_counter() - start)
    self.counts['reports'] += 1

  def _fetch_variables(self) -> None:
    """Asks for new ones when those that it asked for have come."""
    if self._fetch is not None:
      if not self._fetch.done():
        return
      policy, *_ = served_variables.unpack(self._fetch.result())
      self.fetched_bytes += sum(array.nbytes for array in policy)
      self.counts['fetches'] += 1
    names = ['policy', 'learner_steps', 'max_priority']
    self._fetch = self._learner.futures.get_variables(names)


def main() -> None:
  """Runs what the standard input says."""
  settings: Settings = pickle.load(sys.stdin.buffer)
  actors = [_Actor(settings, index) for index in settings.indices]
  print('ready', flush=True)
  sys.stdin.buffer.read(1)
  start = time.monotonic()
  threads = [
    threading.Thread(target=actor.run, args=[start], daemon=True)
    for actor in actors
  ]
  for thread in threads:
    thread.start()
  for thread in threads:
    thread.join()
  sums = {
    name: sum(actor.counts[name] for actor in actors)
    for name in actors[0].counts
  }
  seconds = np.concatenate([actor.report_seconds for actor in actors])
  result = {
    **sums,
    'fetched_bytes': sum(actor.fetched_bytes for actor in actors),
    'report_seconds': seconds.tolist(),
  }
  print(json.dumps(result), flush=True)
  sys.stdin.buffer.read(1)  # Items may be on their way until all are done.


if __name__ == '__main__':
  main()
