"""Locks a run's directory and storage, and fetches stored checkpoints."""

import contextlib
import dataclasses
import os
from collections.abc import Callable, Iterator

from repertory.components import checkpoints
from repertory.components.checkpoints import checkpointing
from repertory.components.config.settings import SettingError, text_of
from repertory.components.runtime import signals
from repertory.launch.experiments import experiment as experiment_lib
from repertory.launch.opening import directories
from repertory.launch.platform import interrupts, watchdog

Check = Callable[[checkpointing.Checkpoint], None]


@contextlib.contextmanager
def holding(
  stored: checkpoints.Storage | None,
  experiment: experiment_lib.Experiment,
  fresh: bool,
  check: Check,
  report: Callable[[str], None],
) -> Iterator[str]:
  """Locks a directory and its storage, if any, and yields what was done.

  Newer checkpoints of the storage are fetched; with `fresh`, the contents of
  both are moved aside. `check` raises for a checkpoint of another experiment.
  """
  directory, done = experiment.directory, ''
  directories.check_writable(directory)
  if not fresh:
    for name in directories.FOLDERS:
      directories.check_folder(directory, name)
    directories.check_entries(directory)
  with contextlib.ExitStack() as held:
    held.enter_context(directories.hold(directory))
    if stored is not None:
      fetch = _Fetch(stored, experiment, check, report)
      with fetch.watched():
        held.enter_context(stored.lock.hold(report))
        stored.remove_unfinished()
        if not fresh:
          done = fetch.run()
        elif aside := stored.move_aside():
          done = f'old checkpoints were moved to {aside}'
    if fresh and os.listdir(directory) != [directories.LOCK]:
      directories.set_aside(directory)
      held.enter_context(directories.hold(directory))
    yield done


@dataclasses.dataclass
class _Fetch:
  """Fetches the newest checkpoint and the best policy, if missing here."""

  stored: checkpoints.Storage
  experiment: experiment_lib.Experiment
  check: Check
  report: Callable[[str], None]
  num_bytes: int = 0

  @contextlib.contextmanager
  def watched(self) -> Iterator[None]:
    """Raises NoAnswerError in a block in which no bytes arrive for long."""
    seconds = watchdog.START_SECONDS
    late = signals.NoAnswerError(
      f'Waited {seconds:g} seconds for {self.stored.shown} to answer.'
    )
    try:
      with (
        interrupts.interruptible() as demand,
        watchdog.watching(
          lambda: self.num_bytes, seconds, lambda waited: demand(late)
        ),
      ):
        yield
    except OSError as error:
      raise SettingError(
        'storage',
        f'must be readable and writable, got {self.stored.shown}: '
        f'{text_of(error)}.',
      ) from error

  def run(self) -> str:
    """Fetches what is missing; returns a description of what was done."""
    newest = self.stored.checkpoints.newest()
    if newest is None:
      return ''
    self._check_manifest(newest)
    done = []
    path = os.path.join(self.experiment.directory, directories.CHECKPOINTS)
    num_kept = self.experiment.checkpoints_to_keep
    here = checkpointing.Checkpointer(path, num_kept)
    mine = here.load(check_replay=False)
    if mine is not None:
      self.check(mine)
    counts = mine.state['counts'] if mine else None
    found = counts and (counts['learner_steps'], counts['steps'])
    if found is None or newest.progress > found:
      self._fetch(self.stored.checkpoints, newest, here)
      done.append(
        f'checkpoint {newest.number:08d}, of {newest.steps} steps and '
        f'{newest.learner_steps} updates, was fetched from {newest.path}'
      )
    try:
      self._fetch_best()
    except checkpointing.CheckpointError as error:  # Training does without.
      done.append(f'the best policy was not fetched: {error.problem}')
    return '; '.join(done)

  def _fetch_best(self) -> None:
    """Fetches the best policy, if that here is worse."""
    path = os.path.join(self.experiment.directory, directories.BEST)
    here = checkpointing.Checkpointer(path, 1)
    best = self.stored.best.newest()
    if best is None or best.episode_return is None:
      return
    self._check_manifest(best)
    mine = here.load()
    if mine is None or (
      mine.state['evaluation']['episode_return'] < best.episode_return
    ):
      self._fetch(self.stored.best, best, here)

  def _fetch(
    self,
    store: checkpoints.CheckpointStore,
    manifest: checkpoints.CheckpointManifest,
    here: checkpointing.Checkpointer,
  ) -> None:
    self.report(f'fetching {manifest.path}, {manifest.num_bytes / 1e6:.1f} MB')

    def count(num_bytes: int) -> None:
      self.num_bytes += num_bytes

    here.add(
      lambda folder: store.fetch(manifest, folder, count), manifest.number
    )

  def _check_manifest(self, manifest: checkpoints.CheckpointManifest) -> None:
    """Raises for a checkpoint of another experiment, before fetching it."""
    state = {'experiment': manifest.experiment}
    self.check(checkpointing.Checkpoint(manifest.path, {}, state, None))
