"""What every distribution over actions can do."""

import abc

import tensorflow as tf

from repertory.components import types


class Distribution(abc.ABC):
  """A family of distributions; `parameters` `[..., P]` choose one of it.

  A *sample* is what was drawn and what the log-probability is of; the
  environment's action is made from it. They differ: integers are drawn from 0
  on, and bounded continuous actions are scaled to their bounds and clipped.

  Attributes:
    num_parameters: P.
    sample_spec: Array spec of one sample; a nest of such for a nest of actions.
    kl_parts: The names of what `kl` returns.
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
      counters: Where the rows' random streams are, uint64 `[B]`.

    Returns:
      Samples `[B, ...]`, and the counters to go on with.
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
    """Returns KL(p ‖ q), `[...]`, by what trust regions bound apart.

    Integers have one, 'policy'. Floats have two: 'mean', with p's deviations
    for both, and 'stddev', with p's means for both
    (https://arxiv.org/abs/1812.02256).

    Args:
      parameters: Those of p, `[..., P]`.
      others: Those of q, `[..., P]`.
    """

  @abc.abstractmethod
  def to_action(self, sample: types.Nest) -> types.Nest:
    """Turns samples `[B, ...]` into actions of the environment's spec."""
