"""Supervision of a run whose nodes share one thread."""

import contextlib
import dataclasses
import math
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

from absl import logging

from repertory.components import loggers, variables
from repertory.components.runtime import signals
from repertory.launch import failures
from repertory.launch.coordination import coordinator as coordinator_lib
from repertory.launch.coordination import kinds, stall_reports
from repertory.launch.experiments import session as session_lib
from repertory.launch.nodes import evaluator as evaluator_lib
from repertory.launch.nodes import learning
from repertory.launch.nodes import node as node_lib
from repertory.launch.platform import interrupts, watchdog

# Period of reports and display updates.
_REPORT_PERIOD_SECONDS = 0.25

# Polling period of callbacks and loggers that end, and their timeout after a
# second Ctrl-C.
_CALLBACKS_PERIOD_SECONDS = 0.02
_HURRIED_SECONDS = 0.5

T = TypeVar('T', bound=node_lib.Node)


@contextlib.contextmanager
def supervised(
  session: session_lib.Session,
  interruption: interrupts.Interruption,
  show: Callable[[loggers.Status], None],
) -> Iterator['OneThread']:
  """Supervises a run function, which makes and runs the nodes in this thread.

  An interruption ends the block early. At its end all nodes are closed, the
  newest first, then the callbacks are ended; `OneThread.status` is that of the
  end.

  Raises:
    failures.NodeError: If a node failed, or the run made no progress.
  """
  thread = OneThread(session, interruption, show)
  try:
    with contextlib.suppress(signals.Stopped):
      yield thread
  except BaseException as error:
    interruption.set()  # Ends all waits of the failed run.
    thread.close(error)
    show(thread.status)
    if isinstance(error, failures.NodeError):
      error.add_details(thread.status.not_recorded)
    raise
  thread.close()
  thread.raise_failure()


class OneThread:
  """Context of a run function: makes nodes, and names, watches, reports them.

  Attributes:
    steps: Environment steps of all runs, counted by the run function.
    max_steps: Environment steps at which acting ends.
  """

  def __init__(
    self,
    session: session_lib.Session,
    interruption: interrupts.Interruption,
    show: Callable[[loggers.Status], None],
  ):
    """Makes only the coordinator; `interruption` ends the run early."""
    self.steps = session.counts['steps']
    self.max_steps = session.experiment.max_steps
    self._session = session
    self._interruption = interruption
    self._show = show
    self._coordinator = coordinator_lib.Coordinator(session)
    self._nodes: list[node_lib.Node] = []
    self._contexts: list[node_lib.Context] = []
    # Set by `working`.
    self._learner: learning.LearningNode
    self._evaluator: evaluator_lib.EvaluatorNode
    self._sources: Sequence[Any]
    self._is_working = self._is_ending = False
    self._reported_at = 0.0
    self._warnings: list[str] = []
    # Progress of making and closing: finished nodes and displayed messages. And
    # the name of the node being made or closed.
    self._num_done = self._num_shown = 0
    self._busy = ''

  def make(self, name: str, make: Callable[[node_lib.Context], T]) -> T:
    """Makes a node, and registers it with the coordinator."""
    context = node_lib.Context(
      name,
      self._coordinator,
      {},
      self._interruption,
      is_alone=True,
      shown=self._show_start,
    )
    self._contexts.append(context)
    with self.starting(name):
      node = make(context)
      self._nodes.append(node)
      self._coordinator.register(name, node.description)
    return node

  @contextlib.contextmanager
  def starting(self, name: str) -> Iterator[None]:
    """Watches the start of a node, and attributes exceptions to it."""
    # Compilation may take longer than any step.
    with self._watched(watchdog.START_SECONDS), self._at(name):
      yield

  def make_evaluator(
    self, learner: learning.LearningNode
  ) -> evaluator_lib.EvaluatorNode:
    """Makes the evaluator of a learner's variables."""

    def follow():
      return learner.network, variables.SharedVariableClient(learner)

    return self.make(
      kinds.EVALUATOR.name,
      lambda context: evaluator_lib.EvaluatorNode(
        context, self._session, follow
      ),
    )

  def _show_start(self) -> None:
    """Displays the message of a node being made; this counts as progress."""
    self._num_shown += 1
    self._show(self._coordinator.status())

  @contextlib.contextmanager
  def working(
    self,
    learner: learning.LearningNode,
    evaluator: evaluator_lib.EvaluatorNode,
    sources: Sequence[Any] = (),
  ) -> Iterator[None]:
    """Watches the loop of a run, and ends it with checkpoint and evaluation.

    An interruption ends the block, then a checkpoint is written. So it is if
    another node than the learner fails in it.

    Args:
      sources: Nodes that write experience, flushed before a checkpoint.
    """
    self._learner, self._evaluator = learner, evaluator
    self._sources = sources
    self._is_working = True
    status = self._coordinator.status()
    compiling = 'compiling with XLA' if self._session.jit_compile else ''
    self._show(status.with_messages(status.message, compiling))
    try:
      with contextlib.suppress(signals.Stopped), self._watched():
        self._wait_for_decision()
        yield
    except failures.NodeError as error:
      if error.failure.node != learner.name:
        self._save_in_spite_of_failure()
      raise
    self._finish()

  def has_steps_left(self) -> bool:
    """Returns whether acting continues; raises Stopped at an interruption."""
    self._interruption.check()
    return self.steps < self.max_steps and not self._is_ending

  def evaluate_if_due(self) -> None:
    """Runs an evaluation if its period has passed."""
    if self._evaluator.is_due(self.steps):
      self._report()
      self._evaluate()
      self._wait_for_decision()

  def report_if_due(self) -> None:
    """Reports, displays, and begins a checkpoint, if their periods passed."""
    now = time.monotonic()
    if now - self._reported_at <= _REPORT_PERIOD_SECONDS:
      return
    self._reported_at = now
    self._report()
    with self.named(self._learner):
      self._flush()
      self._learner.checkpoint_if_due()
    self._show(self._coordinator.status())
    self.raise_failure()
    self._is_ending = self._coordinator.reply().is_ending

  def _flush(self) -> None:
    """Flushes experience into replay, for a checkpoint."""
    for source in self._sources:
      source.flush()

  def _wait_for_decision(self) -> None:
    """Blocks until the stop criterion has answered; so steps are repeatable."""
    self._coordinator.wait_for_decision(self._interruption)
    self._is_ending = self._coordinator.reply().is_ending

  def _finish(self) -> None:
    """Writes the last checkpoint if steps were taken, and evaluates."""
    with self.named(self._learner):
      self._flush()
    self._report()
    # A resumed run is saved again, by the versions that resumed it.
    if self._session.is_resumed or not self._learner.is_untouched():
      with self.named(self._learner):
        self._learner.checkpoint()
    # No second evaluation if the last one ended the run.
    is_evaluated = self._evaluator.evaluated_at == self.steps
    if not (self._interruption.is_set() or is_evaluated):
      with contextlib.suppress(signals.Stopped), self._watched():
        self._evaluate()

  def _evaluate(self) -> None:
    with self.named(self._evaluator):
      self._evaluator.evaluate(self.steps)

  def _report(self) -> None:
    """Lets all nodes report to the coordinator."""
    for node in reversed(self._nodes):  # Actors before learners.
      with self.named(node):
        node.report()

  def _save_in_spite_of_failure(self) -> None:
    """Tries to write a checkpoint; errors are only logged."""
    with contextlib.suppress(Exception):  # The checkpoint matters more.
      self._report()
    try:
      self._learner.checkpoint()
    except Exception:
      logging.exception('No checkpoint could be written.')

  @property
  def status(self) -> loggers.Status:
    """The current status, with the warnings of closed nodes."""
    status = self._coordinator.status()
    return status.with_messages(status.message, *self._warnings)

  def raise_failure(self) -> None:
    """Raises the failure that the coordinator has, if any."""
    failure = self._coordinator.failure()
    if failure is not None:
      raise failures.NodeError(failure)

  def close(self, error: BaseException | None = None) -> None:
    """Closes all nodes in reverse order, then callbacks and coordinator.

    The final checkpoint is written by then, so errors are only warnings.
    """
    for context in reversed(self._contexts):
      self._close_one(context.name, context.closing.close)
    self._end_callbacks(error)
    self._close_one(kinds.COORDINATOR.name, self._coordinator.close)

  def _close_one(self, name: str, close: Callable[[], None]) -> None:
    try:
      with (
        contextlib.suppress(signals.Stopped),
        self._watched(),
        self._at(name),
      ):
        close()
    except failures.NodeError as error:
      logging.warning('%s', error)
      self._warnings.append(error.failure.not_closed)

  def _end_callbacks(self, error: BaseException | None) -> None:
    """Ends callbacks and loggers, which have their own timeout."""
    if isinstance(error, failures.NodeError):
      self._coordinator.abort(error.failure)
    elif self._interruption.is_set():
      self._coordinator.stop('interrupted')
    # A second Ctrl-C shortens the wait.
    is_forced = error is not None and not isinstance(error, failures.NodeError)
    deadline = time.monotonic() + _HURRIED_SECONDS
    while waiting := self._coordinator.end_callbacks():
      status = self._coordinator.status()
      self._show(status.with_messages(status.message, waiting))
      if is_forced and time.monotonic() > deadline:
        return
      time.sleep(_CALLBACKS_PERIOD_SECONDS)

  # Watchdog, and names of failed nodes.

  def named(
    self, node: node_lib.Node
  ) -> contextlib.AbstractContextManager[None]:
    """Attributes exceptions in the block to a node."""
    return failures.named(node.name, self._is_second_interrupt)

  def _is_second_interrupt(self, error: BaseException) -> bool:
    """Returns whether this is a second Ctrl-C; the first raises nothing."""
    return isinstance(error, KeyboardInterrupt) and self._interruption.is_set()

  @contextlib.contextmanager
  def _at(self, name: str) -> Iterator[None]:
    """Attributes failures and hangs to a node being made or closed."""
    self._busy = name
    try:
      with failures.named(name, self._is_second_interrupt):
        yield
    finally:
      self._busy = ''
      self._num_done += 1

  def _progress(self) -> tuple[int, ...]:
    """Returns counters that change with any progress."""
    if not self._is_working:
      return (self._num_done, self._num_shown)
    steps = [getattr(node, 'total_steps', 0) for node in self._nodes]
    return (self._num_done, self._learner.version, *steps)

  @contextlib.contextmanager
  def _watched(self, least_seconds: float = 0.0) -> Iterator[None]:
    """Raises a stall report in the block if there is no progress."""
    experiment = self._session.experiment
    seconds = max(least_seconds, experiment.stall_seconds)
    if experiment.eager:
      seconds = math.inf  # A debugger may stop it.
    stalls = []

    def end(seconds: float) -> None:
      try:
        stalls.append(self._describe_stall(seconds))
      except Exception as error:  # The block must end in any case.
        stalls.append(
          failures.NodeError(
            failures.of_exception(kinds.COORDINATOR.name, error)
          )
        )
      if self._find_in_environment():
        demand(stalls[0])
      else:
        # Our own waits check it; an exception would break those of Reverb.
        self._interruption.set()

    try:
      with (
        interrupts.interruptible() as demand,
        watchdog.watching(self._progress, seconds, end),
      ):
        yield
    except signals.Stopped:
      if not stalls:
        raise
    if stalls:
      raise stalls[0]

  def _find_in_environment(self) -> str | None:
    """Returns the name of the node that is in an environment, if any."""
    if self._busy and kinds.kind_of(self._busy).has_environments:
      return self._busy
    for node in self._nodes:
      if getattr(node, 'environment_seconds', 0):
        return node.name
    return None

  def _describe_stall(self, seconds: float) -> failures.NodeError:
    """Writes a stall report."""
    # Without replay server or log folder, the report has the last known state.
    for node in self._nodes:
      with contextlib.suppress(Exception):
        node.report()
    seen = self._coordinator.observe()
    seen = dataclasses.replace(
      seen,
      idle_seconds=seconds,
      slowest=self._find_in_environment() or self._busy or seen.slowest,
    )
    failure = stall_reports.write(
      seen,
      self._coordinator.describe_nodes(),
      {'this process': watchdog.stacks()},
      self._session,
    )
    return failures.NodeError(failure)
