"""Custom additional losses, such as for auxiliary heads."""

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import tensorflow as tf

from repertory.components import types

# Maps the networks and a batch to a scalar loss, and metrics by name.
AdditionalLoss: TypeAlias = Callable[
  [Any, types.Sample], tuple[tf.Tensor, Mapping[str, tf.Tensor]]
]


class TakesAdditionalLoss:
  """Mixin of builders whose update supports an additional loss.

  Override `additional_loss` to train an auxiliary head or to regularize a
  network. It works in every topology.
  """

  def additional_loss(
    self, network: Any, sample: types.Sample
  ) -> tuple[tf.Tensor, Mapping[str, tf.Tensor]]:
    """Computes a loss that is added to the agent's loss.

    It is called inside the gradient tape of each gradient step and traced with
    the update, without AutoGraph. To distribute a network over several learner
    devices, call it through `data_parallel.split_rows`.

    Args:
      network: The network of `make_network`; SAC passes a
        `policy_and_critic.Networks` of policy and critics, and minimizes the
        loss with each of its two optimizers.
      sample: The batch. DQN and SAC pass `types.Transition` `[B, ...]`. IMPALA
        and PPO pass time-major `types.Sequence`: observations
        `[T + 1, B, ...]`, actions, rewards and `mask` `[T, B]`. Steps whose
        mask is false are padding: use `losses.masked_mean`. PPO passes a
        minibatch, whose `version`, `keys`, `probabilities` and `table_sizes`
        are empty; T = 1 if the network is feed-forward.

    Returns:
      The weighted loss, a scalar, which is logged as `additional_loss`; and
      further metrics, scalars by name. PPO logs means over its gradient steps.
    """
    raise NotImplementedError

  @property
  def given_loss(self) -> AdditionalLoss | None:
    """The method `additional_loss` if a subclass overrides it, else None."""
    default = TakesAdditionalLoss.additional_loss
    if type(self).additional_loss is default:
      return None
    return self.additional_loss


def check(builder: Any) -> None:
  """Raises a ValueError for an additional loss that the update would ignore."""
  builder = getattr(builder, 'wrapped', builder)
  kind = type(builder)
  if isinstance(builder, TakesAdditionalLoss):
    return
  is_ours = kind.make_update.__module__.startswith('repertory.agents.')
  if is_ours and hasattr(kind, 'additional_loss'):
    raise ValueError(
      f'{kind.__name__} must not have additional_loss, got one: its update '
      'ignores it. DQN, IMPALA, PPO and SAC support it; for other agents, '
      'override make_update.'
    )


def evaluate(
  function: AdditionalLoss | None, network: Any, sample: types.Sample
) -> tuple[tf.Tensor | float, dict[str, tf.Tensor]]:
  """Computes the additional loss and its metrics.

  Returns:
    The loss, a scalar, and metrics by name, `additional_loss` included; 0 and
    none if the function is None.

  Raises:
    ValueError: If the function does not return a scalar loss and metrics.
  """
  if function is None:
    return 0.0, {}
  result = function(network, sample)
  is_pair = isinstance(result, tuple) and len(result) == 2
  if not is_pair or result[0] is None or not isinstance(result[1], Mapping):
    raise ValueError(
      'additional_loss must return a loss and metrics, as a tuple, got '
      f'{result!r}. Return (loss, {{}}) if there are no metrics.'
    )
  loss, metrics = result
  shape = tf.convert_to_tensor(loss).shape
  if shape.rank:
    raise ValueError(
      f'additional_loss must return a scalar loss, got shape {shape.as_list()}.'
      ' Take the mean; for sequences, losses.masked_mean.'
    )
  return loss, {'additional_loss': loss, **metrics}


def merge(
  metrics: Mapping[str, tf.Tensor], more: Mapping[str, tf.Tensor]
) -> dict[str, tf.Tensor]:
  """Merges the metrics of the agent and of the additional loss.

  Raises:
    ValueError: If a name is in both.
  """
  if both := sorted(metrics.keys() & more.keys()):
    raise ValueError(
      'Metrics of additional_loss must not have names of metrics of the '
      f'agent, got {", ".join(both)}.'
    )
  return {**metrics, **more}
