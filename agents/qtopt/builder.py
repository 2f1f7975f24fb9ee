"""Builder of QT-Opt."""

import dataclasses

from repertory.agents.actor_critic import exploration
from repertory.agents.qtopt import config as qtopt_config
from repertory.agents.qtopt import learning, networks
from repertory.agents.replay import experience_replay, transition_replay
from repertory.components import interfaces
from repertory.components.actions import action_scaling


class QTOptBuilder(transition_replay.TransitionReplayBuilder):
  """QT-Opt, Q-learning of continuous actions without a policy network.

  See https://arxiv.org/abs/1806.10293. The builder's network is the moving
  average of the Q-function, which acts.
  """

  config: qtopt_config.QTOptConfig

  def make_network(self, spec):
    return networks.make_network(spec, self.config)

  def make_policy(self, network, acting) -> interfaces.Policy:
    return exploration.make_deterministic_policy(
      networks.make_action_network(network, acting.spec, self.config),
      self.config.sigma,
      acting,
      self.config.num_random_steps,
    )

  def make_update(self, network, spec):
    update = learning.QTOptUpdate(
      self.make_network(spec),
      network,
      self.make_network(spec),
      action_scaling.ActionScaling(spec.actions),
      self.config,
    )
    return experience_replay.in_series(update, self.config)

  def make_bellman_updater(self, spec):
    return learning.QTOptBellmanUpdater(
      learning.Targets(
        self.make_network(spec),
        self.make_network(spec),
        action_scaling.ActionScaling(spec.actions),
        self.config,
      )
    )

  def experience(self, spec, num_environments):
    config = self.config
    if config.train_buffer_size is None:
      return super().experience(spec, num_environments)
    # Bellman updaters sample one batch of transitions at a time, less often by
    # the number of samples per target.
    updater_config = dataclasses.replace(
      config,
      samples_per_insert=config.samples_per_insert / config.samples_per_target,
      num_sgd_steps_per_step=1,
    )
    experience = experience_replay.describe(
      updater_config, self.transitions, spec, num_environments
    )
    item = experience.table.signature
    return experience.with_bellman_updaters(
      ((item.observation, item.action), item.reward),
      config.train_buffer_size,
      config.samples_per_target,
      config.items_per_step,
      {
        'max_size': 'train_buffer_size',
        'min_size': 'batch_size',
        'samples_per_insert': 'samples_per_target',
      },
    )
