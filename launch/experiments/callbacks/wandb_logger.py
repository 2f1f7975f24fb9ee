"""Logger for Weights & Biases: https://docs.wandb.ai."""

import importlib.util
import os
import re
from collections.abc import Mapping
from typing import Any

from repertory.components.config import settings as settings_lib
from repertory.launch.experiments.callbacks import callback, events

# File in the log folder with the id of the W&B run, for resuming it.
_ID_FILE = 'wandb_run_id'
# Ids that W&B accepts; U+FFFD replaces bytes that are not UTF-8.
_ID = re.compile(r'[^\x00-\x20/\\#?%:\x7f\ufffd]{1,128}')

# Columns of all rows; the first is the x-axis.
_POSITION = ('steps', 'learner_steps', 'elapsed_seconds')


class WandB(callback.RowLogger):
  """Logs rows to Weights & Biases, online or offline.

  Metrics are named `<label>/<column>`, such as 'actors/episode_return', and
  plotted over environment steps. The settings of the experiment are the config.
  A resumed run resumes its W&B run.
  """

  def __init__(self, project: str, **settings: Any):
    """Checks that the package `wandb` (an extra) is installed.

    Args:
      project: Name of the W&B project.
      **settings: Further arguments of `wandb.init`, such as `name`, `entity`,
        `tags`, or `mode='offline'`, which needs neither network nor account.

    Raises:
      SettingError: If the package is missing.
    """
    if not project:
      raise settings_lib.SettingError(
        'project', f'must be the name of a project; got {project!r}.'
      )
    if importlib.util.find_spec('wandb') is None:
      raise settings_lib.SettingError(
        'project',
        "needs the package wandb: pip install 'repertory[wandb]'.",
      )
    self._project = project
    self._settings = settings
    self._run: Any = None
    self._prefixes: set[str] = set()

  def start(self, run: events.RunEvent) -> None:
    """Starts a W&B run, or resumes that of `run.directory`."""
    import wandb  # noqa: PLC0415 An extra that is slow to import.

    folder = os.path.join(run.directory, 'logs')
    path = os.path.join(folder, _ID_FILE)
    defaults = {
      'dir': folder,
      'config': dict(run.settings),
      'name': run.title,
      # The terminal is used by the display.
      'settings': wandb.Settings(console='off', silent=True),
      **_resume_arguments(path, run.is_resumed),
    }
    self._prefixes.clear()
    self._run = wandb.init(
      project=self._project, **{**defaults, **self._settings}
    )
    with open(path, 'w') as file:
      file.write(self._run.id)

  def write(self, label: str, row: Mapping[str, Any]) -> None:
    """Logs the numbers of a row."""
    prefix = row.get('node', label)
    if prefix not in self._prefixes:
      self._prefixes.add(prefix)
      self._run.define_metric(f'{prefix}/*', step_metric=_POSITION[0])
    self._run.log(
      {
        name if name in _POSITION else f'{prefix}/{name}': value
        for name, value in row.items()
        if isinstance(value, (int, float))
      }
    )

  def close(self, end: events.EndEvent) -> None:
    """Ends the W&B run, as failed if the run failed."""
    if self._run is not None:
      self._run.finish(exit_code=int(end.outcome == events.FAILED))


def _resume_arguments(path: str, is_resumed: bool) -> dict[str, str]:
  """Returns the arguments of `wandb.init` that resume a run, if any."""
  if not is_resumed or not os.path.exists(path):
    return {}
  with open(path, encoding='utf-8', errors='replace') as file:
    found = file.read().strip()
  # A kill, or a full disk, may have left it empty or damaged. W&B would refuse
  # such an id at every start; without one, a new run begins.
  return {'id': found, 'resume': 'allow'} if _ID.fullmatch(found) else {}
