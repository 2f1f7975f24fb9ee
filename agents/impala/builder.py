"""Builder of IMPALA."""

from repertory.agents.actor_critic import actor_critic, additional_loss
from repertory.agents.impala import config as impala_config
from repertory.agents.impala import learning
from repertory.agents.unrolls import unroll_queue
from repertory.components import distributions


class IMPALABuilder(
  additional_loss.TakesAdditionalLoss, unroll_queue.UnrollQueueBuilder
):
  """IMPALA, actor-critic with V-trace; discrete or continuous actions.

  See https://arxiv.org/abs/1802.01561.
  """

  config: impala_config.IMPALAConfig

  @property
  def across_episodes(self):
    return self.config.across_episodes

  def make_network(self, spec):
    return actor_critic.make_network(
      spec, self.config, self.config.hidden_sizes
    )

  def make_update(self, network, spec):
    distribution = distributions.make_distribution(spec.actions)
    return learning.IMPALAUpdate(
      network, distribution, self.config, self.given_loss
    )
