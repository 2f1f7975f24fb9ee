"""Descriptions of replay items."""

import abc
from typing import Any

import numpy as np

from repertory.components import specs, types
from repertory.components.adders import adder
from repertory.components.replay import writers


class ItemSpec(abc.ABC):
  """Description of items: a frozen dataclass of all settings of their adder.

  It is defined next to the adder. Other code that creates or reads the same
  items uses the same description.
  """

  # Nests of array specs of the policy's extra outputs.
  extras_spec: Any = ()

  @property
  def slots_end_together(self) -> bool:
    """Whether the items of all slots of an adder end at the same steps."""
    return False

  @property
  @abc.abstractmethod
  def max_items_per_step(self) -> int:
    """Maximum number of items that one environment step can create.

    Rate limits and queues are validated with it, so that an actor that has
    taken a step never waits for a learner that waits for the actor.
    """

  def max_items(self, num_steps: int) -> int:
    """Returns the maximum number of items that `num_steps` can create.

    Args:
      num_steps: Steps of all slots, without resets.
    """
    return num_steps * self.max_items_per_step

  def max_items_of(self, lengths: np.ndarray) -> int:
    """Returns the maximum number of items from episodes of given lengths.

    Args:
      lengths: Steps per episode, `[E]`.
    """
    return self.max_items(int(lengths.sum()))

  @abc.abstractmethod
  def signature(self, spec: specs.EnvironmentSpec) -> types.Nest:
    """Returns the `tf.TensorSpec`s of one item, for its table."""

  @abc.abstractmethod
  def make_adder(self, writer: writers.Writer, batch_size: int) -> adder.Adder:
    """Creates the adder that converts time steps to such items.

    Args:
      writer: Writer of the items.
      batch_size: Slots of the environment batch.
    """
