"""Handling of non-finite updates: stop, or skip and restore."""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import sonnet as snt
import tensorflow as tf

from repertory.components import interfaces, types
from repertory.components.learners import optimizers

# Not `module.variables`: Sonnet's raises an error for a module without any, and
# a module may have an attribute of this name, such as a flattening layer.
_flatten: Any = vars(tf.Module)['_flatten']


@dataclasses.dataclass(frozen=True)
class Divergence:
  """Reaction of a learner to a diverging update.

  Such an update is undone in any case.

  Attributes:
    action: 'stop' to raise, 'skip' to continue with the next batch.
    directory: Directory for the batch when the learner stops; None to save
      nothing.
    max_skips: Maximum number of consecutive skipped updates; the next one stops
      the learner.
  """

  action: str = 'stop'
  directory: str | None = None
  max_skips: int = 100


def undone_unless_finite(
  update: interfaces.Update,
) -> Callable[[types.Sample], tuple[interfaces.UpdateResult, tf.Tensor]]:
  """Wraps an update so that it is undone if its results are not finite.

  It is undone if a metric or priority is not finite, or an updated variable
  other than a network's weights or an optimizer's moments, such as running
  scales, batch statistics, temperatures and dual variables. Then all its
  variables (networks, targets, optimizers, counts, seeds) are restored. An
  update of several steps, such as those on the minibatches of PPO or on critic
  and policy, is undone as a whole, because the steps after a bad one are
  useless.

  Metrics should include the losses and the norms of the gradients: a loss may
  be finite while its gradient is not.

  Returns:
    A function that maps a batch to the update's result and to whether that is
    finite. It is called inside a `tf.function`, and raises the errors of
    `interfaces.call_update`.
  """

  def call(sample):
    # TensorFlow retraces a function whose first trace created variables, so the
    # final trace includes them.
    before = [(one, one.read_value()) for one in update.variables]

    def keep(variable):
      if tf.executing_eagerly():
        before.append((variable, variable.read_value()))

    with interfaces.created_variables(keep):
      result = interfaces.call_update(update, sample)

    def undo():
      for variable, value in before:
        variable.assign(value)

    finite = _is_finite(result) & _are_finite(_kept_state(update))
    # Not `tf.where`: that would copy all variables in every update.
    tf.cond(finite, lambda: None, undo)
    return result, finite

  return call


def _kept_state(update: interfaces.Update) -> list[tf.Variable]:
  """Returns variables that may become infinite while all metrics are finite.

  Weights of networks and moments of optimizers are left out: they are many, and
  change only by gradients, whose norm is a metric.
  """
  covered = set()
  for module in update.submodules:
    variables = list(
      _flatten(module, predicate=lambda one: isinstance(one, tf.Variable))
    )
    if isinstance(module, (snt.Optimizer, optimizers.AMSGrad)):
      covered.update(one.ref() for one in variables)
    elif isinstance(module, snt.Module):
      covered.update(one.ref() for one in variables if one.trainable)
  return [
    variable
    for variable in update.variables
    if variable.dtype.is_floating and variable.ref() not in covered
  ]


def _are_finite(variables: Sequence[tf.Variable]) -> tf.Tensor:
  """Returns whether all numbers of all variables are finite, a scalar."""
  finite = [tf.reduce_all(tf.math.is_finite(one)) for one in variables]
  return tf.reduce_all(tf.stack(finite or [True]))


def _is_finite(result: interfaces.UpdateResult) -> tf.Tensor:
  """Returns whether all metrics and priorities are finite, a scalar."""
  metrics = [tf.cast(value, tf.float32) for value in result.metrics.values()]
  finite = tf.reduce_all(tf.math.is_finite(tf.stack(metrics or [0.0])))
  if result.priorities is None:
    return finite
  return finite & tf.reduce_all(tf.math.is_finite(result.priorities))
