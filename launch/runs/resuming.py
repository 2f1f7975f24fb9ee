"""How runs begin: anew, or where their checkpoint has them."""

import contextlib
import dataclasses
import functools
import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import tensorflow as tf

from repertory.components import (
  checkpointing,
  replay,
  roads,
  settings,
  signals,
  specs,
  storage,
)
from repertory.components import experience as experience_lib
from repertory.components.replay import local
from repertory.launch import experiment as experiment_lib
from repertory.launch import failures
from repertory.launch.host import native_output, printed
from repertory.launch.runs import (
  data_checks,
  directories,
  fetching,
  going_on,
  identities,
  preflight,
  recording,
  trials,
  warm_start,
)
from repertory.launch.runs import session as session_lib

# What makes a table's files those of a kind of road.
_MOVES = {
  roads.ReverbRoad.kind: local.to_server,
  roads.LocalRoad.kind: local.to_process,
}


@contextlib.contextmanager
def open_session(
  experiment: experiment_lib.Experiment,
  fresh: bool = False,
  smallest_batch: int | None = None,
  kinds: Sequence[str] = (roads.ReverbRoad.kind,),
  check: Callable[[Any, Any, Any], None] = lambda *checked: None,
  division: str = '',
  tell: Callable[[str], None] = lambda message: None,
  stored: storage.Storage | None = None,
) -> Iterator[session_lib.Session]:
  """Checks an experiment, finds its checkpoint and holds its directory.

  Args:
    fresh: Start over although there is a checkpoint; the old directory is
      moved aside.
    smallest_batch: What the environments of each adder are a multiple of; None
      for the environments of an actor.
    kinds: The kinds of road that may carry experience, the best first.
    check: Refuses an experiment, experience and spec that cannot run so.
    division: How it is divided among nodes, in words.
    tell: Hears, in words, of what may take minutes.
    stored: The experiment's storage, if it has one: it is held, too, and what
      is newer there is brought.

  Yields:
    The session.

  Raises:
    ValueError: If the experiment cannot run, or another run has the directory
      or the storage; nothing was written.
    CheckpointError: If the checkpoint cannot be read or is of another
      experiment; nothing was written.
  """
  spec = trials.check(experiment)
  experience = session_lib.describe_experience(experiment, spec)
  ways = preflight.find_ways(experiment, experience, kinds, smallest_batch)
  check(experiment, experience, spec)
  _check_rest(experiment, experience, spec, kinds)
  identity = experiment.identity(experience)
  check_ours = functools.partial(identities.check_identity, identity=identity)
  start = warm_start.WarmStart(experiment, spec)
  if fresh or (stored is None and not _has_checkpoint(experiment.directory)):
    start.read()  # Now, for it may be what is moved aside.
  # First, so that what is read next is nobody else's to change.
  with fetching.holding(stored, experiment, fresh, check_ours, tell) as fetched:
    checkpoint = load_checkpoint(experiment.directory)
    if checkpoint is not None:
      check_ours(checkpoint)
    start.settle(checkpoint)
    way, session = _choose_way(ways, checkpoint, experiment, spec, division)
    going_on.check(checkpoint, session)
    cleared = _clear(session)
    _place_replay(checkpoint, session, tell)
    session = start.place(session)
    recording.prepare(experiment, spec)
    told = _describe_start(checkpoint, session)
    messages = [fetched, told, way.warning, cleared, _explain(way, ways)]
    message = '; '.join(filter(None, messages))
    yield dataclasses.replace(session, message=message)


def _check_rest(
  experiment: experiment_lib.Experiment,
  experience: experience_lib.Experience,
  spec: specs.EnvironmentSpec,
  kinds: Sequence[str],
) -> None:
  """Refuses data that do not fit, and last what more steps would mend."""
  data_checks.check_demonstrations(experiment, experience, spec, kinds)
  recording.prepare(experiment, spec, writes=False)
  preflight.check_steps(experiment, experience, kinds)


def resume(
  session: session_lib.Session,
  num_restarts: int,
  failure: failures.Failure,
  tell: Callable[[str], None] = lambda message: None,
  stop: signals.StopSignal | None = None,
) -> session_lib.Session | None:
  """Goes back to the newest checkpoint of a run whose nodes have ended.

  Args:
    session: What ran; its directory is still held.
    num_restarts: With this one.
    failure: Why.
    tell: Hears, in words, of what may take minutes.
    stop: Ends that.

  Returns:
    The session to go on with; None if there is no checkpoint.

  Raises:
    signals.Stopped: If the stop signal was set before it could go on.
  """
  checkpoint = load_checkpoint(session.experiment.directory)
  if checkpoint is None:
    return None
  _place_replay(checkpoint, session, tell, stop)
  name = os.path.basename(checkpoint.path)
  return dataclasses.replace(
    session,
    counts=checkpoint.state['counts'],
    elapsed_seconds=checkpoint.state['elapsed_seconds'],
    is_resumed=True,
    num_restarts=num_restarts,
    restarted_after=failure,
    message=(
      f'{failure.node} was lost; all started again from checkpoint {name}'
      f'{_describe_omission(checkpoint, session)}'
    ),
  )


def load_checkpoint(
  directory: str, check_replay: bool = True
) -> checkpointing.Checkpoint | None:
  """Reads the newest checkpoint of an experiment's directory, if any.

  Args:
    check_replay: Whether to compare the checksums of replay, too.
  """
  directories.check_folder(directory, directories.CHECKPOINTS, writes=False)
  path = os.path.join(directory, directories.CHECKPOINTS)
  return checkpointing.Checkpointer(path).load(check_replay)


def _has_checkpoint(directory: str) -> bool:
  path = os.path.join(directory, directories.CHECKPOINTS)
  return checkpointing.Checkpointer(path).newest() is not None


def describe_loss(directory: str, learner_steps: int) -> str:
  """Says what a run that has ended did not save; '' if it saved all.

  Args:
    learner_steps: Updates so far.
  """
  checkpoint = load_checkpoint(directory, check_replay=False)
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


def hash_variables(directory: str, learner_steps: int) -> str | None:
  """Returns the hash of all that the last checkpoint has of the learner.

  Args:
    learner_steps: Updates so far.

  Returns:
    None if not all of them were saved.
  """
  checkpoint = load_checkpoint(directory, check_replay=False)
  if checkpoint is None:
    return None
  if checkpoint.state['counts']['learner_steps'] < learner_steps:
    return None
  return checkpointing.hash_arrays(checkpoint.arrays)


def is_exact(directory: str) -> bool:
  """Whether a deterministic run goes on from the last checkpoint, if any."""
  checkpoint = load_checkpoint(directory, check_replay=False)
  return checkpoint is not None and bool(checkpoint.state.get('is_exact'))


def load_best(directory: str) -> checkpointing.Checkpoint | None:
  """Reads the policy of an experiment's best evaluation, if there was one."""
  directories.check_folder(directory, directories.BEST, writes=False)
  path = os.path.join(directory, directories.BEST)
  return checkpointing.Checkpointer(path).load()


def _choose_way(
  ways: Sequence[preflight.Way],
  checkpoint: checkpointing.Checkpoint | None,
  experiment: experiment_lib.Experiment,
  spec: specs.EnvironmentSpec,
  division: str,
) -> tuple[preflight.Way, session_lib.Session]:
  """Returns the best way in which a checkpoint's tables go on, or the best."""

  def begin(way: preflight.Way) -> session_lib.Session:
    parts = experiment, spec, way.experience, way.road, division
    return _begin(checkpoint, *parts)

  found = [(way, begin(way)) for way in ways]
  for way, session in found:
    if checkpoint is None or not session.explain_omission(checkpoint):
      return way, session
  return found[0]


def _explain(way: preflight.Way, ways: Sequence[preflight.Way]) -> str:
  """Says why it is not the best way, if that needs to be said."""
  if way == ways[0] or way.road != roads.ReverbRoad.kind:
    return ''
  return 'replay stays in a server, as the checkpoint has it'


def _clear(session: session_lib.Session) -> str:
  """Makes room for what a run writes; says what was in the way."""
  session.make_checkpointer().remove_unfinished()
  shutil.rmtree(session.storing_directory, ignore_errors=True)
  os.makedirs(session.log_directory, exist_ok=True)
  return directories.clear_way(
    session.log_directory, folders=[printed.NODES], files=[printed.NATIVE]
  )


def _begin(
  checkpoint: checkpointing.Checkpoint | None,
  experiment: experiment_lib.Experiment,
  spec: specs.EnvironmentSpec,
  experience: experience_lib.Experience,
  road: str,
  division: str,
) -> session_lib.Session:
  """Returns a session that counts on from a checkpoint, if there is one."""
  state = checkpoint.state if checkpoint else {}
  counts = {'steps': 0, 'episodes': 0, 'learner_steps': 0, 'runs': 0}
  counts.update(state.get('counts', {}))
  return session_lib.Session(
    recording.with_absolute_paths(experiment),
    spec,
    experience,
    counts=counts,
    elapsed_seconds=state.get('elapsed_seconds', 0.0),
    is_resumed=checkpoint is not None,
    initial=state.get(warm_start.KEY),
    road=road,
    division=division,
  )


def _place_replay(
  checkpoint: checkpointing.Checkpoint | None,
  session: session_lib.Session,
  tell: Callable[[str], None],
  stop: signals.StopSignal | None = None,
) -> None:
  """Lets the road take up what a checkpoint has of replay.

  What another road wrote is moved first: before there are nodes, for of a large
  table that takes longer than they may take to start.
  """
  path = None
  if checkpoint is not None and session.takes_replay_of(checkpoint):
    path = checkpoint.replay_path
  directory = session.replay_directory
  checkpointing.place_replay(path, directory)
  if path is None or session.road not in _MOVES:
    return
  try:
    with native_output.redirected(session.native_log):
      _MOVES[session.road](directory, session.experience.table, tell, stop)
  except (OSError, tf.errors.OpError, replay.ReplayCheckpointError) as error:
    if isinstance(error, (BrokenPipeError, ConnectionError, TimeoutError)):
      raise  # It was not the disk.
    raise checkpointing.CheckpointError(
      f'The replay table of {path} could not be moved for a run of this kind: '
      f'{settings.text_of(error)}. It needs room for another copy in '
      f'{directory}.'
    ) from error


def _describe_omission(
  checkpoint: checkpointing.Checkpoint, session: session_lib.Session
) -> str:
  """Says of a checkpoint with replay if that is not taken up; else ''."""
  why = session.explain_omission(checkpoint)
  return f', but with empty replay tables: {why}' if why else ''


def _describe_start(
  checkpoint: checkpointing.Checkpoint | None, session: session_lib.Session
) -> str:
  if checkpoint is None:
    return warm_start.describe(session)
  experiment = session.experiment
  name = os.path.basename(checkpoint.path)
  if checkpoint.state['counts']['steps'] >= experiment.max_steps:
    return (
      f'resumed from checkpoint {name}, by which all {experiment.max_steps} '
      'steps were taken already'
    )
  if checkpoint.replay_path is None and session.road != roads.DATA:
    told = f'resumed from checkpoint {name}, which has no replay: that is empty'
  else:
    omission = _describe_omission(checkpoint, session)
    told = f'resumed from checkpoint {name}{omission}'
  moved = going_on.describe_move(checkpoint)
  return f'{told}; {moved}' if moved else told
