"""Shape checks of arguments, and means over masks."""

import tensorflow as tf


def check_ranks(**tensors: tuple[tf.Tensor, int]) -> None:
  """Raises a ValueError unless each tensor has its given rank."""
  for name, (tensor, rank) in tensors.items():
    if len(tensor.shape) != rank:
      raise ValueError(
        f'{name} must have rank {rank}, got shape {tensor.shape}.'
      )


def masked_mean(values: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
  """Mean of `[T, B]` over the steps of the mask; 0 if the mask is empty.

  Values outside the mask have no effect, not even on gradients.
  """
  kept = tf.where(mask, values, tf.zeros_like(values))
  count = tf.reduce_sum(tf.cast(mask, values.dtype))
  return tf.reduce_sum(kept) / tf.maximum(count, 1)


def check_shapes(axes: str = '[T, B]', **tensors: tf.Tensor) -> None:
  """Raises a ValueError unless all tensors have the same shape, of `axes`."""
  # Shapes of NumPy arrays are tuples.
  shapes = {name: tf.TensorShape(x.shape) for name, x in tensors.items()}
  first_name, first_shape = next(iter(shapes.items()))
  rank = len(axes.split(','))
  for name, shape in shapes.items():
    if shape.rank != rank or not shape.is_compatible_with(first_shape):
      raise ValueError(
        f'{name} must have shape {axes} like {first_name}, got {shape}, with '
        f'{first_name} of shape {first_shape}.'
      )
