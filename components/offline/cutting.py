"""Conversion of recorded episodes to an agent's items."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import dm_env
import numpy as np
import tree

from repertory.components import adders, types
from repertory.components.offline import data_set

_FIRST, _LAST = int(dm_env.StepType.FIRST), int(dm_env.StepType.LAST)

# Minimum size of chunks that are cut together; smaller ones are merged.
_CHUNK_BYTES = 2**22
# Maximum number of episodes that are cut in parallel.
_MAX_SLOTS = 256


def fill(
  chunks: Iterable[data_set.DataSetSteps],
  make_adder: Callable[[int], adders.Adder],
  extras: Callable[[int], types.Nest],
  *,
  max_slots: int = _MAX_SLOTS,
  check: Callable[[int], None] = lambda num_timesteps: None,
) -> None:
  """Cuts all episodes into items, in an order determined by the chunks.

  The agent's own adder processes up to `max_slots` episodes in parallel, as
  slots of a batch. For images, one is as fast and takes less memory. An episode
  without LAST counts as truncated: its last observation is bootstrapped from.

  Args:
    chunks: The episodes.
    make_adder: Factory of an adder with the given number of slots; closed here.
    extras: Returns the policy's extra outputs of the given number of slots.
    max_slots: Maximum number of parallel episodes.
    check: Called at each step with the number of time steps so far; may raise.
  """
  num_timesteps = 0
  for steps in _merge(chunks):
    steps, starts, ends = _close_episodes(steps)
    if not len(starts):
      continue
    adder = make_adder(min(max_slots, len(starts)))
    try:
      _cut(
        steps, starts, ends, adder, extras, max_slots,
        lambda num_more, before=num_timesteps: check(before + num_more),
      )  # fmt: skip
    finally:
      adder.close()
    num_timesteps += len(steps.step_type)


def _merge(
  chunks: Iterable[data_set.DataSetSteps],
) -> Iterator[data_set.DataSetSteps]:
  """Merges small chunks."""
  waiting: list[data_set.DataSetSteps] = []
  num_bytes = 0
  for steps in chunks:
    waiting.append(steps)
    num_bytes += sum(leaf.nbytes for leaf in tree.flatten(steps))
    if num_bytes >= _CHUNK_BYTES:
      yield _concatenate(waiting)
      waiting, num_bytes = [], 0
  if waiting:
    yield _concatenate(waiting)


def _concatenate(parts: list[data_set.DataSetSteps]) -> data_set.DataSetSteps:
  """Concatenates chunks, each of which starts an episode or a part of one."""
  if len(parts) == 1:
    return parts[0]
  # Parts of episodes must not merge with the next chunk's.
  parts = [one._replace(step_type=one.step_type.copy()) for one in parts]
  for one in parts:
    one.step_type[0], one.step_type[-1] = _FIRST, _LAST
  return tree.map_structure(lambda *leaves: np.concatenate(leaves), *parts)


def _close_episodes(
  steps: data_set.DataSetSteps,
) -> tuple[data_set.DataSetSteps, np.ndarray, np.ndarray]:
  """Sets FIRST and LAST; returns also starts and ends of episodes, `[E]`."""
  starts = steps.starts
  ends = np.append(starts[1:], len(steps.step_type))
  step_type = np.array(steps.step_type)
  step_type[ends - 1] = _LAST
  step_type[starts] = _FIRST
  is_long = ends - starts > 1
  steps = steps._replace(step_type=step_type)
  return steps, starts[is_long], ends[is_long]


def _cut(
  steps: data_set.DataSetSteps,
  starts: np.ndarray,
  ends: np.ndarray,
  adder: adders.Adder,
  extras: Callable[[int], types.Nest],
  max_slots: int,
  check: Callable[[int], None],
) -> None:
  """Adds the episodes to an adder, one after the other in each slot."""
  num_slots = min(max_slots, len(starts))
  rows, last = starts[:num_slots].copy(), ends[:num_slots] - 1
  begun = num_slots
  is_idle = np.zeros([num_slots], bool)
  given = extras(num_slots)
  adder.add_first(_timestep(steps, rows))
  num_cut = num_idle = 0
  while True:
    check(num_cut)
    num_cut += num_slots - num_idle
    action = _take(steps.action, rows)
    ended = (rows == last).nonzero()[0]
    rows[~is_idle] += 1
    for slot in ended:
      if begun < len(starts):
        rows[slot], last[slot] = starts[begun], ends[begun] - 1
        begun += 1
      else:
        # A slot that stays at an episode's first time step creates no items.
        rows[slot], last[slot] = starts[0], -1
        is_idle[slot] = True
        num_idle += 1
    if is_idle.all():
      return
    adder.put(action, _timestep(steps, rows), given)


def _timestep(
  steps: data_set.DataSetSteps, rows: np.ndarray
) -> dm_env.TimeStep:
  step_type: Any = steps.step_type[rows]
  return dm_env.TimeStep(
    step_type=step_type,
    reward=steps.reward[rows],
    discount=steps.discount[rows],
    observation=_take(steps.observation, rows),
  )


def _take(nest: types.Nest, rows: np.ndarray) -> types.Nest:
  return tree.map_structure(lambda leaf: leaf[rows], nest)
