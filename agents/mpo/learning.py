"""Builder and update of MPO."""

import sonnet as snt
import tensorflow as tf

from repertory.agents.actor_critic import exploration, policy_and_critic
from repertory.agents.mpo import action_kinds
from repertory.agents.mpo import config as mpo_config
from repertory.components import (
  interfaces,
  learners,
  losses,
  networks,
  specs,
  types,
)
from repertory.components.actions import (
  action_parts,
  action_scaling,
  discrete_actions,
)


class MPOUpdate(policy_and_critic.PolicyAndCriticUpdate):
  """MPO: TD learning of the critic; E-step and M-step for the policy.

  See https://arxiv.org/abs/1812.02256, and https://arxiv.org/abs/2006.00979 for
  a shared batch. Critics take actions scaled to [−1, 1], and have M outputs for
  each action, values or logits.
  """

  def __init__(self, online, target, actions, config):
    super().__init__(online, target, actions, config)
    if isinstance(actions, action_scaling.ActionScaling):
      kind = action_kinds.Gaussians(actions, config)
    else:
      kind = action_kinds.Categoricals(actions, config)
    self._kind = kind
    self._support = None
    if config.distribution == 'categorical':
      self._support = tf.linspace(
        float(config.vmin), float(config.vmax), config.num_atoms
      )  # [M]
    self._temperatures = {
      name: learners.DualVariable(
        config.initial_temperature, [], f'{name}temperature'
      )
      for name in kind.objectives
    }
    self._prices = {
      name: learners.DualVariable(
        getattr(config, f'initial_alpha_{name}'),
        [kind.num_prices],
        f'alpha_{name}',
      )
      for name in kind.parts
    }
    self._duals = [*self._temperatures.values(), *self._prices.values()]
    self._dual_optimizer = learners.ClippedAdam(
      [variable for dual in self._duals for variable in dual.variables],
      config.dual_learning_rate,
      config.adam_epsilon,
    )
    self._noise = learners.UpdateNoise()
    self._update_target = learners.PeriodicCopy(
      online.variables, target.variables, config.target_update_period
    )

  def _improve(self, sample, weights):
    data, kind = sample.data, self._kind
    parameters = self._target_policy(data.next_observation)  # [B, P]
    candidates = kind.propose(parameters, self._noise)
    outputs_t = kind.rate(
      self._target_critic, data.next_observation, candidates
    )
    critic_metrics, sizes = self._improve_critic(
      data, outputs_t, candidates.log_prior, weights
    )
    policy_metrics = self._improve_policy(
      data.next_observation, parameters, candidates, self._values(outputs_t)
    )
    self._update_target()
    return {**critic_metrics, **policy_metrics}, sizes

  def _improve_critic(
    self,
    data: types.Transition,
    outputs_t: tf.Tensor,
    log_prior: tf.Tensor,
    weights: tf.Tensor,
  ) -> tuple[dict, tf.Tensor]:
    """Returns metrics, and the TD error of each item, `[B]`."""
    # The adder applied γ between the rewards; this is the last factor.
    discount_t = self._config.discount * data.discount  # [B]
    if self._support is None:
      value_t = tf.reduce_sum(tf.exp(log_prior) * outputs_t[..., 0], axis=-1)
      targets = data.reward + discount_t * value_t  # [B]
    else:
      mixture = losses.categorical_mixture(outputs_t, log_prior)  # [B, M]
      targets = losses.categorical_td_targets(
        data.reward, discount_t, mixture, self._support
      )  # [B, M]
    metrics = {}
    with tf.GradientTape() as tape:
      outputs_tm1 = self._kind.rate_taken(
        self._critic, data.observation, data.action
      )  # [B, M]
      if self._support is None:
        errors = targets - outputs_tm1[:, 0]  # [B]
        losses_per_item, sizes = 0.5 * errors**2, tf.abs(errors)
        metrics['td_error'] = tf.reduce_mean(sizes)
      else:
        sizes = losses.categorical_divergence(targets, outputs_tm1)  # [B]
        losses_per_item = sizes
        # Probability at the ends of the support indicates that it is too
        # narrow.
        ends = targets[:, 0] + targets[:, -1]  # [B]
        metrics['share_at_ends'] = tf.reduce_mean(ends)
      loss = tf.reduce_mean(weights * losses_per_item)
    metrics['critic_gradient_norm'] = self._critic_optimizer.minimize(
      tape, loss
    )
    metrics['critic_loss'] = loss
    metrics['q_value'] = tf.reduce_mean(self._values(outputs_tm1))
    return metrics, sizes

  def _values(self, outputs: tf.Tensor) -> tf.Tensor:
    """Returns action values `[...]` from critic outputs `[..., M]`."""
    if self._support is None:
      return outputs[..., 0]
    return losses.categorical_mean(outputs, self._support)

  def _improve_policy(
    self,
    observation: types.Nest,
    target_parameters: tf.Tensor,
    candidates: action_kinds.Candidates,
    q: tf.Tensor,
  ) -> dict[str, tf.Tensor]:
    """Takes an E-step and a gradient step of the M-step."""
    kind, metrics = self._kind, {}
    probs = policy_loss = dual_loss = tf.zeros([])
    with tf.GradientTape(persistent=True) as tape:
      ratings = kind.ratings(candidates, q)
      for name, epsilon in kind.objectives.items():
        temperature = self._temperatures[name]()
        tempered = losses.mpo_e_step(
          ratings[name], candidates.log_prior, temperature, epsilon
        )
        probs += tempered.probs  # [B, N]
        dual_loss += tempered.dual_loss
        metrics[f'{name}temperature'] = temperature
        metrics[f'{name}kl'] = tf.reduce_mean(tempered.kl)
      parameters = self._policy(observation)
      changes = kind.changes(parameters, target_parameters, candidates)
      for name, change in changes.items():
        price = self._prices[name]()  # [D]
        penalty, price_loss = losses.mpo_kl_loss(
          change.kl, price, getattr(self._config, f'epsilon_{name}')
        )
        fit = losses.mpo_policy_loss(probs, change.log_prob)
        policy_loss += fit + penalty
        dual_loss += price_loss
        metrics[f'kl_{name}'] = tf.reduce_mean(change.kl)
        metrics[f'alpha_{name}'] = tf.reduce_mean(price)
    norm = self._policy_optimizer.minimize(tape, policy_loss)
    self._dual_optimizer.minimize(tape, dual_loss)
    for dual in self._duals:
      dual.limit()
    return {
      **metrics,
      'entropy': tf.reduce_mean(kind.entropy(parameters)),
      'policy_loss': policy_loss,
      'dual_loss': dual_loss,
      'policy_gradient_norm': norm,
    }


class MPOBuilder(policy_and_critic.PolicyAndCriticBuilder):
  """Maximum a posteriori policy optimization (MPO).

  See https://arxiv.org/abs/1812.02256. The builder's network is the policy.
  """

  config: mpo_config.MPOConfig
  update_class = MPOUpdate

  def __init__(self, config: mpo_config.MPOConfig | None = None):
    super().__init__(config)
    if self.config.distribution == 'categorical':
      self.return_bounds = self.config.vmin, self.config.vmax

  def make_network(self, spec):
    if action_parts.are_continuous(spec.actions):
      size = action_scaling.ActionScaling(spec.actions).size
      head = networks.GaussianHead(size, self.config.initial_stddev)
    else:
      actions = discrete_actions.DiscreteActions(spec.actions)
      head = networks.make_policy_head(actions.num_actions)
    return self._make_network(spec, head)

  def make_critic(self, spec: specs.EnvironmentSpec) -> snt.Module:
    """Creates a critic; also called for the target critic.

    Returns:
      A `networks.Critic` of actions in [−1, 1], or a network that maps
      observations to outputs of A discrete actions, `[B, A, M]`.
    """
    config, num_outputs = self.config, self.config.num_critic_outputs
    if action_parts.are_continuous(spec.actions):
      return networks.make_critic(
        spec,
        config.hidden_sizes,
        num_outputs,
        config.image_torso,
        'layer_norm_mlp',
      )
    num_actions = discrete_actions.DiscreteActions(spec.actions).num_actions
    return self._make_network(
      spec,
      snt.Linear(num_actions * num_outputs, name='head'),
      snt.Reshape([num_actions, num_outputs]),
    )

  def _make_network(
    self, spec: specs.EnvironmentSpec, *head: snt.Module
  ) -> snt.Module:
    body = networks.LayerNormMLP(self.config.hidden_sizes)
    return networks.make_sequential(
      spec.observations, (), self.config.image_torso, body, *head
    )

  def make_policy(self, network, acting) -> interfaces.Policy:
    if action_parts.are_continuous(acting.spec.actions):
      return exploration.make_continuous_policy(network, _draw, acting)
    return exploration.make_categorical_policy(network, acting)


def _draw(parameters: tf.Tensor, noise: tf.Tensor) -> tf.Tensor:
  mean, scale = tf.split(parameters, 2, axis=-1)  # [B, D]
  return tf.clip_by_value(mean + scale * noise, -1.0, 1.0)
