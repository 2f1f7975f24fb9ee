"""Opened run: its directory held, new or with the checkpoint to resume from."""

import contextlib
import dataclasses
import os
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from repertory.components import transports
from repertory.components.checkpoints import checkpointing
from repertory.components.runtime import versions
from repertory.launch.experiments import directories, preflight
from repertory.launch.experiments import session as session_lib
from repertory.launch.nodes import offline_checks
from repertory.launch.opening import plan as plan_lib
from repertory.launch.opening import remote_storage, warm_start


@dataclasses.dataclass(frozen=True)
class Opened:
  """Start of a run, new or resumed; `open_run` holds its directory.

  Attributes:
    plan: The checked run.
    replay: Chosen kind of experience transport.
    checkpoint: Checkpoint that the run resumes from; None for a new run.
    initial: Description of the run whose networks a new run began with, if any.
    message: Note for the user about this start.
  """

  plan: plan_lib.Plan
  replay: preflight.ReplayOption
  checkpoint: checkpointing.Checkpoint | None = None
  initial: Mapping[str, Any] | None = None
  message: str = ''

  def make_session(self) -> session_lib.Session:
    """Makes the session, for the nodes of the run."""
    plan = self.plan
    state = self.checkpoint.state if self.checkpoint else {}
    counts = {'steps': 0, 'episodes': 0, 'learner_steps': 0, 'runs': 0}
    return session_lib.Session(
      plan.experiment,
      plan.spec,
      self.replay.experience,
      counts={**counts, **state.get('counts', {})},
      elapsed_seconds=state.get('elapsed_seconds', 0.0),
      is_resumed=self.checkpoint is not None,
      message=self.message,
      transport=self.replay.transport,
      sharding=plan.sharding,
      initial=self.initial,
      callback_list=plan.callback_list,
      run_layout=plan.run_layout,
      title=plan.title,
    )


@contextlib.contextmanager
def open_run(
  plan: plan_lib.Plan,
  fresh: bool = False,
  report: Callable[[str], None] = lambda message: None,
) -> Iterator[Opened]:
  """Holds the directory of a run, and prepares it to start or to resume.

  The storage, if any, is locked, too, and its newer checkpoints are fetched.
  `report` is called with a description of what may take minutes.

  Raises:
    ValueError: If another run holds the directory or the storage; nothing was
      written.
    CheckpointError: If the checkpoint cannot be read or is of another
      experiment; nothing was written.
  """
  experiment, directory = plan.experiment, plan.experiment.directory

  def check(checkpoint: checkpointing.Checkpoint) -> None:
    session_lib.check_identity(checkpoint, plan.identity)

  directories.check_writable(directory)
  if not fresh:
    directories.check_run(directory)
  initial = None
  if fresh or not (plan.storage or directories.has_checkpoint(directory)):
    # Before its directory may be moved aside.
    initial = warm_start.read(experiment, plan.spec)
  # Locks first, so that no other run changes what is read next.
  with contextlib.ExitStack() as held:
    held.enter_context(directories.hold(directory))
    fetched = ''
    if plan.storage is not None:
      fetched = held.enter_context(
        remote_storage.holding(plan.storage, experiment, fresh, check, report)
      )
    if fresh:
      held.enter_context(directories.start_over(directory))
    checkpoint = directories.load_checkpoint(directory)
    if checkpoint is None:
      initial = initial or warm_start.read(experiment, plan.spec)
      opened = _begin(plan, initial)
    else:
      check(checkpoint)
      opened = _resume(plan, checkpoint)
    offline_checks.prepare_recording(experiment, plan.spec)
    messages = filter(None, (fetched, opened.message))
    yield dataclasses.replace(opened, message='; '.join(messages))


def _begin(plan: plan_lib.Plan, initial: warm_start.Initial | None) -> Opened:
  """Prepares the held directory for a new run."""
  directory, replay = plan.experiment.directory, plan.options[0]
  cleared = directories.prepare_run(directory, None)
  start = warm_start.save(directory, initial)
  message = '; '.join(filter(None, (start, replay.warning, cleared)))
  return Opened(plan, replay, None, initial and initial[1], message)


def _resume(
  plan: plan_lib.Plan, checkpoint: checkpointing.Checkpoint
) -> Opened:
  """Prepares the held directory to resume from its checkpoint."""
  warm_start.check_resumed(plan.experiment, checkpoint)
  replay = _choose_replay(plan, checkpoint)
  _check_resumed(plan, replay, checkpoint)
  tables = _replay_path(replay, checkpoint)
  cleared = directories.prepare_run(plan.experiment.directory, tables)
  start = _describe_resume(plan, replay, checkpoint)
  message = '; '.join(filter(None, (start, replay.warning, cleared)))
  origin = checkpoint.state.get(warm_start.KEY)
  return Opened(plan, replay, checkpoint, origin, message)


def _choose_replay(
  plan: plan_lib.Plan, checkpoint: checkpointing.Checkpoint
) -> preflight.ReplayOption:
  """Returns the best option that restores the checkpoint's tables, if any."""
  for replay in plan.options:
    if not _explain_omission(replay, checkpoint):
      return replay
  return plan.options[0]


def _explain_omission(
  replay: preflight.ReplayOption, checkpoint: checkpointing.Checkpoint
) -> str:
  return session_lib.explain_omission(
    checkpoint, replay.transport, replay.experience
  )


def _replay_path(
  replay: preflight.ReplayOption, checkpoint: checkpointing.Checkpoint
) -> str | None:
  """Returns the folder of the checkpoint's tables, if they are restored."""
  omission = _explain_omission(replay, checkpoint)
  return None if omission else checkpoint.replay_path


def _check_resumed(
  plan: plan_lib.Plan,
  replay: preflight.ReplayOption,
  checkpoint: checkpointing.Checkpoint,
) -> None:
  """Raises if the resumed run would count steps, or compute, differently."""
  was_offline = session_lib.transport_of(checkpoint) == transports.OFFLINE
  if was_offline != (replay.transport == transports.OFFLINE):
    it, now = ('offline', 'another') if was_offline else ('another', 'offline')
    raise checkpointing.CheckpointError(
      f'Checkpoint {checkpoint.path} is of a run in {it} topology, and this is '
      f'{now}: steps of offline are learner steps, so neither resumes from the '
      'other. Choose another directory: with initial_from, a new run begins '
      'with the networks of this one.',
      fresh=True,
    )
  if not plan.experiment.deterministic:
    return
  problem, advice = _explain_inexact(plan, replay, checkpoint)
  if problem:
    raise checkpointing.CheckpointError(
      'A deterministic run cannot resume from checkpoint '
      f'{checkpoint.path}: that {problem}. Leave deterministic out to resume '
      f'all the same, or {advice}.',
      fresh=True,
    )


def _explain_inexact(
  plan: plan_lib.Plan,
  replay: preflight.ReplayOption,
  checkpoint: checkpointing.Checkpoint,
) -> tuple[str, str]:
  """Returns why a run would not resume bit by bit, or '', and a remedy."""
  state = checkpoint.state
  sharding = plan.sharding
  if moved := _describe_move(checkpoint):
    return (
      f'was {moved}; other versions round differently, and may not unpickle '
      'environments',
      'resume with the versions that wrote it',
    )
  older = 'remove its folder if there is an older one'
  if not (_replay_path(replay, checkpoint) and state.get('is_exact')):
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


def _describe_resume(
  plan: plan_lib.Plan,
  replay: preflight.ReplayOption,
  checkpoint: checkpointing.Checkpoint,
) -> str:
  """Describes what a run resumes from, for the display."""
  name = os.path.basename(checkpoint.path)
  omission = _explain_omission(replay, checkpoint)
  max_steps = plan.experiment.max_steps
  if checkpoint.state['counts']['steps'] >= max_steps:
    return (
      f'resumed from checkpoint {name}, which has all {max_steps} steps '
      f'already{omission}'
    )
  if checkpoint.replay_path is None and replay.transport != transports.OFFLINE:
    omission = ', which has no replay'
  moved = _describe_move(checkpoint)
  return f'resumed from checkpoint {name}{omission}' + (moved and f'; {moved}')
