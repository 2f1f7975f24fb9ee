"""Builder and update of V-MPO."""

from collections.abc import Mapping

import tensorflow as tf

from repertory.agents.actor_critic import actor_critic
from repertory.agents.unrolls import steps as steps_lib
from repertory.agents.unrolls import unroll_queue
from repertory.agents.vmpo import config as vmpo_config
from repertory.components import (
  distributions,
  interfaces,
  learners,
  losses,
  networks,
  types,
)


class VMPOBuilder(unroll_queue.UnrollQueueBuilder):
  """On-policy maximum a posteriori policy optimization (V-MPO).

  See https://arxiv.org/abs/1909.12238. The builder's network is the target
  network, which acts; the update creates the online network.
  """

  config: vmpo_config.VMPOConfig

  def make_network(self, spec):
    config = self.config
    return actor_critic.make_network(
      spec, config, config.shared_sizes, config.hidden_sizes
    )

  def make_update(self, network, spec):
    online = self.make_network(spec)
    for variable, acting in zip(online.variables, network.variables):
      variable.assign(acting)
    distribution = distributions.make_distribution(spec.actions)
    return VMPOUpdate(online, network, distribution, self.config)


class VMPOUpdate(steps_lib.MinibatchUpdate):
  """V-MPO: weighted maximum likelihood on the top half of advantages.

  KL bounds limit the policy's changes. The loss of a minibatch is −Σ ψ log π +
  Σ α KL + `baseline_cost` · mean ½ (G − V)²; η and α have losses of their own.
  See https://arxiv.org/abs/1909.12238, section 4.

  Networks output `networks.ActorCriticOutput`, with parameters of the
  distribution; the target network acts.
  """

  def __init__(
    self,
    online: networks.SequenceNetwork,
    target: networks.SequenceNetwork,
    distribution: distributions.Distribution,
    config: vmpo_config.VMPOConfig,
  ):
    super().__init__(online, config, target)
    self._online = online
    self._target = target
    self._distribution = distribution
    self._temperature = learners.DualVariable(
      config.initial_temperature, [], 'temperature'
    )
    self._alphas = {
      name: learners.DualVariable(
        getattr(config, f'initial_alpha_{name}'), [1], f'alpha_{name}'
      )
      for name in distribution.kl_parts
    }
    self._duals = [self._temperature, *self._alphas.values()]
    self._dual_optimizer = learners.ClippedAdam(
      [variable for dual in self._duals for variable in dual.variables],
      config.dual_learning_rate,
      config.adam_epsilon,
    )
    self._update_target = learners.PeriodicCopy(
      online.variables, target.variables, config.target_update_period
    )

  def __call__(self, sample: types.Sample) -> interfaces.UpdateResult:
    steps, metrics = self._estimate(learners.time_major(sample.data))
    self._anneal()
    step_metrics = self._take_steps(self._descend, steps, self._metric_names())
    self._update_target()
    return interfaces.UpdateResult({**metrics, **step_metrics})

  def _estimate(self, data: types.Sequence) -> tuple[steps_lib.Steps, dict]:
    """Computes the constant inputs of all gradient steps, and metrics."""
    mask = data.mask  # [T, B]
    inputs = (data.observation, data.first, data.state)
    values = self._online.unroll(*inputs)[0].value  # [T + 1, B]
    old_parameters = self._target.unroll(*inputs)[0].parameters[:-1]
    (advantages, targets), metrics = actor_critic.estimate_advantages(
      data, values, self._config, self._return_scale
    )
    steps = steps_lib.steps_of(
      data,
      action=data.extras['sample'],
      target=targets,
      advantage=advantages,
      old=old_parameters,
    )
    ratios = losses.importance_ratios(
      self._distribution.log_prob(old_parameters, steps.action),
      data.extras['log_prob'],
      mask,
    )
    return learners.to_items(steps), {
      **metrics,
      'importance_ratio': losses.masked_mean(ratios, mask),
    }

  def _metric_names(self) -> list[str]:
    """Returns the names of metrics averaged over gradient steps."""
    parts = [f'{of}_{name}' for name in self._alphas for of in ('kl', 'alpha')]
    return [
      'policy_loss', 'value_loss', 'dual_loss', 'entropy', 'temperature', 'kl',
      *parts, 'gradient_norm',
    ]  # fmt: skip

  def _descend(self, minibatch: steps_lib.Steps) -> Mapping[str, tf.Tensor]:
    """Takes a gradient step on a minibatch `[K, T, ...]`."""
    steps = learners.to_steps(minibatch)  # [T, K, ...]
    with tf.GradientTape(persistent=True) as tape:
      loss, dual_loss, metrics = self._losses(steps)
    norm = self._optimizer.minimize(tape, loss)
    self._dual_optimizer.minimize(tape, dual_loss)
    for dual in self._duals:
      dual.limit()
    return {**metrics, 'dual_loss': dual_loss, 'gradient_norm': norm}

  def _losses(
    self, steps: steps_lib.Steps
  ) -> tuple[tf.Tensor, tf.Tensor, dict[str, tf.Tensor]]:
    """Returns the network's loss, the loss of η and α, and metrics."""
    config, mask = self._config, steps.mask  # [T, K]
    advantages = steps.advantage
    if config.normalize_advantages:
      advantages = losses.standardize(advantages, mask)
    temperature = self._temperature()
    tempered = losses.vmpo_e_step(advantages, mask, temperature, config.epsilon)
    output, _ = self._online.unroll(steps.observation, steps.first, steps.state)
    log_probs = self._distribution.log_prob(output.parameters, steps.action)
    policy_loss = losses.vmpo_policy_loss(tempered.probs, log_probs, mask)
    value_loss = losses.value_loss(output.value, steps.target, mask)
    loss = policy_loss + config.baseline_cost * value_loss
    dual_loss, metrics = tempered.dual_loss, {}
    moved = self._distribution.kl(steps.old, output.parameters)
    for name, divergences in moved.items():
      kl = losses.masked_mean(divergences, mask)
      alpha = self._alphas[name]()  # [1]
      penalty, price_loss = losses.mpo_kl_loss(
        kl[None, None], alpha, getattr(config, f'epsilon_{name}')
      )
      loss += penalty
      dual_loss += price_loss
      metrics |= {f'kl_{name}': kl, f'alpha_{name}': alpha[0]}
    entropies = self._distribution.entropy(output.parameters)
    return (
      loss,
      dual_loss,
      {
        **metrics,
        'policy_loss': policy_loss,
        'value_loss': value_loss,
        'entropy': losses.masked_mean(entropies, mask),
        'temperature': temperature,
        'kl': tempered.kl,
      },
    )
