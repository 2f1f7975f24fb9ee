"""Starts of runs: checks, then a new run or one resumed from a checkpoint."""

import contextlib
import dataclasses
import functools
import os
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from repertory.agents.reward_models import reward_model_config
from repertory.components import checkpoints, specs, transports
from repertory.components.checkpoints import checkpointing
from repertory.components.runtime import versions
from repertory.components.transports import experience as experience_lib
from repertory.launch import failures
from repertory.launch.experiments import experiment as experiment_lib
from repertory.launch.opening import (
  directories,
  offline_checks,
  preflight,
  remote_storage,
  smoke_test,
  warm_start,
)
from repertory.launch.opening import session as session_lib


def check(
  experiment: experiment_lib.Experiment,
  kinds: Sequence[str],
  smallest_batch: int | None = None,
  check_experience: Callable[[Any, Any, Any], None] = lambda *checked: None,
) -> tuple[
  specs.EnvironmentSpec,
  experience_lib.Experience,
  list[preflight.ReplayOption],
]:
  """Checks an experiment for a topology; writes nothing.

  See `topologies.topology.Topology` for the arguments, of which `kinds` are its
  transports. Replay options are returned in order, the best first.
  """
  spec = smoke_test.check(experiment)
  experience = preflight.describe_experience(experiment, spec)
  options = preflight.find_options(
    experiment, experience, kinds, smallest_batch
  )
  check_experience(experiment, experience, spec)
  offline_checks.check_demonstrations(experiment, experience, spec, kinds)
  offline_checks.prepare_recording(experiment, spec, writes=False)
  preflight.check_steps(experiment, experience, kinds)
  return spec, experience, options


@contextlib.contextmanager
def open_session(
  experiment: experiment_lib.Experiment,
  fresh: bool = False,
  smallest_batch: int | None = None,
  kinds: Sequence[str] = (transports.ReverbTransport.kind,),
  check_experience: Callable[[Any, Any, Any], None] = lambda *checked: None,
  sharding: str = '',
  report: Callable[[str], None] = lambda message: None,
  stored: checkpoints.Storage | None = None,
) -> Iterator[session_lib.Session]:
  """Checks an experiment, locks its directory and loads its checkpoint.

  The storage, if any, is locked, too, and its newer checkpoints are fetched.
  `report` is called with a description of what may take minutes.

  Raises:
    ValueError: If the experiment cannot run, or another run holds the directory
      or the storage; nothing was written.
    CheckpointError: If the checkpoint cannot be read or is of another
      experiment; nothing was written.
  """
  spec, experience, options = check(
    experiment, kinds, smallest_batch, check_experience
  )
  check_ours = functools.partial(
    check_identity, identity=experiment.identity(experience)
  )
  initial = None
  if fresh or (
    stored is None and _checkpointer(experiment.directory).newest() is None
  ):
    # Before its directory may be moved aside.
    initial = warm_start.read(experiment, spec)
  # Locks first, so that no other run changes what is read next.
  locked = remote_storage.holding(stored, experiment, fresh, check_ours, report)
  with locked as fetched:
    checkpoint = load_checkpoint(experiment.directory)
    if checkpoint is None:
      initial = initial or warm_start.read(experiment, spec)
    else:
      check_ours(checkpoint)
      warm_start.check_resumed(experiment, checkpoint)
    session = _choose(experiment, spec, options, checkpoint, sharding)
    _check_resumed(checkpoint, session)
    session.make_checkpointer().remove_unfinished()
    shutil.rmtree(session.storing_directory, ignore_errors=True)
    os.makedirs(session.log_directory, exist_ok=True)
    cleared = directories.clear_way(session.log_directory)
    tables = checkpoint and session.replay_of(checkpoint)
    checkpointing.prepare_replay(tables, session.replay_directory)
    session = warm_start.place(session, initial)
    offline_checks.prepare_recording(experiment, spec)
    started = _describe_start(checkpoint, session)
    messages = (fetched, started, session.message, cleared)
    message = '; '.join(filter(None, messages))
    yield dataclasses.replace(session, message=message)


def resume(
  session: session_lib.Session,
  num_restarts: int,
  failure: failures.Failure,
) -> session_lib.Session | None:
  """Restores the newest checkpoint of a locked run whose nodes have ended.

  `num_restarts` includes this one. Returns None without a checkpoint.
  """
  checkpoint = load_checkpoint(session.experiment.directory)
  if checkpoint is None:
    return None
  tables = session.replay_of(checkpoint)
  checkpointing.prepare_replay(tables, session.replay_directory)
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
  directory: str, check_replay: bool = True, best: bool = False
) -> checkpointing.Checkpoint | None:
  """Reads a run's newest checkpoint, or that of its best policy, if any."""
  folder = directories.BEST if best else directories.CHECKPOINTS
  return _checkpointer(directory, folder).load(check_replay)


def _checkpointer(
  directory: str, folder: str = directories.CHECKPOINTS
) -> checkpointing.Checkpointer:
  directories.check_folder(directory, folder)
  return checkpointing.Checkpointer(os.path.join(directory, folder))


def describe_loss(
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


def check_identity(
  checkpoint: checkpointing.Checkpoint, identity: Mapping[str, Any]
) -> None:
  """Raises CheckpointError for one of another experiment, with differences."""
  found = reward_model_config.with_present_names(checkpoint.state['experiment'])
  names = [
    name
    for name in sorted(found.keys() | identity.keys())
    if found.get(name) != identity.get(name)
  ]
  if 'builder' in names:  # Its settings differ, too; so do its tables.
    names = [name for name in names if '.' not in name]
  names = [n for n in names if not n.startswith('table.')] or names
  if not names:
    return
  differences = [
    f'{name}: {found.get(name, "nothing")} in the checkpoint, '
    f'{identity.get(name, "nothing")} now'
    for name in names
  ]
  raise checkpointing.CheckpointError(
    f'Checkpoint {checkpoint.path} is of another experiment: '
    f'{"; ".join(differences)}. Use the settings of the checkpoint, or choose '
    'another directory.',
    fresh=True,
  )


def _describe_move(checkpoint: checkpointing.Checkpoint) -> str:
  """Names the versions that wrote a checkpoint, if others than these; or ''."""
  now = versions.versions()
  found = checkpoint.state.get('versions', now)
  others = [name for name in now if found.get(name) != now[name]]
  if not others:
    return ''
  there = ', '.join(f'{name} {found.get(name, "unknown")}' for name in others)
  here = ', '.join(f'{name} {now[name]}' for name in others)
  return f'written with {there}, and this is {here}'


def _check_resumed(
  checkpoint: checkpointing.Checkpoint | None, session: session_lib.Session
) -> None:
  """Raises if the resumed run would count steps, or compute, differently."""
  if checkpoint is None:
    return
  was_offline = session_lib.transport_of(checkpoint) == transports.OFFLINE
  if was_offline != (session.transport == transports.OFFLINE):
    it, now = ('offline', 'another') if was_offline else ('another', 'offline')
    raise checkpointing.CheckpointError(
      f'Checkpoint {checkpoint.path} is of a run in {it} topology, and this is '
      f'{now}: steps of offline are learner steps, so neither resumes from the '
      'other. Choose another directory: with initial_from, a new run begins '
      'with the networks of this one.',
      fresh=True,
    )
  if not session.experiment.deterministic:
    return
  problem, advice = _explain_inexact(checkpoint, session)
  if problem:
    raise checkpointing.CheckpointError(
      'A deterministic run cannot resume from checkpoint '
      f'{checkpoint.path}: that {problem}. Leave deterministic out to resume '
      f'all the same, or {advice}.',
      fresh=True,
    )


def _explain_inexact(
  checkpoint: checkpointing.Checkpoint, session: session_lib.Session
) -> tuple[str, str]:
  """Returns why a run would not resume bit by bit, or '', and a remedy."""
  state, sharding = checkpoint.state, session.sharding
  if moved := _describe_move(checkpoint):
    return (
      f'was {moved}; other versions round differently, and may not unpickle '
      'environments',
      'resume with the versions that wrote it',
    )
  older = 'remove its folder if there is an older one'
  if not (session.replay_of(checkpoint) and state.get('is_exact')):
    return (
      'lacks the state of the environments. Deterministic runs write it with '
      'checkpoint_replay, if their environments can be pickled, unless they '
      'ended in the middle of a step or round',
      older,
    )
  written_by = state.get('sharding', state.get('division', ''))
  if written_by != sharding:
    return f"was written by '{written_by}', and this is '{sharding}'", older
  return '', ''


def _choose(
  experiment: experiment_lib.Experiment,
  spec: specs.EnvironmentSpec,
  options: Sequence[preflight.ReplayOption],
  checkpoint: checkpointing.Checkpoint | None,
  sharding: str,
) -> session_lib.Session:
  """Returns a session with the best option that restores the tables, if any."""
  state = checkpoint.state if checkpoint else {}
  counts = {'steps': 0, 'episodes': 0, 'learner_steps': 0, 'runs': 0}
  counts.update(state.get('counts', {}))
  sessions = [
    session_lib.Session(
      offline_checks.with_absolute_paths(experiment),
      spec,
      option.experience,
      counts=counts,
      elapsed_seconds=state.get('elapsed_seconds', 0.0),
      is_resumed=checkpoint is not None,
      initial=state.get(warm_start.KEY),
      message=option.warning,
      transport=option.transport,
      sharding=sharding,
    )
    for option in options
  ]
  fitting = (
    one
    for one in sessions
    if checkpoint and not one.explain_omission(checkpoint)
  )
  return next(fitting, sessions[0])


def _describe_omission(
  checkpoint: checkpointing.Checkpoint, session: session_lib.Session
) -> str:
  """Explains why a checkpoint's replay is not restored; '' if it is."""
  why = session.explain_omission(checkpoint)
  return f', but with empty replay tables: {why}' if why else ''


def _describe_start(
  checkpoint: checkpointing.Checkpoint | None, session: session_lib.Session
) -> str:
  if checkpoint is None:
    origin = session.initial
    if origin is None:
      return ''
    return (
      f'begins with the networks of {origin["directory"]} after update '
      f'{origin["learner_steps"]}'
    )
  experiment = session.experiment
  name = os.path.basename(checkpoint.path)
  omission = _describe_omission(checkpoint, session)
  if checkpoint.state['counts']['steps'] >= experiment.max_steps:
    return (
      f'resumed from checkpoint {name}, which has all {experiment.max_steps} '
      f'steps already{omission}'
    )
  if checkpoint.replay_path is None and session.transport != transports.OFFLINE:
    started = f'resumed from checkpoint {name}, which has no replay'
  else:
    started = f'resumed from checkpoint {name}{omission}'
  moved = _describe_move(checkpoint)
  return f'{started}; {moved}' if moved else started
