"""Runs of experiments, new or resumed."""

import contextlib
import dataclasses
from collections.abc import Callable, Iterator

import tensorflow as tf

from repertory.components import checkpoints, loggers
from repertory.components.checkpoints import checkpointing
from repertory.launch.experiments import callbacks as callbacks_lib
from repertory.launch.experiments import experiment as experiment_lib
from repertory.launch.launchers import launcher as launcher_lib
from repertory.launch.opening import (
  preflight,
  remote_storage,
  resuming,
  run_metadata,
)
from repertory.launch.opening import session as session_lib
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
  if isinstance(topology, str):
    topology = topology_lib.get(topology)()
  if isinstance(launch_type, str):
    launch_type = launcher_lib.get(launch_type)()
  experiment, callback_list = _split_callbacks(experiment)
  with contextlib.ExitStack() as stack:
    interruption = stack.enter_context(interrupts.catch_interrupts())
    with interrupts.raising_signals():  # There is nothing to save yet.
      # May split the CPU into virtual devices, so precedes use of TensorFlow.
      topology = _check(topology, launch_type, experiment, callback_list)
      _check_tensorflow()
      where = experiment.storage, experiment.directory
      stored = checkpoints.open_storage(*where)
      opened = _open(topology, experiment, stored, fresh, display)
      with terminal.saying('trying environment and network', display):
        session = stack.enter_context(opened)
      layout = topology.run_layout(launch_type)
      changes = {'callback_list': callback_list, 'run_layout': layout}
      session = dataclasses.replace(session, **changes)
      if not experiment.eager:  # Debugger prompts must stay visible.
        stack.enter_context(native_output.redirected(session.log_directory))
      show = stack.enter_context(_display(session, display))
    title = topology.title(experiment, launch_type)
    stage = topology_lib.Stage(title, interruption, show, launch_type)
    start = {**session.run_layout, **session.description}
    with run_metadata.writing(session.log_directory, start) as log_end:
      status, not_stored = _run(topology, session, stage, stored)
      log_end(status, interruption.number)
    show(status)
  return _describe_end(session, status, interruption.number, not_stored)


def _split_callbacks(
  experiment: experiment_lib.Experiment,
) -> tuple[experiment_lib.Experiment, callbacks_lib.CallbackList]:
  if not isinstance(experiment, experiment_lib.Experiment):
    raise TypeError(
      f'experiment must be a launch.Experiment, got {experiment!r}; '
      'launch.make_experiment makes one from names of agent and environment.'
    )
  if tf.config.functions_run_eagerly():
    experiment = dataclasses.replace(experiment, eager=True)
  return callbacks_lib.take(experiment)


def _run(
  topology: topology_lib.Topology,
  session: session_lib.Session,
  stage: topology_lib.Stage,
  stored: checkpoints.Storage | None,
) -> tuple[loggers.Status, str]:
  """Runs to the end; also returns why the last checkpoint is not stored."""
  if stored is None:
    return topology.run(session, stage), ''
  with remote_storage.Uploads(stored, session, stage.show) as storing:
    stage = dataclasses.replace(stage, show=storing.show)
    status = topology.run(session, stage)
    not_stored = storing.finish()
    return storing.complete(status), not_stored


def _describe_end(
  session: session_lib.Session,
  status: loggers.Status,
  signal_number: int | None,
  not_stored: str,
) -> Result:
  directory = session.experiment.directory
  checkpoint = resuming.load_checkpoint(directory, check_replay=False)
  not_saved = ''
  if status.steps or not signal_number:  # Otherwise there is nothing to save.
    not_saved = resuming.describe_loss(checkpoint, status.learner_steps)
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


def _open(
  topology: topology_lib.Topology,
  experiment: experiment_lib.Experiment,
  stored: checkpoints.Storage | None,
  fresh: bool,
  display: bool,
) -> contextlib.AbstractContextManager[session_lib.Session]:
  return resuming.open_session(
    experiment,
    fresh,
    topology.smallest_batch(experiment),
    topology.transports(experiment),
    topology.check_experience,
    topology.sharding(experiment),
    terminal.print_line if display else lambda message: None,
    stored,
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


def _check(
  topology: topology_lib.Topology,
  launcher: launcher_lib.Launcher,
  experiment: experiment_lib.Experiment,
  callback_list: callbacks_lib.CallbackList,
) -> topology_lib.Topology:
  """Returns the topology with defaults for the launcher."""
  topology = topology.launched_by(launcher, experiment)
  topology_lib.check_launch(
    topology, launcher, experiment.deterministic, experiment.eager
  )
  topology.check(experiment)
  if topology.has_program and launcher.needs_pickles:
    callback_list.check_can_travel(launcher.name)
  return topology


def _check_tensorflow() -> None:
  """Raises ValueError if traced functions cannot leave their graph."""
  found = []

  def look():
    with tf.init_scope():
      found.append(tf.executing_eagerly())

  tf.function(look, autograph=False).get_concrete_function()
  if found[0]:
    return
  raise ValueError(
    'tensorflow must be imported before `absl.app.run` is called, but was '
    'first imported inside it, where its functions cannot create variables. '
    'Import `tensorflow` at the top of the script.'
  )


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


def check(
  experiment: experiment_lib.Experiment,
  topology: topology_lib.Topology,
  launch_type: launcher_lib.Launcher,
) -> None:
  """Checks whether `run` would accept an experiment; writes nothing."""
  experiment, callback_list = _split_callbacks(experiment)
  topology = _check(topology, launch_type, experiment, callback_list)
  resuming.check(
    experiment,
    topology.transports(experiment),
    topology.smallest_batch(experiment),
    topology.check_experience,
  )
