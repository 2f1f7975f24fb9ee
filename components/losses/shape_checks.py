"""Rank checks of loss arguments."""

import tensorflow as tf


def check_ranks(**tensors: tuple[tf.Tensor, int]) -> None:
  """Raises a ValueError unless each tensor has its given rank."""
  for name, (tensor, rank) in tensors.items():
    if len(tensor.shape) != rank:
      raise ValueError(
        f'{name} must have rank {rank}, got shape {tensor.shape}.'
      )
