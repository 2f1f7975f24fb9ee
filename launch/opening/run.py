"""Runs of experiments, new or resumed."""

import contextlib
import dataclasses
import functools
import os
from collections.abc import Callable, Iterator

from repertory.components import loggers
from repertory.components.checkpoints import checkpointing
from repertory.launch.experiments import directories, preflight
from repertory.launch.experiments import experiment as experiment_lib
from repertory.launch.experiments import session as session_lib
from repertory.launch.launchers import launcher as launcher_lib
from repertory.launch.opening import directory as directory_lib
from repertory.launch.opening import plan as plan_lib
from repertory.launch.opening import remote_storage, run_metadata
from repertory.launch.platform import (
  interrupts,
  native_output,
  printed,
  terminal,
)
from repertory.launch.topologies import topology as topology_lib


@dataclasses.dataclass(frozen=True)
class Result:
  """Result of a run.

  Attributes:
    status: The last status.
    directory: Folder with `logs/` and `checkpoints/`.
    best: Folder of the policy with the best evaluation return, including runs
      that were resumed; `status.best_return` is that return. None if there was
      no evaluation.
    stopped_early: Reason for early stopping, from the experiment's `stop_when`;
      None if the run was not stopped early.
    interrupted: Number of the operating-system signal that ended the run early;
      None if it was not interrupted.
    why_no_update: For a completed run without any learner step: the number of
      replay items, and the minimum for learning; otherwise None.
    variables_sha256: Hexadecimal hash of the learner's variables in the last
      checkpoint. None if it could not be written.
    resumes_exactly: Whether a deterministic run can resume bit by bit from the
      last checkpoint.
    not_saved: Message on updates that are in no checkpoint, because it could
      not be written; empty if there are none.
    not_stored: Message on why the last checkpoint or the best policy is not in
      the experiment's storage, and what to do; empty if it is, or there is no
      storage.
    not_recorded: Message on steps of this run that could not be recorded, with
      the reason; empty if there are none.
  """

  status: loggers.Status
  directory: str
  best: str | None = None
  stopped_early: str | None = None
  interrupted: int | None = None
  why_no_update: str | None = None
  variables_sha256: str | None = None
  resumes_exactly: bool = False
  not_saved: str = ''
  not_stored: str = ''
  not_recorded: str = ''


def run(
  experiment: experiment_lib.Experiment,
  topology: str | topology_lib.Topology = 'single',
  launch_type: str | launcher_lib.Launcher = 'local_mt',
  *,
  fresh: bool = False,
  display: bool = True,
) -> Result:
  """Runs an experiment; resumes it if its directory has a checkpoint.

  Args:
    experiment: The experiment to run.
    topology: Name as for `--topology`, such as 'single', 'distributed' or
      'central'; or an object with settings, such as
      `central.Central(double_buffering=True)`.
    launch_type: Launcher of a topology with several nodes: 'local_mt' for
      threads, 'local_mp' for processes, 'ray' for processes on a Ray cluster;
      or an object with settings. Topologies in one process need 'local_mt'.
    fresh: Whether to start over; the contents of the directory are moved aside.
    display: Whether to show the status on the terminal.

  Returns:
    The result; also after Ctrl-C, SIGTERM or SIGHUP and a last checkpoint.

  Raises:
    ValueError: If the experiment cannot run; nothing has been written.
    NodeError: If a node failed.
    NoAnswerError: If the storage does not respond at the start.
    SystemExit: On SIGTERM or SIGHUP before the run began.
  """
  report = terminal.print_line if display else lambda message: None
  with contextlib.ExitStack() as stack:
    interruption = stack.enter_context(interrupts.catch_interrupts())
    with interrupts.raising_signals():  # There is nothing to save yet.
      with terminal.saying('trying environment and network', display):
        plan = plan_lib.make_plan(experiment, topology, launch_type)
      with terminal.saying('opening its directory', display):
        session = stack.enter_context(
          directory_lib.open_run(plan, fresh, report)
        )
      if not session.experiment.eager:  # Debugger prompts must stay visible.
        stack.enter_context(native_output.redirected(session.log_directory))
      show = stack.enter_context(_display(session, display))
    start = {**session.run_layout, **session.description}
    with run_metadata.writing(session.log_directory, start) as log_end:
      status, not_stored = remote_storage.run_and_upload(
        functools.partial(
          plan.topology.run, session, plan.launcher, interruption
        ),
        plan.storage,
        session,
        show,
      )
      log_end(status, interruption.number)
    show(status)
  return _describe_end(session, status, interruption.number, not_stored)


@contextlib.contextmanager
def _display(
  session: session_lib.Session, is_shown: bool
) -> Iterator[Callable[[loggers.Status], None]]:
  """Yields a function that displays the status."""
  dashboard = contextlib.nullcontext()
  if is_shown:
    dashboard = loggers.Dashboard(is_live=not session.experiment.eager)
  with dashboard as shown:

    def show(status: loggers.Status) -> None:
      printed.shorten(session.log_directory)
      if shown is not None:
        shown.update(status)

    yield show


def _describe_end(
  session: session_lib.Session,
  status: loggers.Status,
  signal_number: int | None,
  not_stored: str,
) -> Result:
  directory = session.experiment.directory
  checkpoint = directories.load_checkpoint(directory, check_replay=False)
  not_saved = ''
  if status.steps or not signal_number:  # Otherwise there is nothing to save.
    not_saved = _describe_loss(checkpoint, status.learner_steps)
  variables_sha256, is_exact = None, False
  if checkpoint is not None:
    is_exact = bool(checkpoint.state.get('is_exact'))
    if not not_saved:
      variables_sha256 = checkpointing.hash_arrays(checkpoint.arrays)
  return Result(
    status,
    directory,
    best=None if status.best_return is None else session.best_directory,
    stopped_early=status.stopped_early or None,
    interrupted=signal_number,
    why_no_update=(
      None if signal_number else _explain_no_update(session, status)
    ),
    variables_sha256=variables_sha256,
    resumes_exactly=is_exact,
    not_saved=not_saved,
    not_stored=not_stored,
    not_recorded=status.not_recorded,
  )


def _describe_loss(
  checkpoint: checkpointing.Checkpoint | None, learner_steps: int
) -> str:
  """Describes updates that a run's last checkpoint lacks; '' if none."""
  if checkpoint is None:
    return 'No checkpoint could be written: this run cannot be resumed.'
  saved = checkpoint.state['counts']['learner_steps']
  if saved >= learner_steps:
    return ''
  name = os.path.basename(checkpoint.path)
  return (
    f'The last checkpoint could not be written: the newest, {name}, has '
    f'{saved} of {learner_steps} updates.'
  )


def _explain_no_update(
  session: session_lib.Session, status: loggers.Status
) -> str | None:
  counts = session.counts
  if (
    status.learner_steps > counts['learner_steps']
    or status.steps <= counts['steps']  # No steps were left.
  ):
    return None
  name = session.experience.table.name
  inserts = {one.name: one.inserts for one in status.tables}.get(name, 0)
  return (
    f"The learner took no step in this run: table '{name}' got {inserts} "
    f'items, and the learner needs '
    f'{preflight.describe_need(session.experience)}. Take more steps, or lower '
    'these settings.'
  )
