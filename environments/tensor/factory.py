"""Makes tensor environments for whoever wants to step them."""

import dataclasses
from collections.abc import Callable, Sequence

import dm_env

from repertory.environments import single_slot, vector_batch
from repertory.environments.tensor import environment, source


@dataclasses.dataclass(frozen=True)
class Factory:
  """Makes a tensor environment of one kind, or host environments of it.

  An experiment's `environment_factory`, in any topology. It can be pickled if
  `make` can be.

      tensor.Factory(functools.partial(MyEnvironment, size=7))

  Attributes:
    make: Makes the tensor environment, the same whenever it is called, so a
      class will do.
  """

  make: Callable[[], environment.TensorEnvironment]

  def __call__(self, seed: int) -> dm_env.Environment:
    """Makes one environment of the host.

    Args:
      seed: At least 0; environments with equal seeds behave alike.

    Raises:
      ArgumentError: If the seed is not valid.
    """
    return single_slot.SingleSlot(source.TensorSource(self.make(), [seed]))

  def make_batch(self, seeds: Sequence[int]) -> vector_batch.VectorBatch:
    """Makes a batch of the host.

    Args:
      seeds: One per slot, at least one. What a slot does depends on its own
        alone.

    Raises:
      ArgumentError: If there is none, or if a seed is not valid.
    """
    return vector_batch.VectorBatch(source.TensorSource(self.make(), seeds))

  def make_tensor_environment(self) -> environment.TensorEnvironment:
    """Makes the environment itself, for a compiled program to hold."""
    return self.make()
