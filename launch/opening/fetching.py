"""Locks a run's directory and storage, and fetches stored checkpoints."""

import contextlib
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
  """Locks a directory, and a storage if there is one, during the block.

  Args:
    stored: The storage, whose newer checkpoints are fetched.
    fresh: Whether to start over; the contents of both are moved aside.
    check: Raises for a checkpoint of another experiment.
    report: Called with a description of what may take minutes.

  Yields:
    A description of what was done.
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


class _Fetch:
  """Fetches the newest checkpoint and the best policy, if missing here."""

  def __init__(
    self,
    stored: checkpoints.Storage,
    experiment: experiment_lib.Experiment,
    check: Check,
    report: Callable[[str], None],
  ):
    self._stored = stored
    self._experiment = experiment
    self._check = check
    self._report = report
    self._num_bytes = 0

  @contextlib.contextmanager
  def watched(self) -> Iterator[None]:
    """Raises NoAnswerError in a block in which no bytes arrive for long."""
    seconds = watchdog.START_SECONDS
    late = signals.NoAnswerError(
      f'Waited {seconds:g} seconds for {self._stored.shown} to answer.'
    )
    try:
      with (
        interrupts.interruptible() as demand,
        watchdog.watching(
          lambda: self._num_bytes, seconds, lambda waited: demand(late)
        ),
      ):
        yield
    except OSError as error:
      raise SettingError(
        'storage',
        f'must be readable and writable, got {self._stored.shown}: '
        f'{text_of(error)}.',
      ) from error

  def run(self) -> str:
    """Fetches what is missing; returns a description of what was done."""
    newest = self._stored.checkpoints.newest()
    if newest is None:
      return ''
    self._check_manifest(newest)
    done = []
    here = self._checkpointer(
      directories.CHECKPOINTS, self._experiment.checkpoints_to_keep
    )
    mine = here.load(check_replay=False)
    if mine is not None:
      self._check(mine)
    counts = mine.state['counts'] if mine else None
    if counts is None or newest.progress > (
      counts['learner_steps'],
      counts['steps'],
    ):
      self._fetch(self._stored.checkpoints, newest, here)
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
    here = self._checkpointer(directories.BEST, 1)
    best = self._stored.best.newest()
    if best is None or best.episode_return is None:
      return
    self._check_manifest(best)
    mine = here.load()
    if mine is None or (
      mine.state['evaluation']['episode_return'] < best.episode_return
    ):
      self._fetch(self._stored.best, best, here)

  def _fetch(
    self,
    store: checkpoints.CheckpointStore,
    manifest: checkpoints.CheckpointManifest,
    here: checkpointing.Checkpointer,
  ) -> None:
    self._report(f'fetching {manifest.path}, {manifest.num_bytes / 1e6:.1f} MB')

    def count(num_bytes: int) -> None:
      self._num_bytes += num_bytes

    here.add(
      lambda folder: store.fetch(manifest, folder, count), manifest.number
    )

  def _checkpointer(
    self, folder: str, max_to_keep: int
  ) -> checkpointing.Checkpointer:
    path = os.path.join(self._experiment.directory, folder)
    return checkpointing.Checkpointer(path, max_to_keep)

  def _check_manifest(self, manifest: checkpoints.CheckpointManifest) -> None:
    """Raises for a checkpoint of another experiment, before fetching it."""
    state = {'experiment': manifest.experiment}
    self._check(checkpointing.Checkpoint(manifest.path, {}, state, None))
