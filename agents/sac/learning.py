"""Builder and update of SAC."""

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import sonnet as snt
import tensorflow as tf
import tree

from repertory.agents.actor_critic import additional_loss as additional
from repertory.agents.actor_critic import exploration, policy_and_critic
from repertory.agents.replay import experience_replay
from repertory.agents.sac import config as sac_config
from repertory.components import (
  distributions,
  interfaces,
  learners,
  losses,
  networks,
  specs,
  types,
)
from repertory.components.actions import (
  action_masks,
  action_parts,
  action_scaling,
  discrete_actions,
)
from repertory.components.runtime import data_parallel

# Metrics of a step of the policy.
_POLICY_METRICS = (
  'policy_loss', 'entropy', 'temperature', 'policy_gradient_norm',
)  # fmt: skip
# Target entropy of discrete actions, relative to that of a uniform policy.
_TARGET_SHARE = 0.98


class SACBuilder(experience_replay.TransitionReplayBuilder):
  """Soft actor-critic (SAC) with a learned temperature.

  See https://arxiv.org/abs/1812.05905. The builder's network is the policy; the
  update creates the critics.
  """

  config: sac_config.SACConfig
  takes_additional_loss = True

  def __init__(self, config: sac_config.SACConfig | None = None):
    super().__init__(config)
    bodies = self.config.body, self.config.critic_layers[0]
    self.needs_whole_batches = 'batch_renorm_mlp' in bodies

  def make_network(self, spec):
    config = self.config
    if action_parts.are_continuous(spec.actions):
      size = action_scaling.ActionScaling(spec.actions).size
      num_outputs = distributions.SquashedGaussian(size).num_parameters
    else:
      config.check_discrete()
      actions = discrete_actions.DiscreteActions(spec.actions)
      num_outputs = actions.num_actions
    return networks.make_sequential(
      spec.observations,
      config.hidden_sizes,
      config.image_torso,
      snt.Linear(num_outputs, name='head'),
      body=config.body,
    )

  def make_critics(self, spec: specs.EnvironmentSpec) -> networks.Critic:
    """Creates critics; also called for the target critics."""
    config = self.config
    body, sizes = config.critic_layers
    return networks.make_critic(
      spec,
      sizes,
      config.num_critic_outputs,
      config.image_torso,
      body,
      config.num_critics,
    )

  def make_discrete_critics(self, spec: specs.EnvironmentSpec) -> snt.Module:
    """Creates critics of discrete actions; also called for target critics."""
    return DiscreteCritics(spec, self.config)

  def make_policy(self, network, acting) -> interfaces.Policy:
    num_random_steps = self.config.num_random_steps
    if not action_parts.are_continuous(acting.spec.actions):
      return exploration.make_categorical_policy(
        network, acting, num_random_steps
      )
    size = action_scaling.ActionScaling(acting.spec.actions).size
    distribution = distributions.SquashedGaussian(size)
    return exploration.make_continuous_policy(
      network,
      lambda parameters, noise: distribution.sample(parameters, noise)[0],
      acting,
      num_random_steps,
      self.config.noise_correlation,
    )

  def make_update(self, network, spec):
    is_continuous = action_parts.are_continuous(spec.actions)
    make = self.make_critics if is_continuous else self.make_discrete_critics
    has_targets = self.config.target_update_rate is not None
    update = SACUpdate(
      policy_and_critic.Networks(network, make(spec)),
      make(spec) if has_targets else None,
      spec.actions,
      self.config,
      self.additional_loss,
    )
    return experience_replay.in_series(update, self.config)


class DiscreteCritics(snt.Module):
  """Ensemble of independent critics of discrete actions."""

  def __init__(self, spec: specs.EnvironmentSpec, config: sac_config.SACConfig):
    super().__init__(name='critics')
    num_actions = discrete_actions.DiscreteActions(spec.actions).num_actions
    self._shape = [-1, config.num_critics, num_actions]
    body, sizes = config.critic_layers
    self._critics = networks.Critic(
      spec.observations,
      sizes,
      num_actions,
      config.image_torso,
      body,
      config.num_critics,
    )
    networks.create_variables(self, spec.observations)

  def __call__(self, observation: types.Nest) -> tf.Tensor:
    """Maps observations `[B, ...]` to values `[B, A, N]`."""
    values = tf.reshape(self._critics(observation), self._shape)  # [B, N, A]
    return tf.transpose(values, [0, 2, 1])


class Temperature(tf.Module):
  """Temperature α, parameterized by log α; rises while entropy is below H̄."""

  def __init__(self, config: sac_config.SACConfig):
    super().__init__()
    initial = tf.constant(math.log(config.initial_temperature), tf.float32)
    self._log_temperature = tf.Variable(initial, name='log_temperature')
    self._optimizer = learners.ClippedAdam(
      [self._log_temperature],
      config.temperature_learning_rate,
      config.adam_epsilon,
      config.max_gradient_norm,
    )

  def __call__(self) -> tf.Tensor:
    """Returns α, a scalar."""
    return tf.exp(self._log_temperature)

  def improve(
    self, log_prob: tf.Tensor, target_entropy: float | tf.Tensor
  ) -> None:
    """Takes a gradient step, given log π of the policy's actions, `[B]`.

    The target entropy H̄ is a number or `[B]`.
    """
    with tf.GradientTape() as tape:
      loss = losses.temperature_loss(self(), log_prob, target_entropy)
    self._optimizer.minimize(tape, loss)


class Values:
  """Values of N critics, scalars or the means of K quantiles of each (TQC).

  Targets are the minimum of scalars, of random critics if they are fewer; or
  quantiles without the largest: https://arxiv.org/abs/2005.04269. Outputs of
  all critics are concatenated; scalars of discrete actions have a further axis,
  `[B, A, N]`.
  """

  def __init__(self, config: sac_config.SACConfig, noise: learners.UpdateNoise):
    self._config = config
    self._noise = noise

  def of_target(self, outputs: tf.Tensor) -> tf.Tensor:
    """Returns next-state values for targets, `[B, M]`, from `[B, N K]`."""
    if self._config.num_quantiles is not None:
      dropped = self._config.num_dropped_quantiles
      return losses.truncated_quantiles(self._split(outputs), dropped)
    return tf.reduce_min(self._drawn(outputs), axis=-1, keepdims=True)

  def of_policy(self, outputs: tf.Tensor) -> tf.Tensor:
    """Returns values for the policy loss, `[B]`, from outputs `[B, N K]`."""
    if self._config.critics_of_policy == 'mean':
      return tf.reduce_mean(outputs, axis=-1)
    return tf.reduce_min(outputs, axis=-1)

  def of_each(self, outputs: tf.Tensor) -> tf.Tensor:
    """Returns the value of each critic, `[B, N]`, from outputs `[B, N K]`."""
    if self._config.num_quantiles is None:
      return outputs
    return tf.reduce_mean(self._split(outputs), axis=-1)

  def errors(
    self, outputs: tf.Tensor, targets: tf.Tensor
  ) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns losses, summed over critics, and mean absolute errors, `[B]`.

    Outputs are `[B, N K]`, targets `[B, M]`.
    """
    if self._config.num_quantiles is None:
      errors = targets - outputs  # [B, N]
      losses_per_item = 0.5 * tf.reduce_sum(errors**2, axis=-1)
      return losses_per_item, tf.reduce_mean(tf.abs(errors), axis=-1)
    taus = losses.quantile_midpoints(self._config.num_quantiles)[None]  # [1, K]
    critic_losses = [
      losses.quantile_huber(quantiles, taus, targets, threshold=1.0)
      for quantiles in tf.unstack(self._split(outputs), axis=1)
    ]  # N times [B]
    mean = tf.reduce_mean(targets, axis=-1, keepdims=True)  # [B, 1]
    errors = mean - self.of_each(outputs)  # [B, N]
    return tf.add_n(critic_losses), tf.reduce_mean(tf.abs(errors), axis=-1)

  def _split(self, outputs: tf.Tensor) -> tf.Tensor:
    config = self._config
    shape = [-1, config.num_critics, config.num_critic_outputs]
    return tf.reshape(outputs, shape)  # [B, N, K]

  def _drawn(self, q: tf.Tensor) -> tf.Tensor:
    """Returns values `[B, M]` of random critics, from `[B, N]` of all."""
    number = self._config.num_target_critics
    if number in (None, self._config.num_critics):
      return q
    keys = tf.random.stateless_uniform([q.shape[-1]], self._noise.seed())
    return tf.gather(q, tf.argsort(keys)[:number], axis=-1)


class Sampled(NamedTuple):
  """Actions of the policy in states, `[B, D]`, or P in each, `[B, P, D]`.

  Attributes:
    action: In [−1, 1]; or the probabilities of discrete actions, `[B, A]`.
    log_prob: Log-densities of their sampling distributions, `[B]` or `[B, P]`;
      or Σ_a π log π of discrete actions, `[B]`.
  """

  action: tf.Tensor
  log_prob: tf.Tensor


class SACUpdate(experience_replay.ReplayUpdate):
  """SAC: updates critics, policy and temperature, in this order.

  See https://arxiv.org/abs/1812.05905, algorithm 1. Critics and log-densities
  are of actions scaled to [−1, 1]; critics have outputs `[B, N K]`. Without
  target critics, current and next states form one batch (CrossQ):
  https://arxiv.org/abs/1902.05605, section 3.

  Expectations over discrete actions are sums over all of them instead of
  samples: https://arxiv.org/abs/1910.07207, section 3. Then the policy has
  logits `[B, A]`, and critics map observations to values `[B, A, N]`.
  """

  def __init__(
    self,
    online: policy_and_critic.Networks,
    target_critics: snt.Module | None,
    action_spec: types.Nest,
    config: sac_config.SACConfig,
    additional_loss: additional.AdditionalLoss | None = None,
  ):
    super().__init__(online.policy, config)
    self._online = online
    self._target_critics = target_critics
    self._additional_loss = additional_loss
    self._distribution: Any = None  # None for discrete actions.
    self._actions: Any
    if action_parts.are_continuous(action_spec):
      self._actions = action_scaling.ActionScaling(action_spec)
      size = self._actions.size
      self._distribution = distributions.SquashedGaussian(size)
    else:
      self._actions = discrete_actions.DiscreteActions(action_spec)
    self._temperature = Temperature(config)
    decay = config.adam_first_decay
    self._policy_optimizer = learners.ClippedAdam.from_config(
      online.policy, config, config.policy_learning_rate, first_decay=decay
    )
    self._critic_optimizer = learners.ClippedAdam.from_config(
      online.critic, config, first_decay=decay
    )
    self._noise = learners.UpdateNoise()
    self._values = Values(config, self._noise)
    self._update_target = None
    if target_critics is not None and config.target_update_rate is not None:
      self._update_target = learners.SoftUpdate(
        online.critic.variables,
        target_critics.variables,
        config.target_update_rate,
      )
    self._improve_policy_in_turn: Callable = self._improve_policy
    if config.policy_update_period > 1:
      self._improve_policy_in_turn = learners.DelayedUpdate(
        self._improve_policy, _POLICY_METRICS, config.policy_update_period
      )

  @property
  def learned(self):
    variables = [*self._online.critic.variables]
    if self._target_critics is not None:
      variables += self._target_critics.variables
    statistics = [v for v in variables if not v.trainable]
    return {**super().learned, 'statistics': statistics}

  def _improve(self, sample, weights):
    data = sample.data
    noise_t = noise_tm1 = tf.zeros([])
    if self._distribution is not None:
      # For actions of the next and the current states.
      shape = [2, tf.shape(data.reward)[0], self._actions.size]
      noise_t, noise_tm1 = tf.unstack(self._noise.normals(shape))  # [B, D]
    critic_metrics, sizes = self._improve_critics(sample, noise_t, weights)
    policy_metrics = self._improve_policy_in_turn(sample, noise_tm1)
    if self._update_target is not None:
      self._update_target()
    return additional.merge(critic_metrics, policy_metrics), sizes

  def _act(self, observation: types.Nest, noise: tf.Tensor) -> Sampled:
    parameters = data_parallel.split_rows(self._online.policy)(observation)
    if self._distribution is not None:
      return Sampled(*self._distribution.sample(parameters, noise))
    log_probs = tf.nn.log_softmax(parameters)  # [B, A]
    probabilities = tf.exp(log_probs)
    return Sampled(
      probabilities, tf.reduce_sum(probabilities * log_probs, axis=-1)
    )

  def _rate(
    self, critics: Any, observation: types.Nest, action: tf.Tensor
  ) -> tf.Tensor:
    """Returns outputs for actions `[B, N K]`, or all discrete `[B, A, N]`."""
    critics = data_parallel.split_rows(critics)
    if self._distribution is None:
      return critics(observation)
    return critics(observation, action, *self._dropout(action))

  def _mean(self, values: tf.Tensor, action: tf.Tensor) -> tf.Tensor:
    """Returns Σ_a π q of discrete values `[B, A, ...]`; others as they are."""
    if self._distribution is not None:
      return values
    shape = [-1, action.shape[1]] + [1] * (values.shape.rank - 2)
    return tf.reduce_sum(tf.reshape(action, shape) * values, axis=1)

  def _improve_critics(
    self, sample: types.Sample, noise_t: tf.Tensor, weights: tf.Tensor
  ) -> tuple[dict[str, tf.Tensor], tf.Tensor]:
    """Returns metrics, and the absolute TD error of each item, `[B]`."""
    data = sample.data
    action_tm1 = self._actions.from_action(data.action)  # [B, D] or [B]
    following = self._act(data.next_observation, noise_t)
    temperature = self._temperature()
    proposals = self._propose(data)
    metrics = {}
    with tf.GradientTape() as tape:
      q_tm1, q_t = self._rate_both(data, action_tm1, following.action)
      targets = losses.soft_q_targets(
        r_t=data.reward,
        # The adder applied γ between the rewards; this is the last factor.
        discount_t=self._config.discount * data.discount,
        q_t=self._mean(self._values.of_target(q_t), following.action),
        log_prob_t=following.log_prob,
        temperature=temperature,
      )  # [B, M]
      taken = q_tm1  # [B, N K]
      if self._distribution is None:
        taken = tf.gather(q_tm1, action_tm1, batch_dims=1)
      losses_per_item, sizes = self._values.errors(taken, targets)
      total = loss = tf.reduce_mean(weights * losses_per_item)
      if proposals is not None:
        gaps = self._gaps(data.observation, q_tm1, proposals)  # [B, N]
        gap = tf.reduce_mean(weights * tf.reduce_sum(gaps, axis=-1))
        total = loss + self._config.conservative_weight * gap
        metrics['conservative_gap'] = tf.reduce_mean(gaps)
      added, added_metrics = additional.evaluate(
        self._additional_loss, self._online, sample
      )
      total += added
    norm = self._critic_optimizer.minimize(tape, total)
    metrics |= {
      'critic_loss': loss,
      'td_error': tf.reduce_mean(sizes),
      'q_value': action_masks.mean_allowed(q_tm1),
      'critic_gradient_norm': norm,
    }
    return additional.merge(metrics, added_metrics), sizes

  def _rate_both(
    self, data: types.Transition, action_tm1: tf.Tensor, action_t: tf.Tensor
  ) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns outputs for current and next actions, see `_rate`."""
    critics = self._online.critic
    if self._target_critics is None:
      both = tree.map_structure(
        lambda *leaves: tf.concat(leaves, axis=0),
        (data.observation, action_tm1),
        (data.next_observation, action_t),
      )  # [2 B, ...]
      with networks.batch_statistics():
        outputs = critics(*both, *self._dropout(both[1]))  # [2 B, N K]
      return tuple(tf.split(outputs, 2))
    q_t = self._rate(self._target_critics, data.next_observation, action_t)
    with networks.batch_statistics():
      return self._rate(critics, data.observation, action_tm1), q_t

  def _propose(self, data: types.Transition) -> Sampled | None:
    """CQL: samples actions uniformly, and from the policy in both states.

    There are P of each in three blocks, for current and next states:
    https://arxiv.org/abs/2006.04779, appendix F.
    """
    if self._config.conservative_weight is None:
      return None
    number, size = self._config.num_conservative_actions, self._actions.size
    policy = data_parallel.split_rows(self._online.policy)
    both = policy(data.observation), policy(data.next_observation)
    batch_size = tf.shape(both[0])[0]
    actions = [2 * self._noise.uniforms([batch_size, number, size]) - 1]
    log_probs = [tf.fill([batch_size, number], -size * math.log(2))]
    for parameters in both:
      action, log_prob = self._distribution.sample(
        tf.repeat(parameters, number, axis=0),
        self._noise.normals([batch_size * number, size]),
      )
      actions.append(tf.reshape(action, [-1, number, size]))
      log_probs.append(tf.reshape(log_prob, [-1, number]))
    return Sampled(tf.concat(actions, axis=1), tf.concat(log_probs, axis=1))

  def _gaps(
    self, observation: types.Nest, q_tm1: tf.Tensor, proposals: Sampled
  ) -> tf.Tensor:
    """Returns the CQL regularizers of each item and critic, `[B, N]`."""
    action = proposals.action  # [B, P, D]
    outputs = self._rate(self._online.critic, observation, action)
    q = tf.reshape(
      self._values.of_each(outputs),
      [-1, action.shape[1], self._config.num_critics],
    )  # [B, P, N]
    gaps = [
      losses.conservative_q_loss(of_one, proposals.log_prob, q_data)
      for of_one, q_data in zip(
        tf.unstack(q, axis=-1), tf.unstack(self._values.of_each(q_tm1), axis=-1)
      )
    ]
    return tf.stack(gaps, axis=-1)

  def _dropout(self, action: tf.Tensor) -> Sequence[tf.Tensor]:
    """Returns new dropout masks of the critics' layers, if any, of mean 1.

    They are `[B, N, S]` for actions `[B, D]`, and `[B, P, N, S]` for actions
    `[B, P, D]`.
    """
    rate = self._config.dropout_rate
    if not rate:
      return []
    _, sizes = self._config.critic_layers
    rows = tf.unstack(tf.shape(action)[:-1])
    uniforms = self._noise.uniforms(
      [*rows, self._config.num_critics, sum(sizes)]
    )
    return [tf.cast(uniforms >= rate, tf.float32) / (1 - rate)]

  def _improve_policy(
    self, sample: types.Sample, noise: tf.Tensor
  ) -> dict[str, tf.Tensor]:
    """Updates policy and temperature."""
    observation, alpha = sample.data.observation, self._temperature()
    with tf.GradientTape() as tape:
      with networks.batch_statistics():
        action, log_prob = self._act(observation, noise)
      q = self._rate(self._online.critic, observation, action)
      value = self._mean(self._values.of_policy(q), action)  # [B]
      loss = losses.soft_policy_loss(value, log_prob, alpha)
      # Its metrics are logged by the critics' step.
      added, _ = additional.evaluate(
        self._additional_loss, self._online, sample
      )
      total = loss + added
    # The gradient step changes only the policy, not the critics.
    norm = self._policy_optimizer.minimize(tape, total)
    self._temperature.improve(log_prob, self._target_entropy(q))
    return {
      'policy_loss': loss,
      'entropy': -tf.reduce_mean(log_prob),
      'temperature': alpha,
      'policy_gradient_norm': norm,
    }

  def _target_entropy(self, q: tf.Tensor) -> float | tf.Tensor:
    """Returns H̄, which for discrete actions depends on how many are allowed.

    Values are `[B, N K]`, or `[B, A, N]` of discrete actions.
    """
    if self._config.target_entropy is not None:
      return self._config.target_entropy
    if self._distribution is not None:
      return -float(self._actions.size)
    allowed = tf.cast(action_masks.is_allowed(q[..., 0]), tf.float32)
    return _TARGET_SHARE * tf.math.log(tf.reduce_sum(allowed, axis=-1))  # [B]
