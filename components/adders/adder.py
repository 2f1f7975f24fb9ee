"""Base classes of adders and of descriptions of their items."""

import abc
from collections.abc import Mapping
from typing import Any

import dm_env
import numpy as np

from repertory.components import core, specs, types
from repertory.components.replay import writers


class Adder(core.Adder):
  """Converts the time steps of an environment batch to replay items.

  All slots share one writer, and wait for it together: see `writers.Writer`.
  """

  def __init__(
    self, writer: writers.Writer, batch_size: int, *, num_steps_alive: int
  ):
    """Opens the writer, which is closed with the adder.

    Args:
      writer: Writer of the items.
      batch_size: B, slots of the environment batch.
      num_steps_alive: Steps during which items may refer to stored leaves.
    """
    if batch_size < 1:
      raise ValueError(f'batch_size must be at least 1, got {batch_size}.')
    self._writer = writer
    self._batch_size = batch_size
    writer.open(num_steps_alive * batch_size)

  @property
  def num_items(self) -> int:
    """Number of items so far."""
    return self._writer.num_items

  @abc.abstractmethod
  def add_first(self, timestep: dm_env.TimeStep) -> None:
    """Starts an episode in every slot; the time steps `[B]` are all FIRST."""

  def add(
    self,
    action: types.Nest,
    next_timestep: dm_env.TimeStep,
    extras: types.Nest = (),
  ) -> None:
    """Adds one step of every slot, and waits if too many items are pending.

    Args:
      action: a_t, `[B, ...]`.
      next_timestep: Time step t + 1, `[B]`. In slots that are FIRST again, the
        action was ignored and a new episode starts.
      extras: Extra outputs of the policy, `[B, ...]`.

    Raises:
      signals.Stopped: If the stop signal was set during the wait.
      TimeoutError: If the table did not accept the items in time.
    """
    self.put(action, next_timestep, extras)
    if self._writer.is_ahead():
      self._writer.wait()

  @abc.abstractmethod
  def put(
    self,
    action: types.Nest,
    next_timestep: dm_env.TimeStep,
    extras: types.Nest = (),
  ) -> None:
    """Adds one step of every slot, as `add` does, but never waits.

    Callers must check `is_ahead`, and perhaps let another thread `wait`.
    """

  def is_ahead(self) -> bool:
    """Returns whether too many items are pending."""
    return self._writer.is_ahead()

  def wait(self) -> None:
    """Waits until few enough items are pending; raises as `add` does."""
    self._writer.wait()

  def flush(self) -> None:
    """Waits until the table has all items; raises as `add` does."""
    self._writer.flush()

  @abc.abstractmethod
  def reset(self) -> None:
    """Drops the open episodes: their remaining items are not written."""

  def save(self) -> dict[str, Any]:
    """Returns the state of the open episodes, which can be pickled.

    Pending items are not included: call `flush` before.
    """
    return {
      name: part for name, part in vars(self).items() if name != '_writer'
    }

  def restore(self, state: Mapping[str, Any]) -> None:
    """Restores the open episodes from the result of `save`."""
    vars(self).update(state)

  def close(self) -> None:
    """Writes complete items and closes the writer."""
    self._writer.close()


class ItemSpec(abc.ABC):
  """Description of items: a frozen dataclass of all settings of their adder.

  Attributes:
    extras_spec: Nest of array specs of the policy's extra outputs.
  """

  extras_spec: Any = ()

  @property
  def slots_end_together(self) -> bool:
    """Whether the items of all slots of an adder end at the same steps."""
    return False

  @property
  def of_data(self) -> 'ItemSpec':
    """The items that are made of data sets."""
    return self

  @property
  @abc.abstractmethod
  def max_items_per_step(self) -> int:
    """Maximum number of items that one environment step can create.

    By it, rate limits and queues are refused that would cause a deadlock.
    """

  def max_items(self, num_steps: int) -> int:
    """Returns the most items of a number of steps of all slots."""
    return num_steps * self.max_items_per_step

  def expected_items(self, num_steps: int) -> int:
    """Returns the approximate items of a number of steps of all slots."""
    return self.max_items(num_steps)

  def max_items_of(self, lengths: np.ndarray) -> int:
    """Returns the most items of episodes of the given lengths, `[E]`."""
    return self.max_items(int(lengths.sum()))

  @abc.abstractmethod
  def signature(self, spec: specs.EnvironmentSpec) -> types.Nest:
    """Returns the `tf.TensorSpec`s of one item, for its table."""

  def num_frames(self, spec: specs.EnvironmentSpec) -> tuple[int, ...]:
    """Returns the frames of each leaf that its table stores one by one.

    See `replay.TableSpec`; () means that leaves are stored as they are.
    """
    del spec
    return ()

  @abc.abstractmethod
  def make_adder(self, writer: writers.Writer, batch_size: int) -> Adder:
    """Creates the adder that converts the steps of all slots to such items."""
