"""TD3 in one file: https://arxiv.org/abs/1802.09477, algorithm 1."""

import dataclasses
import sys

import sonnet as snt
import tensorflow as tf

from repertory import launch
from repertory.agents.actor_critic import exploration
from repertory.agents.interface import agent_config, builder
from repertory.agents.replay import experience_replay
from repertory.components import adders, interfaces, learners, losses, networks
from repertory.components.actions import action_scaling
from repertory.environments.registry import registry


@dataclasses.dataclass(frozen=True)
class TD3Config(agent_config.AgentConfig):
  batch_size: int = 256
  discount: float = 0.99
  learning_rate: float = 1e-3
  hidden_sizes: tuple[int, ...] = (256, 256)
  num_random_steps: int = 1_000
  exploration_noise: float = 0.1
  target_noise: float = 0.2
  noise_clip: float = 0.5
  policy_period: int = 2
  tau: float = 0.005
  max_replay_size: int = 100_000
  min_replay_size: int = 1_000
  samples_per_insert: float = 256.0  # One learner step per environment step.


class TD3Update(interfaces.Update):
  def __init__(self, online, target, scaling, config):
    """Takes pairs of a policy and critics: online and target networks."""
    super().__init__()
    self._policy, self._critics = online
    self._target_policy, self._target_critics = target
    self._scaling, self._config = scaling, config
    self._policy_optimizer, self._critic_optimizer = (
      learners.ClippedAdam(network.trainable_variables, config.learning_rate)
      for network in online
    )
    self._noise = learners.UpdateNoise()
    self._update_targets = learners.SoftUpdate(online, target, config.tau)
    self._delayed = learners.DelayedUpdate(
      self._improve_policy, ['policy_loss', 'policy_norm'], config.policy_period
    )

  @property
  def exports(self):
    return {'policy': self._policy.variables}

  def __call__(self, sample):
    data, config = sample.data, self._config
    action_tm1 = self._scaling.from_action(data.action)  # [B, D]
    noise = config.target_noise * self._noise.normals(action_tm1.shape)
    noise = tf.clip_by_value(noise, -config.noise_clip, config.noise_clip)
    action_t = self._target_policy(data.next_observation) + noise  # [B, D]
    action_t = tf.clip_by_value(action_t, -1.0, 1.0)
    q_t = self._target_critics(data.next_observation, action_t)  # [B, 2]
    discount_t = config.discount * data.discount  # [B]
    targets = losses.clipped_double_q_targets(data.reward, discount_t, q_t)
    with tf.GradientTape() as tape:
      q_tm1 = self._critics(data.observation, action_tm1)  # [B, 2]
      loss = tf.reduce_mean((targets[:, None] - q_tm1) ** 2)
    norm = self._critic_optimizer.minimize(tape, loss)
    metrics = {'critic_loss': loss, 'critic_norm': norm}
    return interfaces.UpdateResult(metrics | self._delayed(data.observation))

  def _improve_policy(self, observation):
    with tf.GradientTape() as tape:
      q = self._critics(observation, self._policy(observation))  # [B, 2]
      loss = -tf.reduce_mean(q[:, 0])
    norm = self._policy_optimizer.minimize(tape, loss)
    self._update_targets()
    return {'policy_loss': loss, 'policy_norm': norm}


class TD3Builder(builder.Builder):
  def make_network(self, spec):
    size = action_scaling.ActionScaling(spec.actions).size
    sizes = self.config.hidden_sizes
    torso = networks.ObservationTorso(spec.observations, sizes)
    policy = snt.Sequential([torso, snt.Linear(size), tf.tanh])
    networks.create_variables(policy, spec.observations)
    return policy

  def make_policy(self, network, acting):
    sigma, steps = self.config.exploration_noise, self.config.num_random_steps

    def choose(action, noise):
      return tf.clip_by_value(action + sigma * noise, -1.0, 1.0)

    return exploration.make_continuous_policy(network, choose, acting, steps)

  def make_update(self, network, spec):
    sizes = self.config.hidden_sizes
    online = network, networks.make_critic(spec, sizes, num_critics=2)
    target = (
      self.make_network(spec),
      networks.make_critic(spec, sizes, num_critics=2),
    )
    scaling = action_scaling.ActionScaling(spec.actions)
    return TD3Update(online, target, scaling, self.config)

  def experience(self, spec, num_environments):
    items = adders.Transitions(n_step=1, discount=self.config.discount)
    return experience_replay.describe_uniform(
      self.config, items, spec, num_environments
    )


if __name__ == '__main__':
  experiment = launch.Experiment(
    builder=TD3Builder(TD3Config()),
    environment_factory=registry.make_factory('gym:Pendulum-v1'),
    max_steps=20_000,
    directory=(sys.argv[1:] or ['runs/td3'])[0],
  )
  print(launch.run(experiment).status.evaluation_return)
