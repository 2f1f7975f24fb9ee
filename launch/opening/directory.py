"""Opens the directory of a run, new or with a checkpoint to resume from."""

import contextlib
import dataclasses
import functools
import os
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from repertory.components import learners, offline, transports
from repertory.components.checkpoints import checkpointing
from repertory.components.config.settings import SettingError
from repertory.components.runtime import versions
from repertory.launch.experiments import directories, preflight
from repertory.launch.experiments import session as session_lib
from repertory.launch.opening import plan as plan_lib
from repertory.launch.opening import remote_storage

_INITIAL = 'initial_from'  # In the state of checkpoints and in logs.


@contextlib.contextmanager
def open_run(
  plan: plan_lib.Plan,
  fresh: bool = False,
  report: Callable[[str], None] = lambda message: None,
) -> Iterator[session_lib.Session]:
  """Holds the directory of a run, new or resumed, and yields its session.

  The storage, if any, is locked, too, and its newer checkpoints are fetched.
  `report` is called with a description of what may take minutes.

  Raises:
    ValueError: If another run holds the directory or the storage; nothing was
      written.
    CheckpointError: If the checkpoint cannot be read or is of another
      experiment; nothing was written.
  """
  experiment, directory = plan.experiment, plan.experiment.directory
  check = functools.partial(session_lib.check_identity, identity=plan.identity)
  source, initial = experiment.initial_from, None
  if source and (
    fresh
    or not (plan.storage or directories.checkpoints_in(directory).newest())
  ):
    # Before the directory may be moved aside.
    initial = _read_initial(plan, source)
  directories.check_writable(directory)
  if not fresh:
    directories.check_run(directory)
  # Locks first, so that no other run changes what is read next.
  with contextlib.ExitStack() as held:
    held.enter_context(directories.hold(directory))
    fetched = ''
    if plan.storage is not None:
      fetched = held.enter_context(
        remote_storage.holding(plan.storage, experiment, fresh, check, report)
      )
    if fresh and os.listdir(directory) != [directories.LOCK]:
      directories.set_aside(directory)
      held.enter_context(directories.hold(directory))
    checkpoint = directories.load_checkpoint(directory)
    if checkpoint is not None:
      check(checkpoint)
      session, replay_path = _resume(plan, checkpoint)
    else:
      if source and initial is None:  # The storage has no checkpoint, either.
        initial = _read_initial(plan, source)
      session, replay_path = _begin(plan, initial), None
      directories.save_initial(directory, initial)
    cleared = directories.clear(directory)
    checkpointing.prepare_replay(replay_path, session.replay_directory)
    if experiment.record and plan.recording:
      offline.prepare(experiment.record, plan.recording)
    message = '; '.join(filter(None, (fetched, session.message, cleared)))
    yield dataclasses.replace(session, message=message)


def _read_initial(plan: plan_lib.Plan, source: str) -> directories.Initial:
  """Reads the networks of another run, which a new one begins with.

  Raises:
    SettingError: If they cannot be read, or do not fit.
  """
  checkpoint = directories.load_initial(source)
  arrays, state = learners.select_learned(checkpoint.arrays), checkpoint.state
  origin = {
    'directory': os.path.realpath(source),
    'checkpoint': os.path.basename(checkpoint.path),
    'agent': state['experiment']['agent'],
    'environment': state['experiment']['environment'],
    'steps': state['counts']['steps'],
    'learner_steps': state['counts']['learner_steps'],
  }
  builder = plan.experiment.builder
  update = builder.make_update(builder.make_network(plan.spec), plan.spec)
  named = learners.name_learned(update)
  expected = {name: tuple(v.shape) for name, v in named.items()}
  if differences := _compare_shapes(arrays, expected):
    more = len(differences) - 4
    raise SettingError(
      _INITIAL,
      'must be a run whose networks are those of this one, but checkpoint '
      f"{checkpoint.path} ('{origin['agent']}' on '{origin['environment']}') "
      f'differs: {"; ".join(differences[:4])}'
      f'{f"; and {more} more" if more > 0 else ""}. Use the settings of '
      'that run, or leave it out.',
    )
  return arrays, origin


def make_session(
  plan: plan_lib.Plan,
  replay: preflight.ReplayOption,
  *,
  checkpoint: checkpointing.Checkpoint | None = None,
  initial: Mapping[str, Any] | None = None,
  message: str = '',
) -> session_lib.Session:
  """Makes the session of a run, for its nodes.

  Args:
    replay: Chosen kind of experience transport.
    checkpoint: Checkpoint that the run resumes from; None for a new run.
    initial: Description of the run whose networks a new run began with, if any.
    message: Note for the user about this start.
  """
  experiment, topology, launcher = plan.experiment, plan.topology, plan.launcher
  title = f'{experiment.agent} on {experiment.environment}, {topology.name}'
  layout = {
    'topology': topology.name,
    'topology_settings': dataclasses.asdict(topology),
  }
  if topology.launch_types is None:
    title = f'{title} ({launcher.title})'
    layout['launch_type'] = launcher.name
    layout['launch_settings'] = dataclasses.asdict(launcher)
  state = checkpoint.state if checkpoint else {}
  counts = {'steps': 0, 'episodes': 0, 'learner_steps': 0, 'runs': 0}
  return session_lib.Session(
    experiment,
    plan.spec,
    replay.experience,
    counts={**counts, **state.get('counts', {})},
    elapsed_seconds=state.get('elapsed_seconds', 0.0),
    is_resumed=checkpoint is not None,
    message='; '.join(filter(None, (message, replay.warning))),
    transport=replay.transport,
    sharding=topology.sharding(experiment),
    initial=initial,
    run_layout=layout,
    title=title,
  )


def _begin(
  plan: plan_lib.Plan, initial: directories.Initial | None
) -> session_lib.Session:
  """Returns a new run, with the networks of another if given."""
  if initial is None:
    return make_session(plan, plan.options[0])
  origin = initial[1]
  message = (
    f'begins with the networks of {origin["directory"]} after update '
    f'{origin["learner_steps"]}'
  )
  return make_session(plan, plan.options[0], initial=origin, message=message)


def _resume(
  plan: plan_lib.Plan, checkpoint: checkpointing.Checkpoint
) -> tuple[session_lib.Session, str | None]:
  """Returns a resumed run, and the folder of the tables that it restores.

  Its replay is the best option that restores the checkpoint's tables, if any.

  Raises:
    CheckpointError: If it cannot resume.
    SettingError: If it began with other networks than those of `initial_from`.
  """
  _check_initial(plan, checkpoint)
  omissions = [
    session_lib.explain_omission(checkpoint, one.transport, one.experience)
    for one in plan.options
  ]
  index = omissions.index('') if '' in omissions else 0
  replay, omission = plan.options[index], omissions[index]
  moved = _describe_move(checkpoint)
  replay_path = None if omission else checkpoint.replay_path
  _check_topology(checkpoint, replay)
  if plan.experiment.deterministic:
    sharding = plan.topology.sharding(plan.experiment)
    _check_exact(checkpoint, sharding, replay_path, moved)
  session = make_session(
    plan,
    replay,
    checkpoint=checkpoint,
    initial=checkpoint.state.get(_INITIAL),
    message=_describe_resume(
      checkpoint, replay, plan.experiment.max_steps, omission, moved
    ),
  )
  return session, replay_path


def _check_topology(
  checkpoint: checkpointing.Checkpoint, replay: preflight.ReplayOption
) -> None:
  """Raises CheckpointError if the resumed run would count steps differently."""
  was_offline = session_lib.transport_of(checkpoint) == transports.OFFLINE
  if was_offline == (replay.transport == transports.OFFLINE):
    return
  it, now = ('offline', 'another') if was_offline else ('another', 'offline')
  raise checkpointing.CheckpointError(
    f'Checkpoint {checkpoint.path} is of a run in {it} topology, and this is '
    f'{now}: steps of offline are learner steps, so neither resumes from the '
    'other. Choose another directory: with initial_from, a new run begins '
    'with the networks of this one.',
    fresh=True,
  )


def _check_exact(
  checkpoint: checkpointing.Checkpoint,
  sharding: str,
  replay_path: str | None,
  moved: str,
) -> None:
  """Raises CheckpointError unless a run would resume bit by bit."""
  state = checkpoint.state
  written_by = state.get('sharding', state.get('division', ''))
  advice = 'remove its folder if there is an older one'
  if moved:
    problem = (
      f'was {moved}; other versions round differently, and may not unpickle '
      'environments'
    )
    advice = 'resume with the versions that wrote it'
  elif not (replay_path and state.get('is_exact')):
    problem = (
      'lacks the state of the environments. Deterministic runs write it with '
      'checkpoint_replay, if their environments can be pickled, unless they '
      'ended in the middle of a step or round'
    )
  elif written_by != sharding:
    problem = f"was written by '{written_by}', and this is '{sharding}'"
  else:
    return
  raise checkpointing.CheckpointError(
    'A deterministic run cannot resume from checkpoint '
    f'{checkpoint.path}: that {problem}. Leave deterministic out to resume '
    f'all the same, or {advice}.',
    fresh=True,
  )


def _describe_move(checkpoint: checkpointing.Checkpoint) -> str:
  """Names the versions that wrote a checkpoint, if others than these; or ''."""
  now = versions.versions()
  found = checkpoint.state.get('versions', now)
  others = [name for name in now if found.get(name) != now[name]]
  if not others:
    return ''
  there = versions.describe({name: found.get(name) for name in others})
  here = versions.describe({name: now[name] for name in others})
  return f'written with {there}, and this is {here}'


def _describe_resume(
  checkpoint: checkpointing.Checkpoint,
  replay: preflight.ReplayOption,
  max_steps: int,
  omission: str,
  moved: str,
) -> str:
  """Describes what a run resumes from, for the display."""
  name = os.path.basename(checkpoint.path)
  if checkpoint.state['counts']['steps'] >= max_steps:
    return (
      f'resumed from checkpoint {name}, which has all {max_steps} steps '
      f'already{omission}'
    )
  if checkpoint.replay_path is None and replay.transport != transports.OFFLINE:
    omission = ', which has no replay'
  return f'resumed from checkpoint {name}{omission}' + (moved and f'; {moved}')


def _check_initial(
  plan: plan_lib.Plan, checkpoint: checkpointing.Checkpoint
) -> None:
  """Raises SettingError if a resumed run began with other networks."""
  asked, began = plan.experiment.initial_from, checkpoint.state.get(_INITIAL)
  if asked is None or (began and began['directory'] == os.path.realpath(asked)):
    return
  raise SettingError(
    _INITIAL,
    f'must be left out: the run in {plan.experiment.directory} is resumed, and '
    f'began with {began["directory"] if began else "new networks"}; got '
    f'{asked}. Choose another directory for a new run, or start afresh.',
    fresh=True,
  )


def _compare_shapes(
  arrays: Mapping[str, np.ndarray], expected: Mapping[str, tuple[int, ...]]
) -> list[str]:
  """Describes the differences between arrays and the expected shapes."""
  found = {name: array.shape for name, array in arrays.items()}
  return [
    f'{name} has shape {found.get(name, "none")} there and '
    f'{expected.get(name, "none")} here'
    for name in dict.fromkeys([*expected, *found])
    if found.get(name) != expected.get(name)
  ]
