"""Short runs that upload their checkpoints to a storage."""

import contextlib

import pytest

from repertory import launch
from repertory.components.checkpoints import storage
from repertory.launch.experiments import directories
from repertory.launch.opening import directory as directory_lib
from repertory.launch.opening import plan, remote_storage
from support.launch import log_files, storage_fixture

# XLA would take most of the time.
SETTINGS = {
  'min_replay_size': 100, 'hidden_sizes': (32,), 'jit_compile': False
}  # fmt: skip


def experiment(directory, stored, max_steps=450, config=None, **settings):
  return launch.make_experiment(
    'dqn',
    'catch',
    max_steps=max_steps,
    directory=str(directory),
    storage=None if stored is None else str(stored),
    config={**SETTINGS, **(config or {})},
    **{'evaluation_episodes': 0, **settings},
  )


def run(*arguments, fresh=False, **settings) -> launch.Result:
  return launch.run(
    experiment(*arguments, **settings), fresh=fresh, display=False
  )


def names(stored, folder='checkpoints'):
  return storage_fixture.open_store(stored, folder).names()


def counts(directory):
  return directories.load_checkpoint(str(directory)).state['counts']


def warnings(directory):
  rows = log_files.nodes(directory)
  assert all(row['node'] == 'storage' for row in rows if 'warning' in row)
  return [row['warning'] for row in rows if 'warning' in row]


@contextlib.contextmanager
def opened(experiment, fresh=False):
  checked = plan.make_plan(experiment, 'distributed')
  with directory_lib.open_run(checked, fresh) as session:
    yield checked.storage, session


@pytest.fixture(autouse=True)
def quickly(monkeypatch):
  """Lets runs look often; a module of tests takes it over by its name."""
  monkeypatch.setattr(storage, '_HEARTBEAT_SECONDS', 0.1)
  monkeypatch.setattr(storage, '_WATCH_SECONDS', 0.5)
  monkeypatch.setattr(remote_storage, '_LOOK_SECONDS', 0.05)
