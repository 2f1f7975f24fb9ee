"""Learner from batches by an `Update`, which is undone unless finite."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import sonnet as snt
import tensorflow as tf
import tree

from repertory.components import interfaces, loggers, types
from repertory.components.learners import learner_state, optimizers
from repertory.components.replay import batches
from repertory.components.runtime import compilation

# Metrics for the age of an item's version in learner steps.
_AGES = {types.Sequence: 'policy_lag', types.SampleWithTargets: 'target_age'}


# Not `module.variables`: Sonnet's raises an error for a module without any, and
# a module may have an attribute of this name, such as a flattening layer.
_flatten: Any = vars(tf.Module)['_flatten']


class GradientLearner(learner_state.LearnerState):
  """Samples batches, runs updates, updates priorities and logs metrics."""

  def __init__(
    self,
    update: interfaces.Update,
    dataset: Iterator[types.Sample],
    element_spec: types.Sample | None = None,
    *,
    priority_updater: batches.Priorities | None = None,
    logger: loggers.Logger | None = None,
    jit_compile: bool = False,
    divergence: learner_state.Divergence | None = None,
  ):
    """Compiles the update.

    Args:
      update: The update, which owns all learned variables.
      dataset: Iterator of batches.
      element_spec: Nest of `tf.TensorSpec` of a batch; by default the dataset's
        own, as of `replay.Batches`.
      priority_updater: Writes new priorities to replay; None without
        priorities.
      logger: Gets the metrics of every step, see `LearnerState`. Sequences add
        'policy_lag', the mean age of the acting weights in learner steps; items
        with targets add 'target_age', that of the weights behind the targets.
      jit_compile: Whether to compile with XLA: faster for small networks.
      divergence: Reaction to a non-finite update; by default the learner stops
        and saves nothing.
    """
    super().__init__(update, logger, divergence)
    guarded = undone_unless_finite(update)
    element_spec = element_spec or getattr(dataset, 'element_spec', None)
    if element_spec is None:
      raise ValueError(
        'element_spec must be given where the dataset has none, got a '
        f'{type(dataset).__name__}.'
      )
    self._metric_names: list[str] = []

    def call(sample):
      result, finite = guarded(sample)
      self._metric_names = list(result.metrics)
      # TensorFlow takes microseconds for each output.
      numbers = [
        tf.cast(x, tf.float32) for x in (*result.metrics.values(), finite)
      ]
      return tf.stack(numbers), result.priorities

    # Any variables created here become part of the state.
    self.compiled = compilation.CompiledFunction(
      call, (element_spec,), jit_compile
    )
    self._dataset = dataset
    self._priority_updater = priority_updater

  def step(self) -> None:
    """Waits for a batch and learns from it.

    A non-finite update is undone. If it is skipped, it still counts as a step,
    because its batch was sampled.

    Raises:
      FloatingPointError: If a metric or priority is not finite and the update
        may not be skipped.
      signals.Stopped: If the wait was stopped.
    """
    sample = next(self._dataset)
    with self._lock:
      leaves = self.compiled(*tree.flatten(sample))
      self._steps += 1
    numbers, priorities = self.compiled.unflatten(leaves)
    *values, is_finite = numbers.numpy()
    metrics = dict(zip(self._metric_names, values))
    self._judge(self._steps, metrics, bool(is_finite), lambda: sample)
    for kind, name in _AGES.items():
      if isinstance(sample.data, kind):
        versions = np.asarray(sample.data.version)
        if (known := versions >= 0).any():  # Offline data have no version.
          metrics[name] = (self._steps - 1 - versions[known]).mean()
    updater = self._priority_updater
    if updater is not None and priorities is not None and is_finite:
      priorities = priorities.numpy()
      updater.update(np.asarray(sample.keys), priorities)
      self._max_priority = max(self._max_priority, float(priorities.max()))
    self._log(metrics)


def undone_unless_finite(
  update: interfaces.Update,
) -> Callable[[types.Sample], tuple[interfaces.UpdateResult, tf.Tensor]]:
  """Wraps an update so that it is undone if its results are not finite.

  It is undone if a metric or priority is not finite, or an updated variable
  other than a network's weights or an optimizer's moments, such as running
  scales, batch statistics, temperatures and dual variables. Then all its
  variables are restored. An update of several gradient steps is undone as a
  whole. Metrics should include the losses and the norms of the gradients: a
  loss may be finite while its gradient is not.

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

    finite = _is_finite(result, _kept_state(update))
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


def _is_finite(
  result: interfaces.UpdateResult, variables: Sequence[tf.Variable]
) -> tf.Tensor:
  """Returns whether all metrics, priorities and variables are finite."""
  metrics = [tf.cast(value, tf.float32) for value in result.metrics.values()]
  parts = [tf.stack(metrics or [0.0]), *variables]
  if result.priorities is not None:
    parts.append(result.priorities)
  finite = [tf.reduce_all(tf.math.is_finite(part)) for part in parts]
  return tf.reduce_all(tf.stack(finite))
