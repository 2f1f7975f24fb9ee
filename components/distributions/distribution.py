"""Interface of action distributions."""

import abc

import tensorflow as tf

from repertory.components import types


class Distribution(abc.ABC):
  """Interface of a distribution family with parameters `[..., P]`.

  Log-probabilities are those of *samples*; `to_action` converts a sample to the
  environment's action. Samples of integers start at 0, and bounded continuous
  actions are scaled to their bounds and clipped.

  Attributes:
    num_parameters: P.
    sample_spec: Array spec of one sample; a nest of specs for nested actions.
    kl_parts: Keys of the dictionary that `kl` returns.
  """

  num_parameters: int
  sample_spec: types.Nest
  kl_parts: tuple[str, ...]

  @abc.abstractmethod
  def sample(
    self, parameters: tf.Tensor, counters: tf.Tensor
  ) -> tuple[types.Nest, tf.Tensor]:
    """Draws a sample for each row.

    Args:
      parameters: `[B, P]`.
      counters: Positions in the rows' random streams, uint64 `[B]`.

    Returns:
      Samples `[B, ...]` and the advanced counters.
    """

  @abc.abstractmethod
  def mode(self, parameters: tf.Tensor) -> types.Nest:
    """Returns the most probable samples, `[B, ...]`, for `[B, P]`."""

  @abc.abstractmethod
  def log_prob(self, parameters: tf.Tensor, sample: types.Nest) -> tf.Tensor:
    """Returns log p(sample), `[...]`, for `[..., P]` and `[..., *sample]`."""

  @abc.abstractmethod
  def entropy(self, parameters: tf.Tensor) -> tf.Tensor:
    """Returns −E[log p], `[...]`, for parameters `[..., P]`."""

  @abc.abstractmethod
  def kl(
    self, parameters: tf.Tensor, others: tf.Tensor
  ) -> dict[str, tf.Tensor]:
    """Returns KL(p ‖ q), `[...]`, for each part with its own trust region.

    Integers have one part, 'policy'. Floats have two: 'mean', computed with p's
    standard deviations for both, and 'stddev', with p's means for both
    (https://arxiv.org/abs/1812.02256).

    Args:
      parameters: Parameters of p, `[..., P]`.
      others: Parameters of q, `[..., P]`.
    """

  @abc.abstractmethod
  def to_action(self, sample: types.Nest) -> types.Nest:
    """Turns samples `[B, ...]` into actions of the environment's spec."""
