"""The learner of every agent that learns from batches by an `Update`."""

from collections.abc import Iterator, Mapping

import numpy as np
import tree

from repertory.components import compilation, loggers, programs, types
from repertory.components.learners import divergence as divergence_lib
from repertory.components.learners import learner_state
from repertory.components.replay import priorities as priorities_lib

# What is told of how many learner steps ago items had their version.
_AGES = {types.Sequence: 'policy_lag', types.Labeled: 'target_age'}


class GradientLearner(learner_state.LearnerState):
  """Takes a batch, updates, writes priorities back, counts and logs."""

  def __init__(
    self,
    update: programs.Update,
    dataset: Iterator[types.Sample],
    element_spec: types.Sample | None = None,
    *,
    priority_updater: priorities_lib.Priorities | None = None,
    logger: loggers.Logger | None = None,
    jit_compile: bool = False,
    divergence: divergence_lib.Divergence | None = None,
  ):
    """Compiles the update.

    Args:
      update: Owns all that is learned.
      dataset: Gives batches.
      element_spec: Nest of `tf.TensorSpec` of a batch; None for that of
        the dataset, as `datasets.Batches` have one.
      priority_updater: Takes the new priorities; None where there are none.
      logger: Takes the metrics of every step, see `LearnerState`.
      jit_compile: Whether to compile with XLA: faster for small networks.
      divergence: What to do about an update that is not finite; by default
        the learner stops and saves nothing.
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
    # Should the update make variables now, they are part of the state.
    self._update = compilation.CompiledFunction(
      lambda sample: tuple(guarded(sample)), (element_spec,), jit_compile
    )
    self._element_spec = element_spec
    self._dataset = dataset
    self._priority_updater = priority_updater

  @property
  def open_slices(self) -> list[str]:
    return self._update.open_slices

  def restore(self, state: Mapping[str, np.ndarray]) -> None:
    known = {*self._named_variables(), 'learner_steps', 'max_priority'}
    if self._update.is_eager and state.keys() - known:
      divergence_lib.make_variables(self._module, self._element_spec)
    super().restore(state)

  def step(self) -> None:
    """Waits for a batch and learns from it.

    An update that is not finite is undone. If it may be skipped, it counts as a
    step all the same, for its batch was drawn.

    Raises:
      FloatingPointError: If a metric or priority is not finite and the update
        may not be skipped.
      signals.Stopped: If the wait was ended.
    """
    sample = next(self._dataset)
    with self._lock:
      leaves = self._update(*tree.flatten(sample))
      self._steps += 1
    result, finite = self._update.unflatten(leaves)
    is_finite = bool(finite)
    metrics = {name: value.numpy() for name, value in result.metrics.items()}
    self._judge(self._steps, metrics, is_finite, lambda: sample)
    for kind, name in _AGES.items():
      if isinstance(sample.data, kind):
        versions = np.asarray(sample.data.version)
        if (told := versions >= 0).any():  # Data are of no learner step.
          metrics[name] = (self._steps - 1 - versions[told]).mean()
    updater = self._priority_updater
    if updater is not None and result.priorities is not None and is_finite:
      priorities = result.priorities.numpy()
      updater.update(np.asarray(sample.keys), priorities)
      self._max_priority = max(self._max_priority, float(priorities.max()))
    self._log(metrics)
