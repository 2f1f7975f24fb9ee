"""What becomes of the steps that were lived, as data."""

import abc
from typing import Any

import numpy as np

from repertory.components import specs, types
from repertory.components.adders import adder
from repertory.components.replay import writers


class Items(abc.ABC):
  """Describes items: a frozen dataclass of all that decides how they are cut.

  It stands beside the adder that makes them. Who makes the same items in
  another way, or has them already, reads the same description.
  """

  # Nests of array specs of what the policy gives for replay.
  extras_spec: Any = ()

  @property
  def slots_end_together(self) -> bool:
    """Whether all slots of an adder end their items at the same steps."""
    return False

  @property
  @abc.abstractmethod
  def max_items_per_step(self) -> int:
    """Items that one step of an environment may make, at the most.

    Rate limits and queues are checked against it, so that an actor which has
    taken a step never waits for a learner that waits for the actor.
    """

  def max_items(self, num_steps: int) -> int:
    """Returns the most items that so many steps, over all slots, can make.

    Args:
      num_steps: To begin an episode is none.
    """
    return num_steps * self.max_items_per_step

  def max_items_of(self, lengths: np.ndarray) -> int:
    """Returns the most items that episodes of so many steps each can make.

    Args:
      lengths: `[E]`.
    """
    return self.max_items(int(lengths.sum()))

  @abc.abstractmethod
  def signature(self, spec: specs.EnvironmentSpec) -> types.Nest:
    """Returns the `tf.TensorSpec`s of one item, for its table."""

  @abc.abstractmethod
  def make_adder(self, writer: writers.Writer, batch_size: int) -> adder.Adder:
    """Makes what cuts the steps of an environment batch into such items.

    Args:
      writer: Takes them.
      batch_size: Slots of the environment batch.
    """
