"""Checkpoints written by two stacks, and their expected contents.

They are committed, as a stack cannot write those of the others. If their format
changes, the interpreter of each stack writes them again, in the folder `tests`:

  ../.venv/bin/python -m support.launch.stack_checkpoints
  ../.venv311/bin/python -m support.launch.stack_checkpoints
"""

import hashlib
import json
import os
import pathlib
import tarfile
import tempfile
from typing import Any, NamedTuple

import numpy as np

from repertory import launch
from repertory.components.checkpoints import checkpointing
from repertory.components.replay import local
from repertory.components.runtime import versions
from repertory.launch.experiments import directories
from support.launch import sessions
from support.system import stacks

_FOLDER = pathlib.Path(__file__).parents[2] / 'launch' / 'stack_checkpoints'
_FACTS = 'facts.json'

# The Python of each stack that wrote checkpoints.
VERSIONS = ('3.10', '3.11')

# XLA would take most of the time.
_SMALL = {'batch_size': 4, 'jit_compile': False}
_REPLAY = {
  **_SMALL, 'min_replay_size': 12, 'max_replay_size': 24,
  'samples_per_insert': 4.0,
}  # fmt: skip


class Case(NamedTuple):
  """A kind of checkpoint."""

  agent: str
  topology: str
  environment: str
  config: dict[str, Any]
  num_steps: int

  @property
  def is_in_process(self) -> bool:
    """Whether the table was in the process, not on a replay server."""
    return self.topology == 'single'

  def experiment(
    self, directory, more_steps: int = 0, **settings
  ) -> launch.Experiment:
    """Returns the experiment that wrote it, optionally with more steps."""
    return launch.make_experiment(
      self.agent,
      self.environment,
      config=self.config,
      max_steps=self.num_steps + more_steps,
      directory=str(directory),
      evaluation_episodes=0,
      **settings,
    )


CASES = {
  # Adam, and priorities, in the process and in Reverb.
  'dqn-single': Case(
    'dqn', 'single', 'catch:3x3', {**_REPLAY, 'hidden_sizes': (4,)}, 60
  ),
  'dqn-distributed': Case(
    'dqn', 'distributed', 'catch:3x3', {**_REPLAY, 'hidden_sizes': (4,)}, 60
  ),
  # Continuous actions, three optimizers.
  'sac-single': Case(
    'sac', 'single', 'tensor:pendulum', {**_REPLAY, 'hidden_sizes': (4,)}, 60
  ),
  # Memory, and sequences whose steps are shared.
  'r2d2-distributed': Case(
    'r2d2',
    'distributed',
    'catch:3x3',
    {
      **_REPLAY, 'hidden_sizes': (4,), 'core_size': 4, 'burn_in_length': 1,
      'unroll_length': 3, 'n_step': 1, 'min_replay_size': 6,
    },
    80,
  ),
  # A queue.
  'impala-distributed': Case(
    'impala',
    'distributed',
    'catch:3x3',
    {**_SMALL, 'hidden_sizes': (4,), 'unroll_length': 4},
    80,
  ),
}  # fmt: skip


def hash_each(arrays) -> dict[str, str]:
  """Returns 64 bits of the SHA-256 of each array and its dtype, by name."""
  return {name: _hash(array) for name, array in arrays.items()}


def hash_items(contents: local.Contents) -> dict[str, str]:
  """Returns such hashes of the items of a table, in order."""
  columns = {'priorities': contents.items.priorities}
  for i, leaf in enumerate(contents.items.leaves):
    columns[str(i)] = np.stack(list(leaf)) if leaf.dtype == object else leaf
  return hash_each(columns)


def counters(arrays) -> set[str]:
  """Returns the names of counters of updates, including the optimizer's."""
  steps = arrays['learner_steps']
  return {
    name
    for name, array in arrays.items()
    if array.ndim == 0 and array.dtype.kind == 'i' and array == steps
  }


def load(directory) -> checkpointing.Checkpoint:
  """Returns the newest checkpoint of a directory, which must have one."""
  checkpoint = directories.load_checkpoint(str(directory))
  assert checkpoint is not None
  return checkpoint


def read_items(case: Case, directory) -> local.Contents:
  """Returns the in-process table of a checkpoint."""
  with sessions.open_session(case.experiment(directory), 'single') as session:
    contents = local.read(session.replay_directory, session.experience.table)
  assert contents is not None
  return contents


def unpack(version: str, name: str, directory) -> dict[str, Any]:
  """Unpacks a checkpoint to a directory; returns its expected contents."""
  with tarfile.open(_path(version, name)) as archive:
    archive.extractall(directory, filter='data')
  facts = pathlib.Path(directory, _FACTS)
  contents = json.loads(facts.read_text())
  facts.unlink()
  return contents


def _path(version: str, name: str) -> pathlib.Path:
  return _FOLDER / f'{version}-{name}.tar.xz'


def _hash(array: np.ndarray) -> str:
  digest = hashlib.sha256(f'{array.dtype.str} {array.shape};'.encode())
  digest.update(np.ascontiguousarray(array).tobytes())
  return digest.hexdigest()[:16]


def _write(version: str, name: str, case: Case, directory: str) -> None:
  launch.run(case.experiment(directory), case.topology, display=False)
  checkpoint = load(directory)
  facts = {
    'versions': dict(versions.versions()),
    'counts': checkpoint.state['counts'],
    'tables': checkpoint.state['tables'],
    'arrays': hash_each(checkpoint.arrays),
  }
  if case.is_in_process:
    facts['items'] = hash_items(read_items(case, directory))
  pathlib.Path(directory, _FACTS).write_text(json.dumps(facts))
  with tarfile.open(_path(version, name), 'w:xz') as archive:
    for path in (checkpoint.path, os.path.join(directory, _FACTS)):
      archive.add(path, os.path.relpath(path, directory))


def main() -> None:
  """Writes all checkpoints of this stack."""
  _FOLDER.mkdir(exist_ok=True)
  for name, case in CASES.items():
    with tempfile.TemporaryDirectory() as directory:
      _write(stacks.HERE, name, case, directory)


if __name__ == '__main__':
  main()
