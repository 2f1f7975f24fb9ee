"""Snapshots of a compiled program."""

import glob
import os
import threading

import numpy as np

from repertory.components import replay, transports
from repertory.components.anakin import learner as learner_lib
from repertory.components.checkpoints import checkpointing

_FILE = 'program.npz'


class CompiledSnapshots(transports.Snapshots):
  """Snapshots of environments, policy state and experience of a program.

  A restored program resumes exactly.
  """

  def __init__(self, learner: learner_lib.CompiledLearner, directory: str):
    """Restores an existing snapshot, and removes it.

    Args:
      learner: Learner with the program.
      directory: Directory of snapshots, each in a folder.

    Raises:
      CheckpointError: If the snapshot does not fit the program.
    """
    self._learner = learner
    self._directory = directory
    self._is_taken = threading.Event()
    self._counts = learner.count_items()
    pattern = os.path.join(glob.escape(directory), '*', _FILE)
    paths = sorted(glob.glob(pattern))
    if paths:
      self._restore(paths[-1])
    self.remove_snapshots()

  def __str__(self) -> str:
    return 'the program'

  def flush(self) -> None:
    """Does nothing, because no update is pending."""

  def describe(self):
    return {
      'transport': transports.COMPILED,
      'is_exact': True,
      'tables': self._learner.count_items(),
    }

  def check_restored(self, checkpoint):
    expected = checkpoint.state['tables']
    if self._counts != expected:
      raise checkpointing.CheckpointError(
        f'The tables should resume from {expected}, as in checkpoint '
        f'{checkpoint.path}, but restored {self._counts}.'
      )

  def write_snapshot(self):
    arrays = self._learner.save_acting()
    self._is_taken.set()
    folder = os.path.join(self._directory, 'program')
    os.makedirs(folder)
    checkpointing.write_arrays(os.path.join(folder, _FILE), arrays.items())
    return folder

  def is_snapshot_taken(self):
    return self._is_taken.is_set()

  def remove_snapshots(self):
    self._is_taken.clear()
    replay.remove_checkpoints(self._directory)

  def _restore(self, path: str) -> None:
    try:
      # NumPy would not close a damaged file.
      with open(path, 'rb') as opened, np.load(opened) as file:
        self._learner.restore_acting({name: file[name] for name in file})
    except Exception as error:  # Broken bytes may raise anything.
      raise checkpointing.CheckpointError(
        f'{path} does not fit this run: {error}', fresh=True
      ) from error
    self._counts = self._learner.count_items()
