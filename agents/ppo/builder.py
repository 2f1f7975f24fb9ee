"""Builder of PPO."""

from repertory.agents.actor_critic import actor_critic, additional_loss
from repertory.agents.ppo import config as ppo_config
from repertory.agents.ppo import learning
from repertory.agents.unrolls import unroll_queue
from repertory.components import distributions


class PPOBuilder(
  additional_loss.TakesAdditionalLoss, unroll_queue.UnrollQueueBuilder
):
  """Proximal policy optimization (PPO); discrete or continuous actions.

  See https://arxiv.org/abs/1707.06347.
  """

  config: ppo_config.PPOConfig

  def make_network(self, spec):
    config = self.config
    return actor_critic.make_network(
      spec,
      config,
      config.shared_sizes,
      config.hidden_sizes,
      config.normalize_observations,
    )

  def make_update(self, network, spec):
    distribution = distributions.make_distribution(spec.actions)
    return learning.PPOUpdate(
      network, distribution, self.config, self.given_loss
    )
