"""Released policies of the zoo: the best of each agent and environment.

Each is the directory of a run without anything but a policy: that of
'ppo/gym:LunarLander-v3' is `ppo/gym-LunarLander-v3` in a folder of policies.
"""

import glob
import os
import pathlib
from collections.abc import Mapping
from typing import Any

from repertory.components.checkpoints import checkpointing
from repertory.components.config.settings import SettingError, did_you_mean
from repertory.launch.experiments import directories, naming

FOLDER = 'policies'  # In the directory of a zoo.

# The released policies of the source tree; a wheel has none.
_RELEASED = str(pathlib.Path(__file__).parents[2] / 'docs' / 'zoo' / FOLDER)


def find_in_zoo(policy: str, zoo: str | os.PathLike[str] | None = None) -> str:
  """Returns the directory of a released policy.

    policy = launch.load_policy(launch.find_in_zoo('ppo/gym:LunarLander-v3'))

  Args:
    policy: Names of agent and environment, '<agent>/<environment>'.
    zoo: Folder of policies; None for `docs/zoo/policies` of the source tree.

  Raises:
    SettingError: If there is no such folder or policy.
  """
  zoo = os.fspath(_RELEASED if zoo is None else zoo)
  if not os.path.isdir(zoo):
    raise SettingError(
      'zoo',
      f'must be a folder of policies, got {zoo!r}. Name docs/zoo/policies of '
      f'the source tree, which an installed package lacks, or `{FOLDER}` in '
      'the directory of a zoo.',
    )
  agent, _, environment = policy.partition('/')
  directory = os.path.join(zoo, naming.folders(agent, environment))
  if directories.checkpoints_in(directory).newest() is not None:
    return directory
  pattern = os.path.join(glob.escape(zoo), '*', '*', directories.CHECKPOINTS)
  paths = map(os.path.dirname, sorted(glob.glob(pattern)))
  known = [
    os.path.relpath(path, zoo)
    for path in paths
    if directories.checkpoints_in(path).newest() is not None
  ]
  listed = [name for name in known if name.startswith(f'{agent}/')] or known
  hint = (
    did_you_mean(policy, known, 3)
    or f' Policies there: {", ".join(listed) or "none"}.'
  )
  raise SettingError(
    'policy',
    f'must be <agent>/<environment> of a policy in {zoo}, got '
    f'{policy!r}.{hint}',
  )


def release(zoo: str, run: str, evaluation: Mapping[str, Any]) -> None:
  """Copies the newest policy of a run to a folder of policies.

  A policy there is replaced, in one step, only if its return is lower. Nothing
  happens if the run has no policy, or one of other steps than the evaluation.

  Args:
    zoo: Folder of policies.
    run: Directory of the run.
    evaluation: The 'episode_return' of the policy, and training 'steps'.
  """
  saved = directories.checkpoints_in(run).load_policy()
  if saved is None or saved.state['counts']['steps'] != evaluation['steps']:
    return
  identity = saved.state['experiment']
  folders = naming.folders(identity['agent'], identity['environment'])
  path = os.path.join(zoo, folders, directories.CHECKPOINTS)
  there = checkpointing.Checkpointer(path, 1)
  kept, name = there.load_policy(), 'episode_return'
  if kept is None or kept.state['evaluation'][name] < evaluation[name]:
    description = {**saved.state, 'evaluation': evaluation}
    there.save(saved.arrays, policy=description)
