"""Runs and evaluates experiments."""

import contextlib
import dataclasses
from collections.abc import Callable, Iterator

import tensorflow as tf

from repertory.components import (
  loggers,
  storage,
)
from repertory.launch import experiment as experiment_lib
from repertory.launch import hooks as hooks_lib
from repertory.launch.host import (
  brief_notes,
  interrupts,
  native_output,
  printed,
)
from repertory.launch.launchers import launcher as launcher_lib
from repertory.launch.runs import (
  data_checks,
  ledger,
  preflight,
  resuming,
  trials,
  uploads,
)
from repertory.launch.runs import session as session_lib
from repertory.launch.topologies import topology as topology_lib


@dataclasses.dataclass(frozen=True)
class Result:
  """How a run ended.

  Attributes:
    status: The last of the display.
    directory: Where its `logs/` and `checkpoints/` are.
    best: Where the policy is that did best in an evaluation, of this run or of
      one that it resumed; `status.best_return` tells how well. None if there
      was no evaluation.
    stopped_early: Why it ended before all its steps were taken: what the
      experiment's `stop_when` said. None if it did not.
    interrupted: Number of the operating-system signal that ended it early;
      None if it ran to its end.
    why_no_update: If it ran to its end without any update, how many items the
      learner got, and how many it needs before it begins; else None.
    variables_sha256: Tells in hexadecimal all that the last checkpoint has of
      the learner: equal for equal bits. None if none could be written.
    not_stored: Why the last checkpoint, or the best policy, is not in the
      experiment's storage, and what would store it; empty if it is, or there is
      no storage.
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
  """Runs an experiment, or goes on with it where its directory has it.

  Args:
    experiment: What to run.
    topology: What runs where: 'single', 'distributed', 'central' or another
      name that `--topology` takes; or one with settings, such as
      `central.Central(double_buffering=True)` of `launch.topologies`.
    launch_type: Hosts the nodes of a topology with several: 'local_mt' for
      threads, 'local_mp' for processes, 'ray' for processes that Ray places,
      or one with settings, as of `launch.launchers.ray_launcher`. Where all is
      in one process, nothing but 'local_mt' will do.
    fresh: Start over; what is in the directory is moved aside.
    display: Show how the run goes, on the terminal.

  Returns:
    How it ended; also of a run that Ctrl-C, SIGTERM or SIGHUP ended early,
    after its checkpoint was written.

  Raises:
    ValueError: If it cannot run, saying what to change; nothing was written.
    NodeError: If a node failed.
    NoAnswerError: If the storage does not answer before the start.
    SystemExit: If SIGTERM or SIGHUP came before it began.
  """
  if isinstance(topology, str):
    topology = topology_lib.get(topology)()
  if isinstance(launch_type, str):
    launch_type = launcher_lib.get(launch_type)()
  experiment, hooks = _take_hooks(experiment)
  with contextlib.ExitStack() as stack:
    interruption = stack.enter_context(interrupts.catch_interrupts())
    with interrupts.insisting():  # So far there is nothing to save.
      # It may divide a CPU, which comes before the first use.
      topology = _check(topology, launch_type, experiment, hooks)
      _check_tensorflow()
      stored = storage.open_storage(experiment.storage, experiment.directory)
      opened = _open(topology, experiment, stored, fresh, display)
      with brief_notes.saying('trying environment and network', display):
        session = stack.enter_context(opened)
      wiring = topology.describe_wiring(launch_type)
      session = dataclasses.replace(session, hooks=hooks, wiring=wiring)
      if not experiment.eager:  # Prompts of a debugger would be lost.
        stack.enter_context(native_output.redirected(session.native_log))
      show = stack.enter_context(_display(session, display))
    title = topology.title(experiment, launch_type)
    stage = topology_lib.Stage(title, interruption, show, launch_type)
    start = {**session.wiring, **session.description}
    with ledger.telling(session.log_directory, start) as tell_end:
      status, not_stored = _run(topology, session, stage, stored)
      tell_end(status, interruption.number)
    show(status)
  return _describe_end(session, status, interruption.number, not_stored)


def _take_hooks(
  experiment: experiment_lib.Experiment,
) -> tuple[experiment_lib.Experiment, hooks_lib.Hooks]:
  if not isinstance(experiment, experiment_lib.Experiment):
    raise TypeError(
      f'experiment must be a launch.Experiment, got {experiment!r}; '
      'launch.make_experiment makes one of the names of agent and environment.'
    )
  if tf.config.functions_run_eagerly():
    experiment = dataclasses.replace(experiment, eager=True)
  return hooks_lib.take(experiment)


def _run(
  topology: topology_lib.Topology,
  session: session_lib.Session,
  stage: topology_lib.Stage,
  stored: storage.Storage | None,
) -> tuple[loggers.Status, str]:
  """Runs to the end, and stores what is written meanwhile.

  Returns:
    The status, and why the last checkpoint is not stored; '' if it is.
  """
  if stored is None:
    return topology.run(session, stage), ''
  with uploads.Uploads(stored, session, stage.show) as storing:
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
  return Result(
    status,
    directory,
    best=None if status.best_return is None else session.best_directory,
    stopped_early=status.stopped_early or None,
    interrupted=signal_number,
    why_no_update=(
      None if signal_number else _explain_no_update(session, status)
    ),
    variables_sha256=resuming.hash_variables(directory, status.learner_steps),
    not_stored=not_stored,
    not_recorded=status.not_recorded,
  )


def _open(
  topology: topology_lib.Topology,
  experiment: experiment_lib.Experiment,
  stored: storage.Storage | None,
  fresh: bool,
  display: bool,
) -> contextlib.AbstractContextManager[session_lib.Session]:
  """Opens the session of an experiment as the topology needs it."""
  return resuming.open_session(
    experiment,
    fresh,
    topology.smallest_batch(experiment),
    topology.roads(experiment),
    topology.check_experience,
    topology.division(experiment),
    _print if display else lambda message: None,
    stored,
  )


def _print(message: str) -> None:
  """Shows what happens before there is a display."""
  brief_notes.print_line(f'repertory: {message}')


def _explain_no_update(
  session: session_lib.Session, status: loggers.Status
) -> str | None:
  """Says why a run has ended without any update, if so."""
  counts = session.counts
  if (
    status.learner_steps > counts['learner_steps']
    or status.steps <= counts['steps']  # There was nothing left to do.
  ):
    return None
  experience = session.experience
  inserts = {one.name: one.inserts for one in status.tables}
  return preflight.explain_no_update(
    experience, inserts.get(experience.table.name, 0)
  )


def _check(
  topology: topology_lib.Topology,
  launcher: launcher_lib.Launcher,
  experiment: experiment_lib.Experiment,
  hooks: hooks_lib.Hooks,
) -> topology_lib.Topology:
  """Returns the topology, with its defaults for the launcher.

  Raises:
    ValueError: If they do not go together.
  """
  topology = topology.launched_by(launcher, experiment)
  topology_lib.check_launch(
    topology, launcher, experiment.deterministic, experiment.eager
  )
  topology.check(experiment)
  if topology.has_program and launcher.needs_pickles:
    hooks.check_can_travel(launcher.name)
  return topology


def _check_tensorflow() -> None:
  """Raises ValueError if traced functions cannot get out of their graph."""
  found = []

  def look():
    with tf.init_scope():
      found.append(tf.executing_eagerly())

  tf.function(look, autograph=False).get_concrete_function()
  if found[0]:
    return
  raise ValueError(
    'tensorflow must be imported before `absl.app.run` is called, but was '
    'first imported inside of it, where its functions cannot make variables. '
    'Import `tensorflow` at the top of the script.'
  )


@contextlib.contextmanager
def _display(
  session: session_lib.Session, is_shown: bool
) -> Iterator[Callable[[loggers.Status], None]]:
  """Yields what takes the status now and then."""
  with contextlib.ExitStack() as stack:
    dashboard = None
    if is_shown:
      is_live = not session.experiment.eager
      dashboard = stack.enter_context(loggers.Dashboard(is_live=is_live))

    def take(status: loggers.Status) -> None:
      printed.shorten(session.log_directory)
      if dashboard is not None:
        dashboard.update(status)

    yield take


def check(
  experiment: experiment_lib.Experiment,
  topology: topology_lib.Topology,
  launch_type: launcher_lib.Launcher,
) -> None:
  """Finds out whether `run` would take an experiment; writes nothing.

  Args:
    experiment: What would run.
    topology: What would run where.
    launch_type: What would host the nodes.

  Raises:
    ValueError: If it cannot run, saying what to change.
    TimeoutError: If its environment is made for too long.
  """
  experiment, hooks = _take_hooks(experiment)
  topology = _check(topology, launch_type, experiment, hooks)
  spec = trials.check(experiment)
  experience = session_lib.describe_experience(experiment, spec)
  kinds = topology.roads(experiment)
  preflight.find_ways(
    experiment, experience, kinds, topology.smallest_batch(experiment)
  )
  topology.check_experience(experiment, experience, spec)
  data_checks.check_demonstrations(experiment, experience, spec, kinds)
  preflight.check_steps(experiment, experience, kinds)
