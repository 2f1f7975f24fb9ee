"""Gossip node: serves, checkpoints and logs several learners as one.

It receives the parameters of each learner, serves their mean, and writes joint
checkpoints and log rows. Learners mix their parameters without it.
"""

import contextlib
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from repertory.components import core, replay
from repertory.components.runtime import callers, signals
from repertory.launch.coordination import reports
from repertory.launch.nodes import (
  checkpoint_transfer,
  checkpoints,
  evaluator,
  gossip_deposits,
  gossip_means,
  gossip_messages,
  learner,
  learning,
  node,
  variable_cache,
)
from repertory.launch.opening import session as session_lib

# Period of parameter reports and log rows of each learner.
_PERIOD_SECONDS = 1.0
_COUNTS = ('steps', 'episodes', 'learner_steps')
# Timeout of the final checkpoints of stopped learners.
_LAST_SECONDS = 60.0


class GossipNode(node.Node):
  """Acts as the learner of the run; its variables are the mean of several."""

  def __init__(
    self,
    context: node.Context,
    session: session_lib.Session,
    names: Sequence[str],
  ):
    """Restores a checkpoint, or the initial parameters of a warm start."""
    self.name = context.name
    self._session = session
    self._coordinator = context.coordinator
    self._stop = context.stop
    self._fencing = callers.Fencing(context.token)
    self._names = list(names)
    self._deposits = gossip_deposits.LearnerDeposits(
      session.replay_directory, names, session.experiment.timeout_seconds
    )
    self._means = gossip_means.LearnerMean(names, self._deposits.saved)
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
        f'{all_begin} with the mean of the checkpoint and empty tables, since '
        'it was written with another number of learners or another topology',
      )
    self._reports: dict[str, gossip_messages.LearnerReport] = {}
    # Time of the latest log row of each, and its message count by then.
    self._logged: dict[str, tuple[float, int]] = {}
    self._sampled: set[str] = set()
    self._sampled_at = self._rows_at = 0.0
    # Write errors of received checkpoints, not reported yet.
    self._unwritten: list[OSError] = []
    self._served = variable_cache.VariableCache(
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
      'read_checkpoint': self._read_checkpoint,
      'exchange': self._exchange,
      'update_variables': self._receive_variables,
      'deposit': self._deposit,
      'fail_to_deposit': self._fail_to_deposit,
    }

  def run(self) -> None:
    """Writes joint checkpoints until all learners have ended."""
    while not (self._stop.is_set() or self._coordinator.have_actors_finished()):
      self._report_unwritten()
      self._checkpoints.write_if_due()
      self._stop.wait(reports.PERIOD_SECONDS)
    self._wait_for_learners()
    self._report_unwritten()
    if self._is_untouched():
      return
    if self._deposits.can_end():
      self._checkpoints.write()
      return
    self._coordinator.warn(
      self.name,
      'no final checkpoint was written, since not all learners have saved '
      'consistent states; the previous checkpoint, if any, is kept',
    )

  def report(self) -> reports.HeartbeatReply:
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
    with contextlib.ExitStack() as stack:  # Close all, even if one fails.
      stack.callback(self._deposits.close)
      stack.callback(self._checkpoints.close)

  def _wait_for_learners(self) -> None:
    """Waits for stopped learners to save and report their steps."""
    now = time.monotonic()
    deadline = now + _LAST_SECONDS
    while not self._coordinator.have_actors_finished() and now < deadline:
      if self._deposits.have_all_ended():
        deadline = min(deadline, now + learner.LAST_REPORT_SECONDS)
      time.sleep(reports.PERIOD_SECONDS / 5)
      now = time.monotonic()

  def _report_unwritten(self) -> None:
    """Warns of checkpoints that could not be written, or raises."""
    while self._unwritten:
      self._checkpoints.fail(self._unwritten.pop(0))

  def _is_untouched(self) -> bool:
    """Returns whether this run took no step, so needs no checkpoint."""
    steps = self._coordinator.reply().steps
    return (
      self._means.steps == self._begins_at_step
      and steps == self._session.counts['steps']
    )

  # Served to learners, which pass their caller identity first.

  def _begin(self, caller: Sequence[Any]) -> gossip_messages.LearnerStart:
    """Returns the initial state of a learner."""
    learner_node = self._admit(caller)
    self._deposits.forget(learner_node.name)
    kept = self._deposits.kept_of(learner_node.name)
    by_others = {}
    if learner_node.generation:
      self._means.leave_out(learner_node.name)
      by_others = self._means.learned_by_others(learner_node.name)
    self._logged[learner_node.name] = time.monotonic(), 0
    learned = by_others or self._means.learned()
    counts: dict[str, int] = dict.fromkeys(_COUNTS, 0)
    whole = b''
    if kept is not None:
      counts = dict(checkpoint_transfer.read_state(kept)['counts'])
    elif self._resumed_from is not None:
      before = self._session.counts
      counts = {name: before[name] // len(self._names) for name in _COUNTS}
      whole = gossip_means.pack(self._means.begun_with)
    self._means.begin(learner_node.name, counts['learner_steps'])
    return gossip_messages.LearnerStart(
      kept is not None,
      whole,
      counts,
      gossip_means.pack(learned) if learned else b'',
      # A resumed learner has its own, but a restarted one has old ones.
      takes_learned=bool(by_others)
      or (kept is None and not whole and bool(learned)),
    )

  def _read_checkpoint(self, caller: Sequence[Any], offset: int) -> bytes:
    kept = self._deposits.kept_of(self._admit(caller).name)
    if kept is None:
      raise ValueError(f'{caller[0]} must have a checkpoint, got none.')
    return checkpoint_transfer.read_chunk(kept, offset)

  def _exchange(
    self, caller: Sequence[Any], report: gossip_messages.LearnerReport
  ) -> tuple[int, bool]:
    """Handles the report of a learner.

    Returns:
      Number of the ordered checkpoint, 0 for none; and whether the learner is
      to send its parameters.
    """
    name = self._admit(caller).name
    self._means.count(name, report.learner_steps)
    self._reports[name] = report
    return self._deposits.order(), self._needs_variables(name)

  def _needs_variables(self, name: str) -> bool:
    """Returns whether a learner should send its parameters now.

    All send them at about the same time, or their distances would be
    overestimated.
    """
    now = time.monotonic()
    if now - self._sampled_at > _PERIOD_SECONDS:
      self._sampled_at, self._sampled = now, set()
    is_new = name not in self._sampled
    self._sampled.add(name)
    return is_new

  def _receive_variables(self, caller: Sequence[Any], packed: bytes) -> None:
    """Stores the parameters of a learner."""
    name = self._admit(caller).name
    self._means.update(name, gossip_means.unpack(packed))

  def _deposit(self, caller: Sequence[Any], number: int, *chunk: Any) -> bool:
    """Receives a chunk of a learner's checkpoint; returns False on failure."""
    name = self._admit(caller).name
    try:
      steps = self._deposits.receive(name, number, *chunk)
    except OSError as error:
      self._unwritten.append(error)
      self._deposits.fail(name, number)
      return False
    if steps is not None:
      self._means.count(name, steps)
    return True

  def _fail_to_deposit(self, caller: Sequence[Any], number: int) -> None:
    self._deposits.fail(self._admit(caller).name, number)

  def _admit(self, caller: Sequence[Any]) -> callers.Caller:
    admitted = callers.Caller(*caller)
    self._fencing.check(admitted)
    return admitted

  # Served to other nodes, and logged.

  def _get_variables(self, names: Sequence[str]):
    if not (self._means.has_reports or self._means.begun_with):
      signals.wait_for(
        self._wait_for_variables,
        lambda: 'any learner to send its parameters',
        self._session.experiment.timeout_seconds,
        self._stop,
      )
    return self._means.get_variables(names)

  def _wait_for_variables(self, seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while not self._means.has_reports and time.monotonic() < deadline:
      time.sleep(reports.PERIOD_SECONDS / 10)
    return self._means.has_reports

  def _leave_out_the_lost(self) -> None:
    """Excludes learners that are being restarted from the mean.

    A learner without neighbors has no address, and is never excluded.
    """
    for name in self._names if len(self._names) > 1 else ():
      if self._coordinator.address_of(name) is None:
        self._means.leave_out(name)

  def _present_reports(self) -> list[tuple[str, gossip_messages.LearnerReport]]:
    """Returns the reports of included learners, by name."""
    # A copy, since reports arrive concurrently.
    reported = sorted(self._reports.items())
    return [one for one in reported if not self._means.is_away(one[0])]

  def _messages_per_second(self, name: str, count: int) -> float:
    """Returns the message rate of a learner since its latest log row."""
    now = time.monotonic()
    before_at, before = self._logged[name]
    self._logged[name] = now, count
    return max(0, count - before) / max(now - before_at, 1e-6)

  def _write_rows(self) -> None:
    """Writes a log row for each learner."""
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

  def _mean_tables(self) -> dict[str, replay.TableInfo]:
    """Returns the mean table statuses of all learners."""
    found = [one.tables for _, one in self._present_reports()]
    statuses = {}
    for table in self._session.tables:
      of_each = [tables[table.name] for tables in found] or [
        replay.TableInfo(0, table.max_size, 0, 0)
      ]
      count = len(of_each)
      statuses[table.name] = replay.TableInfo(
        sum(one.size for one in of_each) // count,
        of_each[0].max_size,
        sum(one.inserts for one in of_each) // count,
        sum(one.samples for one in of_each) // count,
        of_each[0].waiting,
      )
    return statuses


class GossipEvaluatorNode(evaluator.EvaluatorNode):
  """Evaluates the mean of all learners, as the run's result, then each one."""

  def __init__(
    self,
    context: node.Context,
    session: session_lib.Session,
    evaluation: evaluator.EvaluationSetup,
    *,
    source: core.VariableSource,
    network: Any,
    names: Sequence[str],
  ):
    """Prepares the evaluations.

    Args:
      evaluation: Evaluation of `network`; its variable client fetches the mean.
      source: Variable source of each learner, see `gossip_means.name_of`.
    """
    super().__init__(context, session, evaluation)
    self._each = evaluation
    self._source = source
    self._network = network
    self._names = list(names)

  def evaluate(self, steps: int) -> None:
    super().evaluate(steps)
    # A single learner equals the mean.
    for name in self._names if len(self._names) > 1 else ():
      if self._stop.is_set():
        return
      self._evaluate_one(name)

  def _evaluate_one(self, name: str) -> None:
    (values,) = self._source.get_variables(
      [gossip_means.name_of(name, 'policy')]
    )
    if not values:
      return  # It has just been started.
    for variable, value in zip(self._network.variables, values, strict=True):
      variable.assign(value)
    episodes = self._run_episodes(self._each)
    if episodes is None:
      return
    returns = [episode.episode_return for episode in episodes]
    self._coordinator.write(
      reports.EVALUATIONS_OF_EACH,
      {
        'node': name,
        'episode_return': sum(returns) / len(returns),
        'count': len(returns),
      },
    )
