"""Checks of the shapes that losses of transitions get."""

import tensorflow as tf


def check_ranks(**tensors: tuple[tf.Tensor, int]) -> None:
  """Raises a ValueError unless each tensor has the rank beside it."""
  for name, (tensor, rank) in tensors.items():
    if len(tensor.shape) != rank:
      raise ValueError(
        f'{name} must have rank {rank}, got shape {tensor.shape}.'
      )
