"""Cuts episodes that were recorded into an agent's items."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import dm_env
import numpy as np
import tree

from repertory.components import adders, types
from repertory.components.recordings import data_set

_FIRST, _LAST = int(dm_env.StepType.FIRST), int(dm_env.StepType.LAST)

# What is cut together, at least; less is put together before.
_CHUNK_BYTES = 2**22
# Episodes that are cut side by side.
_MAX_SLOTS = 256


def fill(
  chunks: Iterable[data_set.Steps],
  make_adder: Callable[[int], adders.Adder],
  extras: Callable[[int], types.Nest],
  *,
  max_slots: int = _MAX_SLOTS,
  check: Callable[[int], None] = lambda num_moments: None,
) -> None:
  """Cuts all episodes into items, in an order that follows from the chunks.

  It is done by the agent's own adder, for many episodes side by side, as slots
  of a batch. An episode without an end is taken for one that was broken off
  there: its last observation is bootstrapped from.

  Args:
    chunks: The episodes.
    make_adder: Makes the adder of so many slots; it is closed here.
    extras: Returns what a policy would have given with each step of so many
      slots, `[B, ...]`.
    max_slots: Episodes that are cut side by side. Where items have images, one
      is as fast and takes less memory.
    check: Called with the number of moments that were cut so far, at each step
      of the slots; may raise to end it.
  """
  num_moments = 0
  for steps in _merge(chunks):
    steps, starts, ends = _close_episodes(steps)
    if not len(starts):
      continue
    adder = make_adder(min(max_slots, len(starts)))
    try:
      _cut(
        steps, starts, ends, adder, extras, max_slots,
        lambda num_more, before=num_moments: check(before + num_more),
      )  # fmt: skip
    finally:
      adder.close()
    num_moments += len(steps.step_type)


def _merge(chunks: Iterable[data_set.Steps]) -> Iterator[data_set.Steps]:
  """Puts small chunks together."""
  waiting: list[data_set.Steps] = []
  num_bytes = 0
  for steps in chunks:
    waiting.append(steps)
    num_bytes += sum(leaf.nbytes for leaf in tree.flatten(steps))
    if num_bytes >= _CHUNK_BYTES:
      yield _concatenate(waiting)
      waiting, num_bytes = [], 0
  if waiting:
    yield _concatenate(waiting)


def _concatenate(parts: list[data_set.Steps]) -> data_set.Steps:
  """Puts chunks together, each of which begins an episode or a part of one."""
  if len(parts) == 1:
    return parts[0]
  # A part of an episode must not be taken for one of the next's.
  parts = [one._replace(step_type=one.step_type.copy()) for one in parts]
  for one in parts:
    one.step_type[0], one.step_type[-1] = _FIRST, _LAST
  return tree.map_structure(lambda *leaves: np.concatenate(leaves), *parts)


def _close_episodes(
  steps: data_set.Steps,
) -> tuple[data_set.Steps, np.ndarray, np.ndarray]:
  """Lets every episode begin with FIRST and end with LAST.

  Returns:
    The steps; and where episodes of a step or more start, and where each ends,
    `[E]`.
  """
  starts = steps.starts
  ends = np.append(starts[1:], len(steps.step_type))
  step_type = np.array(steps.step_type)
  step_type[ends - 1] = _LAST
  step_type[starts] = _FIRST
  is_long = ends - starts > 1
  steps = steps._replace(step_type=step_type)
  return steps, starts[is_long], ends[is_long]


def _cut(
  steps: data_set.Steps,
  starts: np.ndarray,
  ends: np.ndarray,
  adder: adders.Adder,
  extras: Callable[[int], types.Nest],
  max_slots: int,
  check: Callable[[int], None],
) -> None:
  """Lets an adder see the episodes, each slot one after the other."""
  num_slots = min(max_slots, len(starts))
  places, last = starts[:num_slots].copy(), ends[:num_slots] - 1
  begun = num_slots
  is_idle = np.zeros([num_slots], bool)
  given = extras(num_slots)
  adder.add_first(_timestep(steps, places))
  num_cut = num_idle = 0
  while True:
    check(num_cut)
    num_cut += num_slots - num_idle
    action = _take(steps.action, places)
    ended = (places == last).nonzero()[0]
    places[~is_idle] += 1
    for slot in ended:
      if begun < len(starts):
        places[slot], last[slot] = starts[begun], ends[begun] - 1
        begun += 1
      else:
        # A slot that stays at the first moment of an episode makes no item.
        places[slot], last[slot] = starts[0], -1
        is_idle[slot] = True
        num_idle += 1
    if is_idle.all():
      return
    adder.put(action, _timestep(steps, places), given)


def _timestep(steps: data_set.Steps, places: np.ndarray) -> dm_env.TimeStep:
  step_type: Any = steps.step_type[places]
  return dm_env.TimeStep(
    step_type=step_type,
    reward=steps.reward[places],
    discount=steps.discount[places],
    observation=_take(steps.observation, places),
  )


def _take(nest: types.Nest, places: np.ndarray) -> types.Nest:
  return tree.map_structure(lambda leaf: leaf[places], nest)
