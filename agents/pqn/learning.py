"""Builder and update of PQN."""

from collections.abc import Mapping

import sonnet as snt
import tensorflow as tf

from repertory.agents.actor_critic import exploration
from repertory.agents.pqn import config as pqn_config
from repertory.agents.unrolls import steps as steps_lib
from repertory.agents.unrolls import unroll_queue
from repertory.components import (
  interfaces,
  learners,
  losses,
  networks,
  policies,
  types,
)
from repertory.components.actions import action_masks, discrete_actions


class PQNBuilder(unroll_queue.UnrollQueueBuilder):
  """Parallelized Q-network (PQN); discrete actions.

  See https://arxiv.org/abs/2407.04811.
  """

  config: pqn_config.PQNConfig
  rates_combinations = True

  def make_network(self, spec):
    config = self.config
    num_actions = discrete_actions.DiscreteActions(spec.actions).num_actions
    torso = networks.ObservationTorso(spec.observations, (), config.image_torso)
    # Layer normalization replaces the target network.
    network = networks.SequenceNetwork(
      snt.Sequential([torso, networks.NormalizedMLP(config.hidden_sizes)]),
      networks.make_core(config.core, config.core_size, **config.core_options),
      networks.make_value_head(num_actions, dueling=False),
    )
    network.create_variables(spec.observations)
    return network

  def make_policy(self, network, acting) -> interfaces.Policy:
    settings = exploration.epsilon_settings(self.config, acting)
    return policies.RecurrentEpsilonGreedyPolicy(network, **settings)

  def extras_spec(self, spec):
    return types.SequenceExtras(state=self.make_network(spec).state_spec())

  def make_update(self, network, spec):
    actions = discrete_actions.DiscreteActions(spec.actions)
    return PQNUpdate(network, self.config, actions)


class PQNUpdate(steps_lib.MinibatchUpdate):
  """Regresses Q-values onto the Q(λ) returns of the latest rollout.

  The loss of a minibatch is the masked mean of ½ (G_t − q(x_t, a_t))². G is
  computed once, by the network before the first gradient step. See
  https://arxiv.org/abs/2407.04811, algorithm 1. The network outputs action
  values.
  """

  def __init__(
    self,
    network: networks.SequenceNetwork,
    config: pqn_config.PQNConfig,
    actions: discrete_actions.DiscreteActions,
  ):
    super().__init__(network, config)
    self._network = network
    self._actions = actions

  def __call__(self, sample: types.Sample) -> interfaces.UpdateResult:
    self._anneal()
    steps, metrics = self._estimate(learners.time_major(sample.data))
    step_metrics = self._take_steps(
      self._descend, steps, ('loss', 'td_error', 'gradient_norm')
    )
    return interfaces.UpdateResult({**metrics, **step_metrics})

  def _estimate(self, data: types.Sequence) -> tuple[steps_lib.Steps, dict]:
    """Computes the returns, with the current network."""
    config, mask = self._config, data.mask  # [T, B]
    q, _ = self._network.unroll(data.observation, data.first, data.state)
    values = tf.reduce_max(q, axis=-1)  # [T + 1, B]
    discounts = config.discount * data.discount
    rewards, metrics = learners.scale_rewards(
      self._return_scale,
      data.reward,
      discounts,
      values / config.reward_scale,
      mask,
    )
    # Advantages + max_a q are the Q(λ) returns.
    _, targets = losses.generalized_advantages(
      rewards=losses.clip_rewards(
        config.reward_scale * rewards, config.max_abs_reward
      ),
      discounts=discounts,
      values=values[:-1],
      bootstrap_value=values[-1],
      mask=mask,
      lambda_=config.lambda_,
    )
    steps = steps_lib.steps_of(
      data, action=self._actions.from_action(data.action), target=targets
    )
    return learners.to_items(steps), {
      **metrics,
      'q_value': losses.masked_mean(
        action_masks.mean_allowed(q[:-1], axis=-1), mask
      ),
      'target': losses.masked_mean(targets, mask),
      'share_of_padding': 1 - tf.reduce_mean(tf.cast(mask, tf.float32)),
    }

  def _descend(self, minibatch: steps_lib.Steps) -> Mapping[str, tf.Tensor]:
    """Takes a gradient step on a minibatch `[K, T, ...]`."""
    steps = learners.to_steps(minibatch)
    with tf.GradientTape() as tape:
      q, _ = self._network.unroll(
        steps.observation, steps.first, steps.state
      )  # [T, K, A]
      chosen = tf.gather(q, steps.action, batch_dims=2)
      errors = steps.target - chosen  # [T, K]
      loss = losses.masked_mean(0.5 * errors**2, steps.mask)
    norm = self._optimizer.minimize(tape, loss)
    sizes = losses.masked_mean(tf.abs(errors), steps.mask)
    return {'loss': loss, 'td_error': sizes, 'gradient_norm': norm}
