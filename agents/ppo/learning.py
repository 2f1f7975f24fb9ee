"""Builder and update of PPO."""

from collections.abc import Mapping

import tensorflow as tf
import tree

from repertory.agents.actor_critic import actor_critic
from repertory.agents.actor_critic import additional_loss as additional
from repertory.agents.ppo import config as ppo_config
from repertory.agents.unrolls import steps as steps_lib
from repertory.agents.unrolls import unroll_queue
from repertory.components import (
  distributions,
  interfaces,
  learners,
  losses,
  networks,
  types,
)
from repertory.components.runtime import compilation


class PPOBuilder(unroll_queue.UnrollQueueBuilder):
  """Proximal policy optimization (PPO); discrete or continuous actions.

  See https://arxiv.org/abs/1707.06347.
  """

  config: ppo_config.PPOConfig
  takes_additional_loss = True

  def make_network(self, spec):
    config = self.config
    return actor_critic.make_network(
      spec, config, config.shared_sizes, config.hidden_sizes
    )

  def make_update(self, network, spec):
    distribution = distributions.make_distribution(spec.actions)
    return PPOUpdate(network, distribution, self.config, self.additional_loss)


# Metrics averaged over the gradient steps of an update.
_METRICS = (
  'loss', 'policy_loss', 'value_loss', 'entropy', 'approximate_kl',
  'clip_fraction', 'gradient_norm',
)  # fmt: skip


class PPOUpdate(steps_lib.MinibatchUpdate):
  """PPO: several epochs of minibatch steps on the clipped surrogate loss.

  The loss of a minibatch is the clipped surrogate loss + `baseline_cost` ·
  ½ (v − V)² − `entropy_cost` · H, each a masked mean. See
  https://arxiv.org/abs/1707.06347, algorithm 1.

  The network outputs `networks.ActorCriticOutput`, with parameters of the
  distribution. The additional loss, if any, is added in each minibatch.
  """

  def __init__(
    self,
    network: networks.SequenceNetwork,
    distribution: distributions.Distribution,
    config: ppo_config.PPOConfig,
    additional_loss: additional.AdditionalLoss | None = None,
  ):
    super().__init__(network, config)
    self._network = network
    self._distribution = distribution
    self._additional_loss = additional_loss

  def __call__(self, sample: types.Sample) -> interfaces.UpdateResult:
    steps, metrics = self._estimate(learners.time_major(sample.data))
    config = self._config
    epsilon = config.clip_epsilon * self._anneal()
    max_kl = float('inf') if config.target_kl is None else config.target_kl
    step_metrics = self._take_steps(
      lambda minibatch: self._descend(minibatch, epsilon),
      steps,
      (*_METRICS, *self._additional_metrics(steps)),
      should_continue=lambda metrics: metrics['approximate_kl'] <= max_kl,
    )
    return interfaces.UpdateResult({**metrics, **step_metrics})

  def _estimate(self, data: types.Sequence) -> tuple[steps_lib.Steps, dict]:
    """Computes advantages and targets, with the current network."""
    mask = data.mask  # [T, B]
    output, _ = self._network.unroll(data.observation, data.first, data.state)
    (advantages, targets), metrics = actor_critic.estimate_advantages(
      data, output.value, self._config, self._return_scale
    )
    steps = steps_lib.steps_of(
      data,
      action=data.extras['sample'],
      target=targets,
      advantage=advantages,
      old={'log_prob': data.extras['log_prob'], 'value': output.value[:-1]},
      others=() if self._additional_loss is None else _others_of(data),
    )
    log_probs = self._distribution.log_prob(
      output.parameters[:-1], steps.action
    )
    ratios = losses.importance_ratios(log_probs, steps.old['log_prob'], mask)
    return learners.to_items(steps), {
      **metrics,
      'importance_ratio': losses.masked_mean(ratios, mask),
    }

  def _descend(
    self, minibatch: steps_lib.Steps, epsilon: tf.Tensor
  ) -> Mapping[str, tf.Tensor]:
    """Takes a gradient step on a minibatch `[K, T, ...]`."""
    steps = learners.to_steps(minibatch)  # [T, K, ...]
    with tf.GradientTape() as tape:
      loss, metrics = self._loss(steps, epsilon)
      added, added_metrics = self._evaluate_additional(steps)
      loss += added
    norm = self._optimizer.minimize(tape, loss)
    metrics = {'loss': loss, **metrics, 'gradient_norm': norm}
    return additional.merge(metrics, added_metrics)

  def _evaluate_additional(
    self, steps: steps_lib.Steps
  ) -> tuple[tf.Tensor | float, dict[str, tf.Tensor]]:
    """Returns the additional loss of steps `[T, K, ...]`, and its metrics."""
    if self._additional_loss is None:
      return 0.0, {}
    return additional.evaluate(
      self._additional_loss, self._network, _to_sample(steps)
    )

  def _additional_metrics(self, items: steps_lib.Steps) -> list[str]:
    """Returns the names of the metrics of the additional loss."""
    if self._additional_loss is None:
      return []
    # The size of the largest minibatch.
    size = -(-items.mask.shape[0] // self._config.num_minibatches)
    minibatch = tree.map_structure(lambda x: x[:size], items)

    def evaluate(minibatch):
      return self._evaluate_additional(learners.to_steps(minibatch))

    if tf.executing_eagerly():  # It may print values or use a debugger.
      _, metrics = evaluate(minibatch)
    else:
      specs = compilation.specs_of(minibatch)
      _, metrics = compilation.trace(evaluate, (specs,))
    return sorted(metrics)

  def _loss(
    self, steps: steps_lib.Steps, epsilon: tf.Tensor
  ) -> tuple[tf.Tensor, dict[str, tf.Tensor]]:
    config, mask = self._config, steps.mask  # [T, K]
    output, _ = self._network.unroll(
      steps.observation, steps.first, steps.state
    )
    log_probs = self._distribution.log_prob(output.parameters, steps.action)
    ratios = losses.importance_ratios(log_probs, steps.old['log_prob'], mask)
    advantages = steps.advantage
    if config.normalize_advantages:
      advantages = losses.standardize(advantages, mask)
    policy_loss = losses.clipped_surrogate_loss(
      ratios, advantages, mask, epsilon
    )
    if config.value_clip_epsilon is None:
      value_loss = losses.value_loss(output.value, steps.target, mask)
    else:
      value_loss = losses.clipped_value_loss(
        output.value,
        steps.old['value'],
        steps.target,
        mask,
        config.value_clip_epsilon,
      )
    entropy_loss = losses.entropy_loss(
      self._distribution.entropy(output.parameters), mask
    )
    loss = (
      policy_loss
      + config.baseline_cost * value_loss
      + config.entropy_cost * entropy_loss
    )
    is_clipped = tf.cast(tf.abs(ratios - 1) > epsilon, tf.float32)
    return loss, {
      'policy_loss': policy_loss,
      'value_loss': value_loss,
      'entropy': -entropy_loss,
      'approximate_kl': losses.approximate_kl(ratios, mask),
      'clip_fraction': losses.masked_mean(is_clipped, mask),
    }


def _others_of(data: types.Sequence) -> types.Sequence:
  """Returns what the additional loss needs of unrolls `[T, B, ...]` besides.

  Observations and flags are those of the next steps.
  """
  return data._replace(
    observation=tree.map_structure(lambda x: x[1:], data.observation),
    first=data.first[1:],
    mask=(),
    state=(),
    version=(),
  )


def _to_sample(steps: steps_lib.Steps) -> types.Sample:
  """Converts steps `[T, K, ...]` to a batch of time-major sequences."""

  def join(now, following):
    return tf.concat([now, following[-1:]], axis=0)  # [T + 1, K, ...]

  data = steps.others._replace(
    observation=tree.map_structure(
      join, steps.observation, steps.others.observation
    ),
    first=join(steps.first, steps.others.first),
    mask=steps.mask,
    state=steps.state,
  )
  return types.Sample(data, keys=(), probabilities=(), table_sizes=())
