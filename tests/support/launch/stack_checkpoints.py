"""Checkpoints written by all stacks, and their expected contents.

They are committed, as a stack cannot write those of the others. If their format
changes, the interpreter of each stack writes them again, or those with given
names, in the folder `tests`:

  ../.venv/bin/python -m support.launch.stack_checkpoints
  ../.venv311/bin/python -m support.launch.stack_checkpoints
  ../.venv312/bin/python -m support.launch.stack_checkpoints
"""

import hashlib
import json
import os
import pathlib
import sys
import tarfile
import tempfile
from typing import Any, NamedTuple

import numpy as np

from repertory import launch
from repertory.components.checkpoints import checkpointing
from repertory.components.replay import local
from repertory.components.runtime import versions
from repertory.launch.experiments import directories
from repertory.launch.topologies import distributed, replay_settings, single
from support.launch import sessions
from support.system import stacks

_FOLDER = pathlib.Path(__file__).parents[2] / 'launch' / 'stack_checkpoints'
_FACTS = 'facts.json'

# XLA would take most of the time.
_SMALL = {'batch_size': 4, 'jit_compile': False, 'hidden_sizes': (4,)}
_REPLAY = {
  **_SMALL, 'min_replay_size': 12, 'max_replay_size': 24,
  'samples_per_insert': 4.0,
}  # fmt: skip
_SEQUENCES = {
  **_REPLAY, 'core_size': 4, 'burn_in_length': 1, 'unroll_length': 3,
  'n_step': 1, 'min_replay_size': 6,
}  # fmt: skip
_QUEUE = {**_SMALL, 'unroll_length': 4}


class Case(NamedTuple):
  """A kind of checkpoint."""

  agent: str
  replay: str  # A value of `--replay`.
  environment: str
  config: dict[str, Any]
  num_steps: int

  @property
  def topology(self) -> replay_settings.ReplayTopology:
    """The topology that wrote it."""
    if self.replay == 'process':
      return single.Single(replay=self.replay)
    return distributed.Distributed(replay=self.replay)

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
  'dqn-single': Case('dqn', 'process', 'catch:3x3', _REPLAY, 60),
  'dqn-reverb': Case('dqn', 'reverb', 'catch:3x3', _REPLAY, 60),
  # Continuous actions, three optimizers.
  'sac-single': Case('sac', 'process', 'tensor:pendulum', _REPLAY, 60),
  # Memory, and sequences whose steps are shared.
  'r2d2-reverb': Case('r2d2', 'reverb', 'catch:3x3', _SEQUENCES, 80),
  'r2d2-server': Case('r2d2', 'server', 'catch:3x3', _SEQUENCES, 80),
  # A queue.
  'impala-reverb': Case('impala', 'reverb', 'catch:3x3', _QUEUE, 80),
  'impala-server': Case('impala', 'server', 'catch:3x3', _QUEUE, 80),
}

# The checkpoints, by the Python and the case that wrote them, and those that
# can be read without Reverb.
WRITTEN = [
  f'{version}-{name}'
  for version in stacks.EACH
  for name, case in CASES.items()
  if case.replay != 'reverb' or version in stacks.WITH_REVERB
]
WITHOUT_REVERB = [one for one in WRITTEN if not one.endswith('-reverb')]


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
  """Returns the table of a checkpoint, which is not Reverb's."""
  with sessions.open_session(case.experiment(directory), 'single') as session:
    contents = local.read(session.replay_directory, session.experience.table)
  assert contents is not None
  return contents


def unpack(written: str, directory) -> tuple[Case, dict[str, Any]]:
  """Unpacks a checkpoint to a directory; returns case and expected contents."""
  with tarfile.open(_path(written)) as archive:
    archive.extractall(directory, filter='data')
  facts = pathlib.Path(directory, _FACTS)
  contents = json.loads(facts.read_text())
  facts.unlink()
  return CASES[written.split('-', 1)[1]], contents


def _path(written: str) -> pathlib.Path:
  return _FOLDER / f'{written}.tar.xz'


def _hash(array: np.ndarray) -> str:
  digest = hashlib.sha256(f'{array.dtype.str} {array.shape};'.encode())
  digest.update(np.ascontiguousarray(array).tobytes())
  return digest.hexdigest()[:16]


def _write(name: str, directory: str) -> None:
  case = CASES[name]
  launch.run(case.experiment(directory), case.topology, display=False)
  checkpoint = load(directory)
  facts = {
    'versions': dict(versions.versions()),
    'counts': checkpoint.state['counts'],
    'tables': checkpoint.state['tables'],
    'arrays': hash_each(checkpoint.arrays),
  }
  if case.replay != 'reverb':
    facts['items'] = hash_items(read_items(case, directory))
  pathlib.Path(directory, _FACTS).write_text(json.dumps(facts))
  with tarfile.open(_path(f'{stacks.HERE}-{name}'), 'w:xz') as archive:
    for path in (checkpoint.path, os.path.join(directory, _FACTS)):
      archive.add(path, os.path.relpath(path, directory))


def main() -> None:
  """Writes the named checkpoints of this stack, or all."""
  _FOLDER.mkdir(exist_ok=True)
  for name in sys.argv[1:] or CASES:
    if f'{stacks.HERE}-{name}' in WRITTEN:
      with tempfile.TemporaryDirectory() as directory:
        _write(name, directory)


if __name__ == '__main__':
  main()
