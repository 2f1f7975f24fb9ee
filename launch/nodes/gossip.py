"""The node that keeps several learners together.

It learns nothing. It knows what each has learned, gives out the mean, writes
one checkpoint of all, and tells how they do. Learners mix without it.
"""

import contextlib
import os
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from repertory.components import callers, replay, signals
from repertory.launch.coordination import reports
from repertory.launch.nodes import (
  checkpoints,
  gossip_deposits,
  gossip_means,
  gossip_messages,
  learner,
  learning,
  node,
  parcels,
  served_variables,
)
from repertory.launch.runs import session as session_lib

# How often what each has learned is asked for, and is told of.
_PERIOD_SECONDS = 1.0
_COUNTS = ('steps', 'episodes', 'learner_steps')
# How long learners that were stopped may take to save.
_LAST_SECONDS = 60.0


class GossipNode(node.Node):
  """Is the learner to all others: what it gives out is the mean of several."""

  def __init__(
    self,
    context: node.Context,
    session: session_lib.Session,
    names: Sequence[str],
  ):
    """Reads what the run is resumed from, or begins with.

    Args:
      names: Those of the learners' nodes.
    """
    self.name = context.name
    self._session = session
    self._coordinator = context.coordinator
    self._stop = context.stop
    self._admission = callers.Admission(context.token)
    self._names = list(names)
    self._deposits = gossip_deposits.Deposits(
      session.replay_directory,
      names,
      keeps_step=session.experiment.deterministic,
      timeout_seconds=session.experiment.timeout_seconds,
    )
    self._means = gossip_means.SeveralLearners(
      names, self._deposits.saved, self._deposits.counts
    )
    self._checkpoints = checkpoints.CheckpointWriter(
      session, self._deposits, self._coordinator, self._means, self.name
    )
    self._resumed_from = self._checkpoints.restore()
    self._begins_at_step = self._means.steps
    if session.is_resumed and not all(map(self._deposits.kept_of, names)):
      all_begin = (
        f'all {len(names)} learners begin' if len(names) > 1
        else 'the learner begins'
      )  # fmt: skip
      self._coordinator.warn(
        self.name,
        f'{all_begin} with the mean of the checkpoint, and with empty tables: '
        'it was written with another number of them, or in another topology',
      )
    self._reports: dict[str, gossip_messages.LearnerReport] = {}
    # When each was last told of, and how many messages it had had by then.
    self._told: dict[str, tuple[float, int]] = {}
    self._sampled: set[str] = set()
    self._sampled_at = self._rows_at = 0.0
    self._end_at: int | None = None
    # What kept deposits from being written, and was not told yet.
    self._unwritten: list[OSError] = []
    self._served = served_variables.ServedVariables(
      self._get_variables, lambda: (self._means.changes, self._means.steps)
    )

  @property
  def description(self):
    return {
      'config': self._session.identity,
      'learners': self._names,
      'updates_to_come': self._session.updates_to_come,
      'run_starts_at_learner_step': self._begins_at_step,
      'resumed_from': self._resumed_from,
      'initial_from': self._session.initial,
    }

  @property
  def served(self) -> Mapping[str, Callable[..., Any]]:
    return {
      'get_variables': self._served.get,
      'begin': self._begin,
      'read_parcel': self._read_parcel,
      'exchange': self._exchange,
      'tell_variables': self._tell_variables,
      'deposit': self._deposit,
      'fail_to_deposit': self._fail_to_deposit,
    }

  def run(self) -> None:
    """Keeps checkpoints until all learners have come to their end."""
    while not (self._stop.is_set() or self._coordinator.have_actors_finished()):
      self._tell_unwritten()
      self._checkpoints.write_if_due()
      self._stop.wait(reports.PERIOD_SECONDS)
    self._wait_for_learners()
    self._tell_unwritten()
    if self._is_untouched():
      return
    if self._deposits.can_end():
      self._checkpoints.write()
      return
    self._coordinator.warn(
      self.name,
      'no last checkpoint was written, for not all learners have saved what '
      'they had at one moment; what was saved before, if anything, is kept',
    )

  def report(self) -> reports.Directive:
    now = time.monotonic()
    if self._reports and now - self._rows_at > _PERIOD_SECONDS:
      self._rows_at = now
      self._leave_out_the_lost()
      self._write_rows()
    return learning.report_tables(
      self._coordinator,
      self.name,
      self._means.steps,
      self._session.tables,
      self._mean_tables(),
    )

  def close(self) -> None:
    with contextlib.ExitStack() as stack:  # Whichever of them fails.
      stack.callback(self._deposits.close)
      stack.callback(self._checkpoints.close)

  def _wait_for_learners(self) -> None:
    """Gives learners that were stopped time to save and tell their steps."""
    now = time.monotonic()
    deadline = now + _LAST_SECONDS
    while not self._coordinator.have_actors_finished() and now < deadline:
      if self._deposits.have_all_ended():
        deadline = min(deadline, now + learner.LAST_REPORT_SECONDS)
      time.sleep(reports.PERIOD_SECONDS / 5)
      now = time.monotonic()

  def _tell_unwritten(self) -> None:
    """Warns of deposits that the disk had no room for, or raises why."""
    while self._unwritten:
      self._checkpoints.fail(self._unwritten.pop(0))

  def _is_untouched(self) -> bool:
    """Whether this run took no step, so all is as it was before."""
    steps = self._coordinator.directive().steps
    return (
      self._means.steps == self._begins_at_step
      and steps == self._session.counts['steps']
    )

  # What learners call. Each says who it is first.

  def _begin(self, caller: Sequence[Any]) -> gossip_messages.Beginning:
    """Returns with what a learner begins."""
    who = self._admit(caller)
    self._deposits.forget(who.name)
    kept = self._deposits.kept_of(who.name)
    by_others = {}
    if who.life:
      self._means.leave_out(who.name)
      by_others = self._means.learned_by_others(who.name)
    self._told[who.name] = time.monotonic(), 0
    learned = by_others or self._means.learned()
    counts: dict[str, int] = dict.fromkeys(_COUNTS, 0)
    whole = b''
    if kept is not None:
      counts = dict(kept.state['counts'])
    elif self._resumed_from is not None:
      before = self._session.counts
      counts = {name: before[name] // len(self._names) for name in _COUNTS}
      whole = gossip_means.pack(self._means.begun_with)
    self._means.begin(who.name, counts['learner_steps'])
    return gossip_messages.Beginning(
      os.path.getsize(kept.path) if kept else None,
      whole,
      counts,
      gossip_means.pack(learned) if learned else b'',
      # One that goes on has its own, unless that is old by now.
      takes_learned=bool(by_others)
      or (kept is None and not whole and bool(learned)),
    )

  def _read_parcel(self, caller: Sequence[Any], offset: int) -> bytes:
    kept = self._deposits.kept_of(self._admit(caller).name)
    if kept is None:
      raise ValueError(f'There is no checkpoint of {caller[0]}.')
    return parcels.read_chunk(kept.path, offset)

  def _exchange(
    self, caller: Sequence[Any], report: gossip_messages.LearnerReport
  ) -> gossip_messages.Orders:
    """Takes how a learner is, and returns what it is to do."""
    name = self._admit(caller).name
    self._means.count(name, report.learner_steps)
    self._reports[name] = report
    self._deposits.hear(name, report.turns, report.missed)
    if report.wants_end and self._end_at is None:
      self._end_at = self._deposits.turn_to_come()
    number, save_at = self._deposits.order()
    return gossip_messages.Orders(
      number, save_at, self._end_at, self._is_to_tell(name)
    )

  def _is_to_tell(self, name: str) -> bool:
    """Returns whether a learner is to tell what it has learned.

    All are to tell it at about the same time, or they would seem to be further
    apart than they are.
    """
    now = time.monotonic()
    if now - self._sampled_at > _PERIOD_SECONDS:
      self._sampled_at, self._sampled = now, set()
    is_new = name not in self._sampled
    self._sampled.add(name)
    return is_new

  def _tell_variables(self, caller: Sequence[Any], packed: bytes) -> None:
    """Takes what a learner has learned."""
    name = self._admit(caller).name
    self._means.tell(name, gossip_means.unpack(packed))

  def _deposit(
    self,
    caller: Sequence[Any],
    label: gossip_messages.Label,
    *chunk: Any,
  ) -> bool:
    """Takes a chunk of a learner's checkpoint; returns whether it is kept."""
    offset, data, is_complete = chunk
    name = self._admit(caller).name
    try:
      steps = self._deposits.receive(name, label, (offset, data, is_complete))
    except OSError as error:
      self._unwritten.append(error)
      self._deposits.fail(name, label)
      return False
    if steps is not None:
      self._means.count(name, steps)
    return True

  def _fail_to_deposit(
    self, caller: Sequence[Any], label: gossip_messages.Label
  ) -> None:
    self._deposits.fail(self._admit(caller).name, label)

  def _admit(self, caller: Sequence[Any]) -> callers.Caller:
    who = callers.Caller(*caller)
    self._admission.check(who)
    return who

  # What others hear of them.

  def _get_variables(self, names: Sequence[str]):
    if not (self._means.have_told or self._means.begun_with):
      signals.wait_for(
        self._wait_for_variables,
        lambda: 'any learner to tell what it has learned',
        self._session.experiment.timeout_seconds,
        self._stop,
      )
    return self._means.get_variables(names)

  def _wait_for_variables(self, seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while not self._means.have_told and time.monotonic() < deadline:
      time.sleep(reports.PERIOD_SECONDS / 10)
    return self._means.have_told

  def _leave_out_the_lost(self) -> None:
    """Leaves learners out that have ended and are being started again.

    A learner without neighbors has no address, and is never left out here.
    """
    for name in self._names if len(self._names) > 1 else ():
      if self._coordinator.address_of(name) is None:
        self._means.leave_out(name)

  def _present_reports(self) -> list[tuple[str, gossip_messages.LearnerReport]]:
    """Returns how all are who are there, by name."""
    # All at once, for others may come meanwhile.
    reported = sorted(self._reports.items())
    return [one for one in reported if not self._means.is_away(one[0])]

  def _messages_per_second(self, name: str, count: int) -> float:
    """Returns how many came to a learner since it was last told of."""
    now = time.monotonic()
    before_at, before = self._told[name]
    self._told[name] = now, count
    return max(0, count - before) / max(now - before_at, 1e-6)

  def _write_rows(self) -> None:
    """Tells of each learner how it does."""
    distances = self._means.distances()
    for name, report in self._present_reports():
      figures = report.figures
      count = figures.num_messages if figures else 0
      self._coordinator.write(
        reports.GOSSIP,
        {
          'node': name,
          'version': report.learner_steps,
          'episode_return': report.episode_return,
          'distance': distances.get(name, 0.0),
          'trail': figures.trail if figures else 0.0,
          'messages_per_second': self._messages_per_second(name, count),
          'age_seconds': figures.age_seconds if figures else None,
          'age_steps': figures.age_steps if figures else None,
        },
      )

  def _mean_tables(self) -> dict[str, replay.TableStatus]:
    """Returns how the tables of a learner are, on average."""
    found = [one.tables for _, one in self._present_reports()]
    statuses = {}
    for table in self._session.tables:
      of_each = [tables[table.name] for tables in found] or [
        replay.TableStatus(0, table.max_size, 0, 0)
      ]
      count = len(of_each)
      statuses[table.name] = replay.TableStatus(
        sum(one.size for one in of_each) // count,
        of_each[0].max_size,
        sum(one.inserts for one in of_each) // count,
        sum(one.samples for one in of_each) // count,
        of_each[0].waiting,
      )
    return statuses
