"""Factory of tensor environments, and of host environments backed by them."""

import dataclasses
from collections.abc import Callable, Sequence

import dm_env

from repertory.environments.batches import single_slot, vector_batch
from repertory.environments.tensor import environment, source


@dataclasses.dataclass(frozen=True)
class Factory:
  """Factory of a tensor environment, and of host environments backed by it.

  Serves as an experiment's `environment_factory`, in any topology. It can be
  pickled if `make` can be.

      tensor.Factory(functools.partial(MyEnvironment, size=7))

  Attributes:
    make: Makes the tensor environment; every call must return an equal one. A
      class will do.
  """

  make: Callable[[], environment.TensorEnvironment]

  def __call__(self, seed: int) -> dm_env.Environment:
    """Makes one environment on the host.

    Args:
      seed: At least 0; environments with equal seeds behave identically.

    Raises:
      ArgumentError: If the seed is not valid.
    """
    return single_slot.SingleSlot(source.TensorSource(self.make(), [seed]))

  def make_batch(self, seeds: Sequence[int]) -> vector_batch.VectorBatch:
    """Makes a batch on the host.

    Args:
      seeds: One per slot, at least one. Each slot depends on its own seed
        alone.

    Raises:
      ArgumentError: If there are no seeds, or if one is not valid.
    """
    return vector_batch.VectorBatch(source.TensorSource(self.make(), seeds))

  def make_tensor_environment(self) -> environment.TensorEnvironment:
    """Makes the tensor environment itself, for compiled loops."""
    return self.make()
