"""What all adders share: they compute items, and a writer carries these."""

import abc
from collections.abc import Mapping
from typing import Any

import dm_env

from repertory.components import core, types
from repertory.components.replay import writers


class Adder(core.Adder):
  """Turns the timesteps of an environment batch into items.

  All slots share one writer, and wait for it together: see `writers.Writer`.
  """

  def __init__(
    self,
    writer: writers.Writer,
    batch_size: int,
    *,
    num_steps_alive: int,
    ends_together: bool = False,
  ):
    """Opens the writer.

    Args:
      writer: Takes the items; closed with the adder.
      batch_size: B, slots of the environment batch.
      num_steps_alive: For how many steps items may refer to what was kept.
      ends_together: Whether the items of all slots are put together.
    """
    if batch_size < 1:
      raise ValueError(f'batch_size must be at least 1, got {batch_size}.')
    table = writer.table
    if table.bundle_size > 1 and not (
      ends_together and batch_size % table.bundle_size == 0
    ):
      raise ValueError(
        f"Table '{table.name}' must hold no bundles, for not all slots of this "
        f'{type(self).__name__} end their items together, or they do not fill '
        f'bundles: they are of {table.bundle_size}, and batch_size is '
        f'{batch_size}. Let the experience of the builder have '
        'in_bundles=False.'
      )
    self._writer = writer
    self._batch_size = batch_size
    writer.open(num_steps_alive * batch_size)

  @property
  def num_items(self) -> int:
    """Items made so far."""
    return self._writer.num_items

  @abc.abstractmethod
  def add_first(self, timestep: dm_env.TimeStep) -> None:
    """Starts an episode in every slot.

    Args:
      timestep: Batch `[B]`, all FIRST.
    """

  def add(
    self,
    action: types.Nest,
    next_timestep: dm_env.TimeStep,
    extras: types.Nest = (),
  ) -> None:
    """Adds one step of every slot, and waits while the writer is ahead.

    Args:
      action: a_t, `[B, ...]`.
      next_timestep: What followed, `[B]`. In a slot that is FIRST again the
        action was ignored and an episode starts.
      extras: What the policy gave with the actions, `[B, ...]`.

    Raises:
      signals.Stopped: If the stop signal was set during the wait.
      TimeoutError: If the table did not take the items in time.
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
    """Adds one step of every slot, and makes the items that it completes.

    For those who must not wait: they ask `is_ahead`, and let another thread
    `wait` before they go on. The arguments are those of `add`.
    """

  def is_ahead(self) -> bool:
    """Returns whether more items may be on their way than are to be."""
    return self._writer.is_ahead()

  def wait(self) -> None:
    """Waits until few enough items are on their way; raises as `add` does."""
    self._writer.wait()

  def flush(self) -> None:
    """Waits until the table has taken all items; raises as `add` does."""
    self._writer.flush()

  def reset(self) -> None:
    """Forgets the open episodes: of them, nothing more is written.

    Waits until the table has taken all items; raises as `add` does.
    """
    self._writer.reset()

  def save(self) -> dict[str, Any]:
    """Returns what is known of the open episodes; it can be pickled.

    Items that are on their way to the table are not in it: `flush` before.
    """
    return {
      name: part for name, part in vars(self).items() if name != '_writer'
    }

  def restore(self, state: Mapping[str, Any]) -> None:
    """Goes on with the open episodes that `save` told of."""
    vars(self).update(state)

  def close(self) -> None:
    """Hands over what is complete and closes the writer."""
    self._writer.close()
