"""Runs and evaluates experiments."""

import contextlib
import dataclasses
import os
from collections.abc import Callable, Iterator

import tensorflow as tf

from repertory.agents import registry as agents_registry
from repertory.components import environment_loop, learners, loggers
from repertory.launch import experiment as experiment_lib
from repertory.launch.host import interrupts, native_output, printed
from repertory.launch.nodes import evaluation
from repertory.launch.runs import session as session_lib
from repertory.launch.topologies import central, distributed, single

TOPOLOGIES = ('single', 'distributed', 'central')
LAUNCH_TYPES = {'local_mt': 'threads', 'local_mp': 'processes'}


@dataclasses.dataclass(frozen=True)
class Result:
  """How a run ended.

  Attributes:
    status: The last of the display.
    directory: Where its `logs/` and `checkpoints/` are.
    interrupted: Number of the operating-system signal that ended it early;
      None if it ran to its end.
  """

  status: loggers.Status
  directory: str
  interrupted: int | None = None


def run(
  experiment: experiment_lib.Experiment,
  topology: str = 'single',
  launch_type: str = 'local_mt',
  *,
  fresh: bool = False,
  display: bool = True,
  placement: central.Placement | None = None,
) -> Result:
  """Runs an experiment, or goes on with it where its directory has it.

  Args:
    experiment: What to run.
    topology: 'single': all in one thread; 'distributed': replay, learner,
      evaluator and each actor in one of their own; 'central': so, but inference
      servers act for all actors.
    launch_type: Of a topology with several nodes: 'local_mt' for threads,
      'local_mp' for processes.
    fresh: Start over; what is in the directory is moved aside.
    display: Show how the run goes, on the terminal.
    placement: Of 'central': where inference and learning run.

  Returns:
    How it ended; also of a run that Ctrl-C or SIGTERM ended early, after its
    checkpoint was written.

  Raises:
    ValueError: If it cannot run, saying what to change; nothing was written.
    NodeError: If a node failed.
  """
  _check(topology, launch_type, placement)
  _check_tensorflow()
  placement = placement or central.Placement()
  if topology == 'central':
    placement.check(experiment)
  title = f'{experiment.agent} on {experiment.environment}, {topology}'
  if topology != 'single':
    title += f' ({LAUNCH_TYPES[launch_type]})'
  with contextlib.ExitStack() as stack:
    opened = session_lib.open_session(experiment, fresh, placement.num_lanes)
    session = stack.enter_context(opened)
    path = os.path.join(session.log_directory, printed.NATIVE)
    stack.enter_context(native_output.redirected(path))
    show = stack.enter_context(_display(session, display))
    interruption = stack.enter_context(interrupts.catch_interrupts())
    if topology == 'single':
      status = single.run(session, title, interruption, show)
    elif topology == 'central':
      status = central.run(
        session, title, interruption, show, launch_type, placement
      )
    else:
      status = distributed.run(session, title, interruption, show, launch_type)
    show(status)
  return Result(status, experiment.directory, interruption.number)


def _check(
  topology: str, launch_type: str, placement: central.Placement | None
) -> None:
  check_topology(topology)
  if launch_type not in LAUNCH_TYPES:
    raise ValueError(
      f'launch_type must be one of {", ".join(LAUNCH_TYPES)}; got '
      f'{launch_type!r}.'
    )
  if placement is not None and topology != 'central':
    raise ValueError(
      f"placement must be left out: it is of topology 'central', got "
      f'{topology!r}.'
    )


def _check_tensorflow() -> None:
  """Raises ValueError if traced functions cannot get out of their graph."""
  found = []

  def look():
    with tf.init_scope():
      found.append(tf.executing_eagerly())

  tf.function(look).get_concrete_function()
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
    dashboard = stack.enter_context(loggers.Dashboard()) if is_shown else None

    def take(status: loggers.Status) -> None:
      printed.shorten(session.log_directory)
      if dashboard is not None:
        dashboard.update(status)

    yield take


def check_topology(topology: str) -> None:
  """Raises ValueError unless there is a topology of that name."""
  if topology not in TOPOLOGIES:
    raise ValueError(
      f'topology must be one of {", ".join(TOPOLOGIES)}; got {topology!r}.'
      + agents_registry.did_you_mean(topology, TOPOLOGIES)
    )


def evaluate(
  experiment: experiment_lib.Experiment, num_episodes: int
) -> list[environment_loop.Episode]:
  """Evaluates the newest checkpoint of an experiment; writes nothing.

  Args:
    experiment: Whose directory holds the checkpoint.
    num_episodes: At least 1.

  Returns:
    The episodes.

  Raises:
    ValueError: If there is no checkpoint, or it is of another experiment.
  """
  if num_episodes < 1:
    raise ValueError(f'num_episodes must be at least 1, got {num_episodes}.')
  spec = session_lib.check(experiment)
  checkpoint = session_lib.load_checkpoint(
    experiment.directory, check_replay=False
  )
  if checkpoint is None:
    raise ValueError(
      'directory must hold a checkpoint, found none in '
      f'{experiment.directory}. Train first.'
    )
  session_lib.check_identity(checkpoint, experiment.identity(spec))
  network = experiment.builder.make_network(spec)
  learners.restore_exported(checkpoint.arrays, 'policy', network.variables)
  session = session_lib.Session(
    experiment, spec, checkpoint.state['counts'], 0.0, is_resumed=True
  )
  loop, environment = evaluation.make_loop(session, network, num_episodes)
  try:
    return loop.run_episodes(num_episodes)
  finally:
    environment.close()
