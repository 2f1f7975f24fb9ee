"""Builder and update of IMPALA."""

import tensorflow as tf

from repertory.agents.actor_critic import actor_critic
from repertory.agents.actor_critic import additional_loss as additional
from repertory.agents.impala import config as impala_config
from repertory.agents.unrolls import unroll_queue
from repertory.components import (
  distributions,
  interfaces,
  learners,
  losses,
  networks,
  types,
)


class IMPALABuilder(unroll_queue.UnrollQueueBuilder):
  """IMPALA, actor-critic with V-trace; discrete or continuous actions.

  See https://arxiv.org/abs/1802.01561.
  """

  config: impala_config.IMPALAConfig
  takes_additional_loss = True

  def __init__(self, config: impala_config.IMPALAConfig | None = None):
    super().__init__(config)
    self.across_episodes = self.config.across_episodes

  def make_network(self, spec):
    return actor_critic.make_network(
      spec, self.config, self.config.hidden_sizes
    )

  def make_update(self, network, spec):
    distribution = distributions.make_distribution(spec.actions)
    return IMPALAUpdate(
      network, distribution, self.config, self.additional_loss
    )


class IMPALAUpdate(learners.ScaledUpdate):
  """IMPALA: policy gradient with V-trace targets and advantages.

  The loss is policy + `baseline_cost` · ½ (v − V)² − `entropy_cost` · H, each a
  masked mean. See https://arxiv.org/abs/1802.01561,
  section 4.2.

  The network outputs `networks.ActorCriticOutput`, with parameters of the
  distribution.
  """

  def __init__(
    self,
    network: networks.SequenceNetwork,
    distribution: distributions.Distribution,
    config: impala_config.IMPALAConfig,
    additional_loss: additional.AdditionalLoss | None = None,
  ):
    super().__init__(network, config.normalize_rewards)
    self._network = network
    self._distribution = distribution
    self._config = config
    self._additional_loss = additional_loss
    self._learning_rate = tf.Variable(
      float(config.learning_rate), trainable=False, name='learning_rate'
    )
    self._annealing = learners.LinearAnnealing(config.anneal_learner_steps)
    self._optimizer = learners.ClippedAdam.from_config(
      network, config, self._learning_rate, amsgrad=config.amsgrad
    )

  def __call__(self, sample: types.Sample) -> interfaces.UpdateResult:
    data = learners.time_major(sample.data)
    with tf.GradientTape() as tape:
      loss, metrics = self._loss(data)
      added, added_metrics = additional.evaluate(
        self._additional_loss, self._network, sample._replace(data=data)
      )
      loss += added
    self._learning_rate.assign(self._config.learning_rate * self._annealing())
    norm = self._optimizer.minimize(tape, loss)
    metrics = {'loss': loss, **metrics, 'gradient_norm': norm}
    return interfaces.UpdateResult(additional.merge(metrics, added_metrics))

  def _loss(self, data: types.Sequence) -> tuple[tf.Tensor, dict]:
    config, mask = self._config, data.mask  # [T, B]
    output, _ = self._network.unroll(data.observation, data.first, data.state)
    parameters, values = output.parameters[:-1], output.value[:-1]  # [T, B, …]
    log_probs = self._distribution.log_prob(parameters, data.extras['sample'])
    discounts = config.discount * data.discount
    rewards, metrics = learners.scale_rewards(
      self._return_scale,
      data.reward,
      discounts,
      tf.stop_gradient(output.value),
      mask,
    )
    trace = losses.vtrace(
      target_log_probs=tf.stop_gradient(log_probs),
      behavior_log_probs=data.extras['log_prob'],
      rewards=losses.clip_rewards(rewards, config.max_abs_reward),
      discounts=discounts,
      values=tf.stop_gradient(values),
      bootstrap_value=tf.stop_gradient(output.value[-1]),
      mask=mask,
      max_rho=config.max_rho,
      max_pg_rho=config.max_pg_rho,
      max_c=config.max_c,
      lambda_=config.lambda_,
    )
    policy_loss = losses.policy_gradient_loss(log_probs, trace.advantages, mask)
    value_loss = losses.value_loss(values, trace.targets, mask)
    entropy_loss = losses.entropy_loss(
      self._distribution.entropy(parameters), mask
    )
    loss = (
      policy_loss
      + config.baseline_cost * value_loss
      + config.entropy_cost * entropy_loss
    )
    return loss, {
      **metrics,
      'policy_loss': policy_loss,
      'value_loss': value_loss,
      'entropy': -entropy_loss,
      'value': losses.masked_mean(values, mask),
      'importance_ratio': losses.masked_mean(trace.ratios, mask),
      'share_of_padding': 1 - tf.reduce_mean(tf.cast(mask, tf.float32)),
    }
