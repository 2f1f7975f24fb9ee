"""Updates of agents that learn from minibatches of unrolls."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import tensorflow as tf
import tree

from repertory.agents.unrolls import unroll_config
from repertory.components import learners, networks, types


class Steps(NamedTuple):
  """Inputs of a loss for K items of a batch, `[K, T, ...]`; () if unused.

  Attributes:
    observation: x_t.
    first: Whether x_t is the first of an episode.
    mask: False for padding.
    state: Recurrent state before x_0, `[K, ...]`.
    action: a_t, or the sample of the distribution for it.
    target: Target of the value.
    advantage: A_t.
    old: Outputs of the policy that acted, or before the update.
    others: Data for an additional loss.
  """

  observation: types.Nest
  first: tf.Tensor
  mask: tf.Tensor
  state: types.Nest
  action: types.Nest
  target: tf.Tensor
  advantage: types.Nest = ()
  old: types.Nest = ()
  others: Any = ()


def steps_of(data: types.Sequence, **inputs: types.Nest) -> Steps:
  """Returns steps of unrolls, `[T, B, ...]`, with further fields of `Steps`."""
  return Steps(
    observation=tree.map_structure(lambda x: x[:-1], data.observation),
    first=data.first[:-1],
    mask=data.mask,
    state=data.state,
    **inputs,
  )


class MinibatchUpdate(learners.ScaledUpdate):
  """Base class of updates that take several epochs of minibatch steps."""

  def __init__(
    self,
    network: networks.SequenceNetwork,
    config: unroll_config.MinibatchConfig,
    acting: networks.SequenceNetwork | None = None,
  ):
    """Creates the optimizer of `network`; `acting` is exported if given."""
    exported = network if acting is None else acting
    super().__init__(exported, config.normalize_rewards)
    self._config: Any = config
    self._learning_rate = tf.Variable(
      float(config.learning_rate), trainable=False, name='learning_rate'
    )
    self._optimizer = learners.ClippedAdam.from_config(
      network, config, self._learning_rate
    )
    self._annealing = learners.LinearAnnealing(config.anneal_learner_steps)
    # For shuffling minibatches.
    self._noise = learners.UpdateNoise()

  def _anneal(self) -> tf.Tensor:
    """Anneals the learning rate; returns the share that is left of it."""
    left = self._annealing()
    self._learning_rate.assign(self._config.learning_rate * left)
    return left

  def _take_steps(
    self,
    take_step: Callable[[Steps], Mapping[str, tf.Tensor]],
    items: Steps,
    metrics: Sequence[str],
    **options: Any,
  ) -> dict[str, tf.Tensor]:
    """Takes all gradient steps, see `learners.take_minibatch_steps`."""
    return learners.take_minibatch_steps(
      take_step,
      items,
      self._noise.seed(),
      num_epochs=self._config.num_epochs,
      num_minibatches=self._config.num_minibatches,
      metrics=metrics,
      **options,
    )
