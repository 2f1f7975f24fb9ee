"""Replay, actor, learner and evaluator in turn, in one thread."""

import contextlib
import dataclasses
import time
from collections.abc import Iterator

from absl import logging

from repertory.components import loggers, replay, signals
from repertory.launch import failures
from repertory.launch.coordination import coordinator as coordinator_lib
from repertory.launch.coordination import stall_reports
from repertory.launch.host import interrupts, watchdog
from repertory.launch.nodes import evaluation, nodes
from repertory.launch.runs import session as session_lib

# How often counts are reported and the display is drawn.
_REPORT_PERIOD_SECONDS = 0.25

# Who calls whom, for the graph.
CALLS = (
  ('actor', 'replay'),
  ('learner', 'replay'),
  ('actor', 'coordinator'),
  ('learner', 'coordinator'),
  ('evaluator', 'coordinator'),
)


def run(
  session: session_lib.Session,
  title: str,
  interruption: interrupts.Interruption,
  show,
) -> loggers.Status:
  """Runs an experiment in this thread.

  The rate limiter is on, as in every topology. After each step of the
  environment batch the learner takes the batches that are due, so that which
  learner step follows which environment step is the same in every run.

  Args:
    session: What runs.
    title: What the display calls it.
    interruption: Ends the run early when set; the checkpoint is written.
    show: Takes the status now and then.

  Returns:
    The status at the end.
  """
  coordinator = coordinator_lib.Coordinator(session, title)
  with contextlib.ExitStack() as stack:
    stack.enter_context(_closed_at_end(coordinator))
    with failures.named('replay'):
      server = nodes.start_replay(session)
    stack.callback(server.stop)
    connection = replay.Connection(
      f'localhost:{server.port}',
      session.experiment.timeout_seconds,
      interruption,
    )
    with failures.named('learner'):
      learner = nodes.LearnerNode(session, connection, coordinator)
    stack.enter_context(_closed_at_end(learner))
    actor = nodes.ActorNode(
      session,
      'actor/0',
      range(session.experiment.num_environments),
      connection,
      learner,
      coordinator,
    )
    stack.enter_context(_closed_at_end(actor))
    evaluator = evaluation.EvaluatorNode(
      session, learner, coordinator, interruption
    )
    stack.enter_context(_closed_at_end(evaluator))
    _Turns(session, coordinator, learner, actor, evaluator).run(
      interruption, show
    )
    return coordinator.status()


@contextlib.contextmanager
def _closed_at_end(node) -> Iterator[None]:
  """Closes a node; if the run has failed, that is what counts."""
  try:
    yield
  except BaseException:
    try:
      node.close()
    except Exception:  # It may write to the same full disk.
      logging.exception('Closing failed, too.')
    raise
  node.close()


class _Turns:
  """Who does what when, in one thread."""

  def __init__(self, session, coordinator, learner, actor, evaluator):
    self._session = session
    self._coordinator = coordinator
    self._learner = learner
    self._actor = actor
    self._evaluator = evaluator
    self._max_steps = session.experiment.max_steps
    self._steps = session.counts['steps']

  @contextlib.contextmanager
  def _watched(self, interruption: interrupts.Interruption) -> Iterator[None]:
    """Ends the block with a report when nothing goes on."""
    stalls = []

    def end(seconds: float) -> None:
      try:
        stalls.append(self._describe_stall(seconds))
      except Exception as error:  # Or nothing would end the block.
        stalls.append(self._name_stall(seconds, error))
      if self._find_in_environment():
        demand(stalls[0])
      else:
        # Our own waits heed it, and Reverb's do not bear another exception.
        interruption.set()

    with (
      interrupts.raising_on_demand() as demand,
      watchdog.watching(
        lambda: (
          self._actor.total_steps,
          self._learner.version,
          self._evaluator.total_steps,
        ),
        self._session.experiment.stall_seconds,
        end,
      ),
      contextlib.suppress(signals.Stopped),
    ):
      yield
    if stalls:
      raise stalls[0]

  def _find_in_environment(self) -> str | None:
    """Returns the name of the node whose environment is at a step, if any."""
    for node in (self._actor, self._evaluator):
      if node.environment_seconds:
        return node.name
    return None

  def _describe_stall(self, seconds: float) -> failures.NodeError:
    """Writes the report on a run in which nothing goes on.

    Args:
      seconds: For how long.
    """
    evaluator = self._evaluator
    self._actor.report()
    with contextlib.suppress(Exception):  # The replay server may be gone.
      self._learner.report()
    self._coordinator.poll(evaluator.name, evaluator.environment_seconds)
    seen = self._coordinator.observe()
    seen = dataclasses.replace(
      seen,
      idle_seconds=seconds,
      laggard=self._find_in_environment() or seen.laggard,
    )
    nodes = self._coordinator.describe_nodes()
    stacks = {'this process': stall_reports.own_stacks()}
    return failures.NodeError(
      stall_reports.write(seen, nodes, stacks, self._session)
    )

  def _name_stall(self, seconds: float, error: Exception) -> failures.NodeError:
    """Says of a stall what is known without a report.

    Args:
      seconds: For how long nothing goes on.
      error: Why there is no report.
    """
    return failures.NodeError(
      failures.Failure(
        self._find_in_environment() or 'coordinator',
        f'The run has got no further for {seconds:.0f} seconds. There is no '
        f'report on it: {type(error).__name__}: {error}',
      )
    )

  def run(self, interruption: interrupts.Interruption, show) -> None:
    """Takes turns to the end or until interrupted, and writes a checkpoint.

    Raises:
      failures.NodeError: If one of them failed.
    """
    try:
      with self._watched(interruption):
        self._take(interruption, show)
    except failures.NodeError as error:
      if error.failure.node != self._learner.name:
        self._save_in_spite_of_failure()
      # Nothing of a run that failed may wait any longer.
      interruption.set()
      raise
    self.report()
    with failures.named(self._learner.name):
      self._actor.flush()
      self._learner.checkpoint()
    if not interruption.is_set():
      with self._watched(interruption):
        self.evaluate()

  def _save_in_spite_of_failure(self) -> None:
    """Writes a checkpoint if it can; what failed before is what counts."""
    try:
      self.report()
      self._learner.checkpoint()
    except Exception:
      logging.exception('No checkpoint could be written.')

  def _take(self, interruption: interrupts.Interruption, show) -> None:
    """Acts, learns and evaluates until the steps are done."""
    reported_at = 0.0
    while self._steps < self._max_steps:
      interruption.check()
      with failures.named(self._actor.name):
        self._steps += self._actor.step()
      with failures.named(self._learner.name):
        self._learner.catch_up(self._actor)
      if self._evaluator.is_due(self._steps):
        self.report()
        self.evaluate()
      now = time.monotonic()
      if now - reported_at > _REPORT_PERIOD_SECONDS:
        reported_at = now
        self.report()
        with failures.named(self._learner.name):
          self._actor.flush()
          self._learner.checkpoint_if_due()
        show(self._coordinator.status())

  def report(self) -> None:
    """Brings the coordinator's counts up to date."""
    self._actor.report()
    self._learner.report()

  def evaluate(self) -> None:
    """Evaluates what has been learned so far."""
    with failures.named(self._evaluator.name):
      self._evaluator.evaluate(self._steps)
