"""Learner that also acts, in one compiled program, and its snapshots."""

import functools
import glob
import os
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf
import tree

from repertory.components import (
  interfaces,
  learners,
  loggers,
  replay,
  transports,
)
from repertory.components.anakin import acting
from repertory.components.anakin import compiled_loop as compiled_loop_lib
from repertory.components.checkpoints import checkpointing
from repertory.components.replay import local


class EpisodeBatch(NamedTuple):
  """Environment steps of a call, and ended episodes' returns and lengths."""

  num_steps: int
  episodes: list[tuple[float, int]]


class CompiledLearner(learners.LearnerState):
  """Alternates acting and learning in a compiled program.

  It counts and logs like other learners. Its checkpoints include the state of
  acting and experience: see `save_acting`.
  """

  def __init__(
    self,
    policy: interfaces.Policy,
    environments: Any,
    transport: acting.CompiledTransport,
    update: interfaces.Update,
    carry: acting.Carry,
    *,
    logger: loggers.Logger | None = None,
    jit_compile: bool = False,
    divergence: learners.Divergence | None = None,
  ):
    """Compiles the program, which starts from `carry`.

    The policy has the update's variables. For `logger` and `divergence` see
    `LearnerState`; `jit_compile` is for XLA.
    """
    super().__init__(update, logger, divergence)
    transport.begin(carry)
    self._carry = carry
    self._transport = transport
    settings = self._divergence
    max_skips = settings.max_skips if settings.action == 'skip' else 0
    self._program = compiled_loop_lib.CompiledLoop(
      functools.partial(acting.step, policy, environments), transport, update,
      carry, max_skips, jit_compile,
    )  # fmt: skip
    self.compiled = self._program.compiled

  @property
  def max_turns(self) -> int:
    """Maximum number of iterations per `advance`."""
    return self._program.max_turns

  def step(self) -> None:
    """Runs one iteration."""
    self.advance(1)

  def advance(self, num_turns: int) -> EpisodeBatch:
    """Runs at most `max_turns` iterations of steps and due updates.

    Raises:
      FloatingPointError: If an update was not finite and may not be skipped.
    """
    with self._lock:
      self._carry, outcome = self._program(
        num_turns,
        self._steps,
        self._num_skipped_in_a_row,
        self._max_priority,
        self._carry,
      )
      num_updates = int(outcome.num_updates)
      before = self._steps
      self._steps += num_updates
      self._max_priority = float(outcome.max_priority)
    self._process_updates(before, num_updates, outcome)
    # In order of time, then of rows.
    episodes = tree.map_structure(lambda leaf: leaf.numpy(), outcome.episodes)
    returns, lengths = (
      values[episodes.ended].tolist()
      for values in (episodes.episode_return, episodes.episode_length)
    )
    num_steps = int(episodes.num_steps.sum())
    return EpisodeBatch(num_steps, list(zip(returns, lengths)))

  def save_acting(self) -> dict[str, np.ndarray]:
    """Returns the state of acting and experience, as arrays by name."""
    return {name: leaf.numpy() for name, leaf in self._acting_state().items()}

  def restore_acting(self, arrays: Mapping[str, np.ndarray]) -> None:
    """Restores the result of `save_acting`.

    Raises:
      ValueError: Naming the mismatch; nothing was changed then.
    """
    # Older checkpoints call them 'road/...'.
    arrays = {
      re.sub('^road/', 'transport/', name): array
      for name, array in arrays.items()
    }
    state = self._acting_state()
    learners.check_matches(
      arrays, {name: tuple(leaf.shape) for name, leaf in state.items()}
    )
    for name, variable in self._transport.saved.items():
      variable.assign(arrays[f'transport/{name}'])
    carry = [tf.constant(arrays[n]) for n in state if n.startswith('carry/')]
    self._carry = tree.unflatten_as(self._carry, carry)

  def _acting_state(self) -> dict[str, Any]:
    """Returns the tensors and variables to save, by name."""
    carry = enumerate(tree.flatten(self._carry))
    saved = self._transport.saved.items()
    return {
      **{f'carry/{i:04d}': leaf for i, leaf in carry},
      **{f'transport/{name}': variable for name, variable in saved},
    }

  def statuses(self) -> Mapping[str, replay.TableInfo]:
    """Returns the status of all tables, by name."""
    return self._transport.statuses()

  def count_items(self) -> dict[str, dict[str, int]]:
    """Returns the inserts and samples of each table, by name."""
    return {
      name: {'inserts': status.inserts, 'samples': status.samples}
      for name, status in self.statuses().items()
    }

  def _process_updates(
    self, before: int, num_updates: int, outcome: compiled_loop_lib.LoopResult
  ) -> None:
    """Checks and logs the updates of a call."""
    metrics = {
      name: values.numpy()[:num_updates]
      for name, values in outcome.metrics.items()
    }
    columns = dict(metrics)
    if not isinstance(outcome.lag, tuple):
      columns['policy_lag'] = outcome.lag.numpy()[:num_updates]

    def log_until(end: int) -> None:
      """Logs the finite updates from `start` on."""
      if start < end:
        self._num_skipped_in_a_row = 0
        self._log_rows({name: v[start:end] for name, v in columns.items()})

    start = 0  # First update that is not logged yet.
    finite = outcome.finite.numpy()[:num_updates]
    for i in np.flatnonzero(~finite).tolist():
      log_until(i)
      row = {name: values[i] for name, values in metrics.items()}
      self._judge(before + i + 1, row, False, lambda: self._program.bad_sample)
      self._log({name: values[i] for name, values in columns.items()})
      start = i + 1
    log_until(num_updates)


_FILE = 'program.npz'


class CompiledSnapshots(transports.Snapshots):
  """Snapshots of environments, policy state and experience of a program.

  A restored program resumes exactly.
  """

  def __init__(self, learner: CompiledLearner, directory: str):
    """Restores a snapshot in a folder of the directory, and removes it.

    Raises:
      CheckpointError: If the snapshot does not fit the program.
    """
    self._learner = learner
    self._directory = directory
    pattern = os.path.join(glob.escape(directory), '*', _FILE)
    if paths := sorted(glob.glob(pattern)):
      with local.reading(paths[-1]), open(paths[-1], 'rb') as file:
        learner.restore_acting(checkpointing.read_arrays(file))
    self._counts = learner.count_items()
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

  def take_snapshot(self):
    arrays = self._learner.save_acting()

    def write() -> str:
      folder = os.path.join(self._directory, 'program')
      os.makedirs(folder)
      checkpointing.write_arrays(os.path.join(folder, _FILE), arrays.items())
      return folder

    return write

  def remove_snapshots(self):
    replay.remove_checkpoints(self._directory)
