"""Averages over the steps that count."""

import tensorflow as tf


def masked_mean(values: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
  """Averages over the steps of the mask; 0 if there are none.

  Args:
    values: `[T, B]`; what they are outside the mask has no effect, not even
      on gradients.
    mask: Bool `[T, B]`.

  Returns:
    A scalar.
  """
  kept = tf.where(mask, values, tf.zeros_like(values))
  count = tf.reduce_sum(tf.cast(mask, values.dtype))
  return tf.reduce_sum(kept) / tf.maximum(count, 1)


def check_shapes(**tensors: tf.Tensor) -> None:
  """Raises a ValueError unless all tensors are `[T, B]`, of equal T and B."""
  first_name, first = next(iter(tensors.items()))
  for name, tensor in tensors.items():
    if len(tensor.shape) != 2 or not tensor.shape.is_compatible_with(
      first.shape
    ):
      raise ValueError(
        f'{name} must have shape [T, B] as {first_name} has, got '
        f'{tensor.shape}, with {first_name} of shape {first.shape}.'
      )


def check_bootstrap_value(
  bootstrap_value: tf.Tensor, values: tf.Tensor
) -> None:
  """Raises a ValueError unless it is `[B]` where the values are `[T, B]`."""
  if not bootstrap_value.shape.is_compatible_with(values.shape[1:]):
    raise ValueError(
      f'bootstrap_value must have shape [B] = {values.shape[1:]}, got '
      f'{bootstrap_value.shape}.'
    )
