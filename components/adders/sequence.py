"""Sequences of a fixed length."""

import dataclasses

import dm_env
import numpy as np
import tensorflow as tf
import tree

from repertory.components import specs, types
from repertory.components.adders import adder, items, rings
from repertory.components.replay import writers

# As numbers: NumPy compares arrays with members of an enumeration slowly.
_FIRST = int(dm_env.StepType.FIRST)
_LAST = int(dm_env.StepType.LAST)

_NO_EXTRAS = types.SequenceExtras()


@dataclasses.dataclass(frozen=True)
class Sequences(items.Items):
  """Items of `length` observations and the steps between them.

  The first `burn_in` steps of an item are to warm up a recurrent state; the
  others are its *loss window* of W = length − 1 − burn_in steps. An item starts
  every `period` steps, and period ≤ W: so the windows leave no gap, an item
  overlaps the one before it by burn-in + 1 observations or more, and no reward
  is ever dropped. With period = W, the default, every step is in exactly one
  window. Else step t of an episode is in those of all items k with
  k · period ≤ t < k · period + W that were started: none starts behind the end
  of the one that the episode ends in, so its last steps are in fewer.

  An episode starts with an item whose burn-in is padding; it needs none, for
  the state before it is known. At its end, the open item is padded, and no
  further one starts. With `across_episodes`, items go on over the end of
  episodes instead, and only what comes before an actor's first step is padded.

  Attributes:
    length: T + 1, observations of an item.
    period: Steps from the start of an item to the start of the next; None for
      the whole loss window.
    burn_in: Steps of an item before its loss window.
    across_episodes: Whether an item may hold steps of several episodes.
    extras_spec: Nests of array specs of what the policy gives.
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
        f'steps would be learned from in no item; got {self.period}.'
      )

  @property
  def window(self) -> int:
    """W, steps of an item to learn from."""
    return self.length - 1 - self.burn_in

  @property
  def stride(self) -> int:
    """Steps from the start of an item to the start of the next."""
    return self.window if self.period is None else self.period

  @property
  def are_unrolls(self) -> bool:
    """Whether they are what an environment did in so many steps, end to end."""
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
      # In episodes of one step every other moment is the step from one to the
      # next, which an item holds too.
      return 2 * num_steps // self.stride
    return num_steps  # Episodes of one step are an item each.

  def max_items_of(self, lengths: np.ndarray) -> int:
    if self.across_episodes:
      return super().max_items_of(lengths)
    # One, and a further one for each period until a window reaches the end.
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
  """Adds sequences, as `Sequences` tells.

  Items are put together here and written in one piece: writing step by step
  costs several times as much. So steps of several items are stored in each of
  them.
  """

  def __init__(
    self, writer: writers.Writer, batch_size: int, sequences: Sequences
  ):
    """Opens the writer.

    Args:
      writer: Takes the sequences; the signature of its table is theirs.
      batch_size: B, slots of the environment batch.
      sequences: Says how they are cut.
    """
    super().__init__(
      writer,
      batch_size,
      num_steps_alive=1,
      ends_together=sequences.slots_end_together,
    )
    self._length = length = sequences.length
    self._period = sequences.stride
    self._burn_in = sequences.burn_in
    self._across_episodes = sequences.across_episodes
    # The last `length` moments of all slots, in rings. Before a step is done,
    # all that is known of its moment is the observation.
    self._moments = rings.Rings(length)
    self._steps = rings.Rings(length)
    self._states = rings.Rings(length)
    self._versions = np.zeros([length], np.int64)
    self._now = 0
    # Per slot: when its recorded steps begin, and when its open item does.
    self._origins = np.zeros([batch_size], np.int64)
    self._starts = np.zeros([batch_size], np.int64)

  def add_first(self, timestep: dm_env.TimeStep) -> None:
    self._now += 1
    self._see(timestep, timestep.step_type == _FIRST)
    self._begin(slice(None))

  def put(
    self,
    action: types.Nest,
    next_timestep: dm_env.TimeStep,
    extras: types.Nest = (),
  ) -> None:
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
      # Between two episodes no step happened, whatever the policy gave.
      self._steps.clear(self._now, first)
      self._states.clear(self._now, first)
    self._versions[self._now % self._length] = self._writer.version()
    self._now += 1
    self._see(next_timestep, first)
    if not self._across_episodes:
      self._begin(first)
    due = self._now - self._starts == self._length - 1
    if not self._across_episodes:
      due |= step_types == _LAST
    if due.any():
      self._write(due.nonzero()[0])
    self._starts[due] += self._period

  def reset(self) -> None:
    super().reset()
    self._begin(slice(None))

  def _see(self, timestep: dm_env.TimeStep, first: np.ndarray) -> None:
    """Records what is known of a moment before its step."""
    self._moments.write(self._now, [*tree.flatten(timestep.observation), first])

  def _begin(self, slots) -> None:
    """Forgets what came before this moment, in some slots."""
    self._origins[slots] = self._now
    self._starts[slots] = self._now - self._burn_in

  def _write(self, slots: np.ndarray) -> None:
    """Makes an item of each slot: of its steps from its start until now."""
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
