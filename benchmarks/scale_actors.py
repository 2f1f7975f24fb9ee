"""Simulated actors of `scale.py`, in threads of a process.

They have neither environment nor policy, but make all calls of an actor: each
acquires step budgets, adds the steps of a recorded rollout to replay, reports
four times a second, and fetches variables.

The process reads its settings as a pickle from its standard input, starts when
it reads another byte, and prints the results as JSON.
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

from repertory.components.network import callers
from repertory.components.runtime import signals
from repertory.launch.coordination import kinds, reports
from repertory.launch.launchers import calls, rpc

WARM_UP_SECONDS = 2.0
_CALL_SECONDS = 120.0
_EPISODE_STEPS = 10  # Of reported episodes, not of those added to replay.


@dataclasses.dataclass(frozen=True)
class Settings:
  """Settings of the actors of a process.

  Attributes:
    session: Session of the run.
    rollout: Actions and timesteps of one environment, `[1, ...]`, from a FIRST
      to a LAST.
    indices: Indices of the actors.
    addresses: Addresses of the nodes, by name.
    token: Authentication token of the coordinator.
    replay_address: Address of the replay server.
    steps_per_second: Steps of each actor per second; infinite for no limit.
    fetches_per_second: Variable fetches of each actor per second.
    seconds: Duration of the measurement.
  """

  session: Any
  rollout: Sequence[tuple[Any, Any]]
  indices: Sequence[int]
  addresses: Mapping[str, str]
  token: str
  replay_address: str
  steps_per_second: float
  fetches_per_second: float
  seconds: float


class _Beat:
  """Periodic timer.

  Attributes:
    due: Time of the next event.
  """

  def __init__(self, per_second: float, start: float):
    self._period = 1 / per_second if per_second else float('inf')
    # A random phase, so that actors do not act in lockstep.
    self.due = start + random.random() * self._period

  def take(self, now: float) -> bool:
    """Returns whether an event is due, and schedules the next one."""
    if now < self.due:
      return False
    # If overloaded, events are skipped.
    self.due = max(self.due + self._period, now - self._period)
    return True


class _Actor:
  """Makes the calls of an actor's node and of its report thread."""

  def __init__(self, settings: Settings, index: int):
    self.name = kinds.ACTOR.numbered(index)
    self.counts = dict.fromkeys(('reports', 'leases', 'fetches', 'steps'), 0)
    self.report_seconds: list[float] = []
    self._settings = settings
    self._coordinator = make_coordinator_client(
      settings.addresses, self.name, settings.token
    )
    self._learner = _make_client(
      settings.addresses[kinds.LEARNER.name], settings.token
    )
    transport = settings.session.connect(
      settings.replay_address, signals.StopSignal()
    )
    self._adder = transport.make_adder(
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
    begin = start + WARM_UP_SECONDS
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
    """Fetches new variables once the last fetch has completed."""
    if self._fetch is not None:
      if not self._fetch.done():
        return
      pickle.loads(self._fetch.result())
      self.counts['fetches'] += 1
    names = ['policy', 'learner_steps', 'max_priority']
    self._fetch = self._learner.futures.get_variables(names)


def _make_client(address: str, token: str) -> Any:
  library = rpc.get(rpc.chosen())
  return library.make_client(address, _CALL_SECONDS, token)


def make_coordinator_client(
  addresses: Mapping[str, str], name: str, token: str
) -> Any:
  """Returns a client of the coordinator, for the node of that name."""
  client = _make_client(addresses[kinds.COORDINATOR.name], token)
  return calls.AuthenticatedClient(client, callers.Caller(name, token=token))


def main() -> None:
  """Runs the actors described by the standard input."""
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
  result = {
    **sums,
    'report_seconds': [one for a in actors for one in a.report_seconds],
  }
  print(json.dumps(result), flush=True)
  sys.stdin.buffer.read(1)  # Items may be in flight until all are done.


if __name__ == '__main__':
  main()
