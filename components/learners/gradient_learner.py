"""The learner of agents that learn from batches by an `Update`."""

from collections.abc import Iterator

import numpy as np
import tree

from repertory.components import interfaces, loggers, types
from repertory.components.learners import divergence as divergence_lib
from repertory.components.learners import learner_state
from repertory.components.replay import batches
from repertory.components.runtime import compilation

# Metrics for the age of an item's version in learner steps.
_AGES = {types.Sequence: 'policy_lag', types.SampleWithTargets: 'target_age'}


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
    divergence: divergence_lib.Divergence | None = None,
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
    guarded = divergence_lib.undone_unless_finite(update)
    if element_spec is None:
      element_spec = getattr(dataset, 'element_spec', None)
    if element_spec is None:
      raise ValueError(
        'element_spec must be given where the dataset has none, got a '
        f'{type(dataset).__name__}.'
      )
    # Any variables created here become part of the state.
    self.compiled = compilation.CompiledFunction(
      lambda sample: tuple(guarded(sample)), (element_spec,), jit_compile
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
    result, finite = self.compiled.unflatten(leaves)
    is_finite = bool(finite)
    metrics = {name: value.numpy() for name, value in result.metrics.items()}
    self._judge(self._steps, metrics, is_finite, lambda: sample)
    for kind, name in _AGES.items():
      if isinstance(sample.data, kind):
        versions = np.asarray(sample.data.version)
        if (known := versions >= 0).any():  # Offline data have no version.
          metrics[name] = (self._steps - 1 - versions[known]).mean()
    updater = self._priority_updater
    if updater is not None and result.priorities is not None and is_finite:
      priorities = result.priorities.numpy()
      updater.update(np.asarray(sample.keys), priorities)
      self._max_priority = max(self._max_priority, float(priorities.max()))
    self._log(metrics)
