"""Adders of sequences of a fixed length, and of whole episodes."""

import dataclasses

import dm_env
import numpy as np
import tensorflow as tf
import tree

from repertory.components import specs, types
from repertory.components.adders import adder
from repertory.components.replay import writers

# Integers: NumPy compares arrays with enum members slowly.
_FIRST, _LAST = int(dm_env.StepType.FIRST), int(dm_env.StepType.LAST)

_NO_EXTRAS = types.SequenceExtras()

# Up to this size, copying whole steps is faster than copying cells.
_MAX_CELL_BYTES = 64


@dataclasses.dataclass(frozen=True)
class Sequences(adder.ItemSpec):
  """Sequences of `length` observations and the steps between them.

  The first `burn_in` steps of an item warm up a recurrent state; the others are
  its *loss window* of W = length − 1 − burn_in steps. An item starts every
  `period` steps, with period ≤ W: so the windows have no gap, an item overlaps
  the previous one by at least burn_in + 1 observations, and no reward is
  dropped. With period = W, the default, every step is in exactly one window.
  Otherwise step t of an episode is in the windows of all items k with k ·
  period ≤ t < k · period + W. Items that would start after the window with the
  last step are not created, so the last steps are in fewer windows.

  The burn-in of an episode's first item is padding, which is not needed because
  the initial state is known. At the end of an episode, the open item is padded,
  and no further one starts. With `across_episodes`, items continue across the
  end of episodes instead, and only the time before an actor's first step is
  padded.

  Attributes:
    length: T + 1, observations per item.
    period: Steps between the starts of items; None for the whole loss window.
    burn_in: Steps of an item before its loss window.
    across_episodes: Whether an item may hold steps of several episodes.
    extras_spec: Nests of array specs of the policy's extra outputs.
  """

  length: int
  period: int | None = None
  burn_in: int = 0
  across_episodes: bool = False
  extras_spec: types.SequenceExtras = _NO_EXTRAS

  def __post_init__(self):
    burn_in, window = self.burn_in, self.window
    if burn_in < 0:
      raise ValueError(f'burn_in must be at least 0, got {burn_in}.')
    if window < 1:
      raise ValueError(
        f'length must be at least burn_in + 2 = {burn_in + 2}, for one step to '
        f'learn from, got {self.length}.'
      )
    if not 1 <= self.stride <= window:
      raise ValueError(
        f'period must be in [1, length − 1 − burn_in] = [1, {window}], or some '
        f'steps would be in no loss window; got {self.period}.'
      )

  @property
  def window(self) -> int:
    """W, length of the loss window in steps."""
    return self.length - 1 - self.burn_in

  @property
  def stride(self) -> int:
    """Steps between the starts of two items."""
    return self.window if self.period is None else self.period

  @property
  def are_unrolls(self) -> bool:
    """Whether items are unrolls: consecutive steps without overlap."""
    is_plain = not self.burn_in and self.stride == self.window
    return self.across_episodes and is_plain

  @property
  def slots_end_together(self) -> bool:
    return self.across_episodes

  @property
  def max_items_per_step(self) -> int:
    return 1

  def max_items(self, num_steps: int) -> int:
    if self.across_episodes:
      # With episodes of one step, every other step is a reset, which items also
      # contain.
      return 2 * num_steps // self.stride
    return num_steps  # One item per episode of one step.

  def expected_items(self, num_steps: int) -> int:
    return num_steps // self.stride  # For episodes longer than that.

  def max_items_of(self, lengths: np.ndarray) -> int:
    if self.across_episodes:
      return super().max_items_of(lengths)
    # One item, and another per period until a window reaches the end.
    further = np.maximum(0, -(-(lengths - self.window) // self.stride))
    return int((lengths > 0).sum() + further.sum())

  def signature(self, spec: specs.EnvironmentSpec) -> types.Sequence:
    num_steps = self.length - 1
    return types.Sequence(
      observation=specs.tensor_spec(spec.observations, self.length),
      first=tf.TensorSpec([self.length], tf.bool),
      action=specs.tensor_spec(spec.actions, num_steps),
      reward=specs.tensor_spec(spec.rewards, num_steps),
      discount=specs.tensor_spec(spec.discounts, num_steps),
      mask=tf.TensorSpec([num_steps], tf.bool),
      extras=specs.tensor_spec(self.extras_spec.step, num_steps),
      state=specs.tensor_spec(self.extras_spec.state),
      version=tf.TensorSpec([], tf.int64),
    )

  def make_adder(
    self, writer: writers.Writer, batch_size: int
  ) -> 'SequenceAdder':
    return SequenceAdder(writer, batch_size, self)


class SequenceAdder(adder.Adder):
  """Adds sequences as described by `Sequences`.

  Items are assembled here and written at once, because writing step by step
  costs several times as much. So overlapping items store their common steps
  more than once.
  """

  def __init__(
    self, writer: writers.Writer, batch_size: int, sequences: Sequences
  ):
    """Opens the writer, for `batch_size` slots."""
    super().__init__(writer, batch_size, num_steps_alive=1)
    self._length = length = sequences.length
    self._period = sequences.stride
    self._burn_in = sequences.burn_in
    self._across_episodes = sequences.across_episodes
    # The latest `length` steps of all slots. Of the current step, only the
    # observation is known.
    self._moments = _Rings(length)
    self._steps = _Rings(length)
    self._states = _Rings(length)
    self._versions = np.zeros([length], np.int64)
    self._now = 0
    # Per slot: first time of its recorded steps, and of its open item.
    self._origins = np.zeros([batch_size], np.int64)
    self._starts = np.zeros([batch_size], np.int64)

  def add_first(self, timestep: dm_env.TimeStep) -> None:
    self._now += 1
    self._observe(timestep, timestep.step_type == _FIRST)
    self.reset()

  def put(self, action, next_timestep, extras=()):
    step_types = next_timestep.step_type
    first = step_types == _FIRST
    step_extras, state = extras or _NO_EXTRAS
    self._steps.write(
      self._now,
      [
        *tree.flatten(action),
        next_timestep.reward,
        next_timestep.discount,
        ~first,
        *tree.flatten(step_extras),
      ],
    )
    self._states.write(self._now, tree.flatten(state))
    if self._across_episodes and first.any():
      # No step happened between two episodes, whatever the policy returned.
      self._steps.clear(self._now, first)
      self._states.clear(self._now, first)
    self._versions[self._now % self._length] = self._writer.version()
    self._now += 1
    self._observe(next_timestep, first)
    if not self._across_episodes:
      self._begin(first)
    due = self._now - self._starts == self._length - 1
    if not self._across_episodes:
      due |= step_types == _LAST
    if due.any():
      self._write(due.nonzero()[0])
    self._starts[due] += self._period

  def reset(self) -> None:
    self._begin(slice(None))

  def _observe(self, timestep: dm_env.TimeStep, first: np.ndarray) -> None:
    """Records the observation of the current step."""
    self._moments.write(self._now, [*tree.flatten(timestep.observation), first])

  def _begin(self, slots) -> None:
    """Starts new recordings in the given slots."""
    self._origins[slots] = self._now
    self._starts[slots] = self._now - self._burn_in

  def _write(self, slots: np.ndarray) -> None:
    """Writes an item per slot, from its start until now."""
    starts = self._starts[slots]
    begins = np.maximum(starts, self._origins[slots])
    length, end = self._length, self._now
    self._writer.put(
      [
        *self._moments.cut(slots, starts, length, begins, end + 1),
        *self._steps.cut(slots, starts, length - 1, begins, end),
        *self._states.at(slots, begins),
        self._versions[begins % length],
      ]
    )


class _Rings:
  """Ring buffers with the latest steps of all slots, an array per leaf."""

  def __init__(self, size: int):
    """Takes the number of steps; the first `write` defines the leaves."""
    self._size = size
    self._arrays: list[np.ndarray] | None = None  # Each [size, B, ...]

  def write(self, time: int, leaves: list) -> None:
    """Writes leaves `[B, ...]` over the oldest ones."""
    if self._arrays is None:
      leaves = [np.asarray(leaf) for leaf in leaves]
      self._arrays = [
        np.zeros([self._size, *leaf.shape], leaf.dtype) for leaf in leaves
      ]
    place = time % self._size
    for array, leaf in zip(self._arrays, leaves, strict=True):
      array[place] = leaf

  def clear(self, time: int, slots: np.ndarray) -> None:
    """Writes zeros into the given slots, bool `[B]`."""
    for array in self._arrays or []:
      array[time % self._size, slots] = 0

  def cut(
    self,
    slots: np.ndarray,
    starts: np.ndarray,
    length: int,
    begins: np.ndarray,
    end: int,
  ) -> list[np.ndarray]:
    """Extracts segments `[K, length, ...]` of all leaves.

    Args:
      slots: Slot of each segment, `[K]`.
      starts: First time of each segment, `[K]`.
      length: Number of steps per segment.
      begins: Time before which each segment is zero, `[K]`.
      end: Time from which segments are zero.
    """
    times = starts[:, None] + np.arange(length)  # [K, length]
    outside = (times < begins[:, None]) | (times >= end)
    is_padded = outside.any()
    places = times % self._size
    are_aligned = (starts == starts[0]).all()
    cuts = []
    for array in self._arrays or []:
      if (
        are_aligned
        and len(slots) == array.shape[1]
        and array[0, 0].nbytes <= _MAX_CELL_BYTES
      ):
        cut = array[places[0]].swapaxes(0, 1)[slots]
      else:
        cut = array[places, slots[:, None]]
      if is_padded:
        cut[outside] = 0
      cuts.append(cut)
    return cuts

  def at(self, slots: np.ndarray, times: np.ndarray | int) -> list[np.ndarray]:
    """Returns the leaves of slots at one time each, `[K, ...]`."""
    return [array[times % self._size, slots] for array in self._arrays or []]
