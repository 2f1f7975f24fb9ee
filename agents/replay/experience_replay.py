"""Experience replay, prioritized or uniform, of off-policy agents."""

import abc
import dataclasses
from typing import Any

import tensorflow as tf

from repertory.agents.interface import builder
from repertory.agents.replay import replay_config
from repertory.components import (
  adders,
  interfaces,
  learners,
  losses,
  replay,
  specs,
  types,
)
from repertory.components.config.settings import SettingError
from repertory.components.transports import experience as experience_lib


def describe(
  config: replay_config.ReplayConfig,
  items: adders.ItemSpec,
  spec: specs.EnvironmentSpec,
  num_environments: int,
  **others: Any,
) -> experience_lib.Experience:
  """Describes the experience of an agent with prioritized or uniform replay.

  There are `num_environments` in all actors; `others` are further arguments of
  `Experience`.
  """
  names = {'max_size': 'max_replay_size', 'min_size': 'min_replay_size'}
  if config.num_sgd_steps_per_step > 1:
    names['batch_size'] = 'batch_size · num_sgd_steps_per_step'
  signature = items.signature(spec)
  rate_limit = replay.RateLimit.with_default_buffer(
    config.samples_per_insert,
    config.min_replay_size,
    batch_size=config.items_per_learner_step,
    items_per_insert=num_environments * items.max_items_per_step,
  )
  if config.error_buffer is not None:
    rate_limit = dataclasses.replace(
      rate_limit, error_buffer=config.error_buffer
    )
  if config.prioritized:
    table = replay.prioritized(
      signature, config.max_replay_size, rate_limit, config.priority_exponent
    )
  else:
    table = replay.uniform(signature, config.max_replay_size, rate_limit)
  table = dataclasses.replace(table, num_frames=items.num_frames(spec))
  return experience_lib.Experience(
    items,
    [table],
    batch_size=config.items_per_learner_step,
    prefetch=config.prefetch,
    min_priority=config.min_priority if config.prioritized else None,
    setting_names=names,
    **others,
  )


def describe_uniform(
  config: Any,
  items: adders.ItemSpec,
  spec: specs.EnvironmentSpec,
  num_environments: int,
) -> experience_lib.Experience:
  """Describes the experience of an agent with uniform replay; see `describe`.

  `config` is an `agent_config.AgentConfig` that also has `max_replay_size`,
  `min_replay_size` and `samples_per_insert`.
  """
  names = (
    'batch_size', 'discount', 'learning_rate', 'prefetch', 'max_replay_size',
    'min_replay_size', 'samples_per_insert',
  )  # fmt: skip
  settings = {name: getattr(config, name) for name in names}
  return describe(
    replay_config.ReplayConfig(**settings), items, spec, num_environments
  )


class TransitionReplayBuilder(builder.Builder):
  """Builder of an agent with n-step transition replay.

  It describes the experience. `config` is a `replay_config.ReplayConfig` that
  also has `n_step`. Policies have no extras.
  """

  @property
  def transitions(self) -> adders.Transitions:
    """Kind of the items."""
    config = self.config
    number = getattr(config, 'hindsight_goals', 0)
    if not number:
      return adders.Transitions(config.n_step, config.discount)
    if config.n_step != 1:
      raise SettingError(
        'n_step', f'must be 1 with hindsight_goals, got {config.n_step}.'
      )
    return adders.HindsightTransitions(
      1,
      config.discount,
      num_goals=number,
      strategy=config.hindsight_strategy,
    )

  def experience(self, spec, num_environments) -> experience_lib.Experience:
    return describe(self.config, self.transitions, spec, num_environments)


def in_series(
  update: interfaces.Update, config: replay_config.ReplayConfig
) -> interfaces.Update:
  """Wraps an update to take all gradient steps of a learner step."""
  num_updates = config.num_sgd_steps_per_step
  if num_updates == 1:
    return update
  return learners.UpdateSeries(update, num_updates)


class ImportanceWeights(tf.Module):
  """Importance weights of prioritized replay, with annealing of β.

  The number of learner steps is a variable of the update.
  """

  def __init__(self, config: replay_config.ReplayConfig):
    """Initializes β to `config.importance_exponent`."""
    super().__init__()
    self._config = config
    self._annealing = None
    num_steps = config.importance_anneal_learner_steps
    if config.prioritized and num_steps is not None:
      self._annealing = learners.LinearAnnealing(num_steps)

  def __call__(self, sample: types.Sample) -> tf.Tensor:
    """Returns weights `[B]`, 1 for uniform sampling; counts a learner step.

    With β_0 = `importance_exponent` and N = `importance_anneal_learner_steps`,
    β = 1 − (1 − β_0) max(1 − t / N, 0) after t learner steps.
    """
    if not self._config.prioritized:
      return tf.ones_like(sample.probabilities, tf.float32)
    exponent = self._config.importance_exponent
    if self._annealing is not None:
      exponent = 1 - (1 - exponent) * self._annealing()
    return losses.importance_weights(
      sample.probabilities, sample.table_sizes, exponent
    )


class ReplayUpdate(learners.ScaledUpdate):
  """Base of updates from replay, with importance weights and new priorities.

  With `normalize_rewards`, rewards are divided by the deviation that returns
  would have if rewards were independent, √(E r² / (1 − γ²)). Unlike that of the
  critic's targets, it does not depend on what is learned.
  """

  def __init__(
    self, network: tf.Module | None, config: replay_config.ReplayConfig
  ):
    """Exports `network` as the policy's, unless None."""
    super().__init__(network, config.normalize_rewards)
    self._config: Any = config
    self._importance_weights = ImportanceWeights(config)

  def __call__(self, sample: types.Sample) -> interfaces.UpdateResult:
    weights = self._importance_weights(sample)  # [B]
    sample, scale_metrics = self._scale_rewards(sample)
    metrics, priorities = self._improve(sample, weights)
    metrics = {**metrics, **scale_metrics}
    is_prioritized = self._config.prioritized
    return interfaces.UpdateResult(
      metrics, priorities if is_prioritized else None
    )

  def _scale_rewards(
    self, sample: types.Sample
  ) -> tuple[types.Sample, dict[str, tf.Tensor]]:
    """Adds the rewards to the scale and divides them by it, if there is one."""
    scale, data = self._return_scale, sample.data
    if scale is None:
      return sample, {}
    discount = self._config.discount
    if isinstance(data, types.Sequence):
      scale.update(data.reward, data.mask)
    else:
      discount **= self._config.n_step
      scale.update(data.reward[None], tf.ones_like(data.reward[None], tf.bool))
    deviation = scale.of_returns(discount)
    data = data._replace(reward=data.reward / deviation)
    return sample._replace(data=data), {'reward_scale': deviation}

  @abc.abstractmethod
  def _improve(
    self, sample: types.Sample, weights: tf.Tensor
  ) -> tuple[dict[str, tf.Tensor], tf.Tensor]:
    """Updates all networks, with importance weights `[B]`.

    Returns metrics, and priorities for prioritized replay, `[B]`.
    """
