"""Single-threaded run loop: all nodes of a run in one thread."""

import abc
import contextlib
import dataclasses
import math
import time
from collections.abc import Callable, Iterator
from typing import TypeVar

from absl import logging

from repertory.components import loggers, variables
from repertory.components.runtime import signals
from repertory.launch import failures
from repertory.launch.coordination import coordinator as coordinator_lib
from repertory.launch.coordination import kinds, stall_reports
from repertory.launch.nodes import evaluator as evaluator_lib
from repertory.launch.nodes import learning
from repertory.launch.nodes import node as node_lib
from repertory.launch.opening import session as session_lib
from repertory.launch.platform import interrupts, watchdog

# Period of reports and display updates.
_REPORT_PERIOD_SECONDS = 0.25

# Polling period of callbacks and loggers that end, and their timeout after a
# second Ctrl-C.
_CALLBACKS_PERIOD_SECONDS = 0.02
_HURRIED_SECONDS = 0.5


# Pairs (caller, callee) of nodes of a loop with learner and evaluator alone.
CALLS = (
  (kinds.LEARNER.name, kinds.COORDINATOR.name),
  (kinds.EVALUATOR.name, kinds.COORDINATOR.name),
)

T = TypeVar('T', bound=node_lib.Node)


class RunLoop(abc.ABC):
  """Makes the nodes of a run, runs them round-robin, and closes them.

  A subclass defines the nodes and an iteration. Environment steps and learner
  steps alternate in the same order in every run.
  """

  def __init__(
    self,
    session: session_lib.Session,
    title: str,
    interruption: interrupts.Interruption,
    show: Callable[[loggers.Status], None],
  ):
    """Makes only the coordinator; `interruption` ends the run early."""
    self._session = session
    self._interruption = interruption
    self._show = show
    self._coordinator = coordinator_lib.Coordinator(session, title)
    self._nodes: list[node_lib.Node] = []
    self._are_all_made = False
    # Progress of making and closing: finished nodes and displayed messages. And
    # the name of the node being made or closed.
    self._num_done = self._num_shown = 0
    self._busy = ''
    self._max_steps = session.experiment.max_steps
    self._steps = session.counts['steps']

  def run(self) -> loggers.Status:
    """Runs to the end or an interruption; returns the final status."""
    try:
      # Compilation may take longer than any step.
      with self._watched(watchdog.START_SECONDS):
        self._make()
      if self._are_all_made:  # Else it was interrupted.
        self._work()
    except BaseException as error:
      # End all waits of the failed run.
      self._interruption.set()
      self._close(error)
      if isinstance(error, failures.NodeError):
        error.add_details(self._coordinator.status().not_recorded)
      raise
    warnings = self._close()
    self._raise_failure()
    status = self._coordinator.status()
    return status.with_messages(status.message, *warnings)

  def _raise_failure(self) -> None:
    """Raises the failure that the coordinator has, if any."""
    failure = self._coordinator.failure()
    if failure is not None:
      raise failures.NodeError(failure)

  @abc.abstractmethod
  def _make_learner(self) -> learning.LearningNode:
    """Makes all nodes but the evaluator; returns the learner."""

  @abc.abstractmethod
  def _iterate(self) -> int:
    """Runs one iteration; returns its environment steps."""

  def _flush(self) -> None:  # noqa: B027
    """Flushes experience into replay, for a checkpoint."""

  def _make(self) -> None:
    self._learner = self._make_learner()
    self._evaluator = self._add(kinds.EVALUATOR.name, self._make_evaluator)
    self._are_all_made = True
    self._show(self._coordinator.status())

  def _make_evaluator(self, context: node_lib.Context):
    return evaluator_lib.make(
      context,
      self._session,
      lambda: (
        self._learner.network,
        variables.SharedVariableClient(self._learner),
      ),
    )

  def _add(self, name: str, make: Callable[[node_lib.Context], T]) -> T:
    """Makes a node, and registers it with the coordinator."""
    context = node_lib.Context(
      name,
      self._coordinator,
      {},
      self._interruption,
      is_alone=True,
      shown=self._show_start,
    )
    with self._at(name):
      node = make(context)
      self._nodes.append(node)
      self._coordinator.register(name, node.description)
    return node

  def _show_start(self) -> None:
    """Displays the message of a node being made; this counts as progress."""
    self._num_shown += 1
    self._show(self._coordinator.status())

  def _work(self) -> None:
    """Runs all iterations, the final checkpoint and the final evaluation."""
    try:
      with self._watched():
        self._run_iterations()
    except failures.NodeError as error:
      if error.failure.node != self._learner.name:
        self._save_in_spite_of_failure(error.failure.node)
      raise
    with self._named(self._learner.name):
      self._flush()
    self._report()
    with self._named(self._learner.name):
      self._learner.checkpoint()
    # No second evaluation if the last one ended the run.
    is_evaluated = self._evaluator.evaluated_at == self._steps
    if not (self._interruption.is_set() or is_evaluated):
      with self._watched():
        self._evaluate()

  def _run_iterations(self) -> None:
    """Iterates until all steps are taken or the run ends early."""
    reported_at = 0.0
    learner, evaluator = self._learner, self._evaluator
    is_ending = self._is_ending()
    if self._session.jit_compile:  # At the first calls.
      status = self._coordinator.status()
      self._show(status.with_messages(status.message, 'compiling with XLA'))
    while self._steps < self._max_steps and not is_ending:
      self._interruption.check()
      self._steps += self._iterate()
      if evaluator.is_due(self._steps):
        self._report()
        self._evaluate()
        is_ending = self._is_ending()
      now = time.monotonic()
      if now - reported_at > _REPORT_PERIOD_SECONDS:
        reported_at = now
        self._report()
        with self._named(learner.name):
          self._flush()
          learner.checkpoint_if_due()
        self._show(self._coordinator.status())
        self._raise_failure()
        is_ending = self._coordinator.reply().is_ending

  def _is_ending(self) -> bool:
    """Returns whether the stop criterion ends the run.

    It blocks until the answer, so that the steps taken are reproducible.
    """
    self._coordinator.wait_for_decision(self._interruption)
    return self._coordinator.reply().is_ending

  def _evaluate(self) -> None:
    """Runs an evaluation."""
    with self._named(self._evaluator.name):
      self._evaluator.evaluate(self._steps)

  def _report(self) -> None:
    """Lets all nodes report to the coordinator."""
    for node in reversed(self._nodes):  # Actors before learners.
      with self._named(node.name):
        node.report()

  def _save_in_spite_of_failure(self, failed: str) -> None:
    """Tries to write a checkpoint; errors are only logged."""
    with contextlib.suppress(Exception):  # The checkpoint matters more.
      self._report()
    try:
      self._learner.checkpoint()
    except Exception:
      logging.exception('No checkpoint could be written.')

  def _close(self, error: BaseException | None = None) -> list[str]:
    """Closes all nodes in reverse order; returns warnings.

    The final checkpoint is written by then, so errors do not fail the run.
    """
    warnings = []
    for node in reversed(self._nodes):
      warnings += self._close_one(node.name, node.close)
    self._end_callbacks(error)
    warnings += self._close_one(kinds.COORDINATOR.name, self._coordinator.close)
    return [] if error else warnings

  def _close_one(self, name: str, close: Callable[[], None]) -> list[str]:
    try:
      with self._watched(), self._at(name):
        close()
    except failures.NodeError as error:
      logging.warning('%s', error)
      return [error.failure.not_closed]
    return []

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

  @contextlib.contextmanager
  def _at(self, name: str) -> Iterator[None]:
    """Attributes failures and hangs to a node being made or closed."""
    self._busy = name
    try:
      with self._named(name):
        yield
    finally:
      self._busy = ''
      self._num_done += 1

  def _named(self, name: str) -> contextlib.AbstractContextManager[None]:
    return failures.named(name, self._is_second_interrupt)

  def _is_second_interrupt(self, error: BaseException) -> bool:
    """Returns whether this is a second Ctrl-C; the first raises nothing."""
    return isinstance(error, KeyboardInterrupt) and self._interruption.is_set()

  def _progress(self) -> tuple[int, ...]:
    """Returns counters that change with any progress."""
    if not self._are_all_made:
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

    with (
      interrupts.interruptible() as demand,
      watchdog.watching(self._progress, seconds, end),
      contextlib.suppress(signals.Stopped),
    ):
      yield
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
