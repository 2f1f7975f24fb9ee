"""Additional losses, such as to train an auxiliary head.

A builder whose `takes_additional_loss` is true may have a method

    def additional_loss(self, network, sample): ...

whose loss is added to the agent's. It works in every topology. It is called
inside the gradient tape of each gradient step and traced with the update,
without AutoGraph. To distribute a network over several learner devices, call it
through `data_parallel.split_rows`.

`network` is the network of `make_network`; SAC passes a
`policy_and_critic.Networks` of policy and critics, and minimizes the loss with
each of its two optimizers.

`sample` is the batch. DQN and SAC pass `types.Transition` `[B, ...]`. IMPALA
and PPO pass time-major `types.Sequence`: observations `[T + 1, B, ...]`,
actions, rewards and `mask` `[T, B]`. Steps whose mask is false are padding: use
`losses.masked_mean`. PPO passes a minibatch, whose `version`, `keys`,
`probabilities` and `table_sizes` are empty; T = 1 if the network is
feed-forward.

It returns the weighted loss, a scalar, which is logged as `additional_loss`;
and further metrics, scalars by name. PPO logs means over its gradient steps.
"""

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import tensorflow as tf

from repertory.components import types

# Maps the networks and a batch to a scalar loss, and metrics by name.
AdditionalLoss: TypeAlias = Callable[
  [Any, types.Sample], tuple[tf.Tensor, Mapping[str, tf.Tensor]]
]


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
