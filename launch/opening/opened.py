"""Opened run: new, or with the checkpoint to resume from."""

import dataclasses
import os
from collections.abc import Mapping
from typing import Any

from repertory.components import transports
from repertory.components.checkpoints import checkpointing
from repertory.components.config.settings import SettingError
from repertory.components.runtime import versions
from repertory.launch.experiments import preflight
from repertory.launch.experiments import session as session_lib
from repertory.launch.opening import plan as plan_lib

INITIAL = 'initial_from'  # In the state of checkpoints and in logs.


@dataclasses.dataclass(frozen=True)
class Opened:
  """Start of a run, new or resumed, whose directory is held.

  Attributes:
    plan: The checked run.
    replay: Chosen kind of experience transport.
    checkpoint: Checkpoint that the run resumes from; None for a new run.
    replay_path: Folder of the checkpoint's tables, if they are restored.
    initial: Description of the run whose networks a new run began with, if any.
    message: Note for the user about this start.
  """

  plan: plan_lib.Plan
  replay: preflight.ReplayOption
  checkpoint: checkpointing.Checkpoint | None = None
  replay_path: str | None = None
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
      sharding=plan.layout.sharding,
      initial=self.initial,
      callback_list=plan.callback_list,
      run_layout=plan.layout.settings,
      title=plan.layout.title,
    )


def begin(plan: plan_lib.Plan, initial: Mapping[str, Any] | None) -> Opened:
  """Returns a new run; `initial` describes the origin of its networks."""
  message = ''
  if initial is not None:
    message = (
      f'begins with the networks of {initial["directory"]} after update '
      f'{initial["learner_steps"]}'
    )
  return Opened(plan, plan.options[0], initial=initial, message=message)


def resume(plan: plan_lib.Plan, checkpoint: checkpointing.Checkpoint) -> Opened:
  """Returns the run that resumes from a checkpoint.

  Its replay is the best option that restores the checkpoint's tables, if any.

  Raises:
    CheckpointError: If it cannot resume.
    SettingError: If it began with other networks than those of `initial_from`.
  """
  session_lib.check_identity(checkpoint, plan.identity)
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
    _check_exact(checkpoint, plan.layout.sharding, replay_path, moved)
  return Opened(
    plan,
    replay,
    checkpoint,
    replay_path,
    checkpoint.state.get(INITIAL),
    _describe_resume(
      checkpoint, replay, plan.experiment.max_steps, omission, moved
    ),
  )


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
  there = ', '.join(f'{name} {found.get(name, "unknown")}' for name in others)
  here = ', '.join(f'{name} {now[name]}' for name in others)
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
  asked, began = plan.experiment.initial_from, checkpoint.state.get(INITIAL)
  if asked is None or (began and began['directory'] == os.path.realpath(asked)):
    return
  raise SettingError(
    INITIAL,
    f'must be left out: the run in {plan.experiment.directory} is resumed, and '
    f'began with {began["directory"] if began else "new networks"}; got '
    f'{asked}. Choose another directory for a new run, or start afresh.',
    fresh=True,
  )
