"""Builder of V-MPO."""

from repertory.agents.actor_critic import actor_critic
from repertory.agents.unrolls import unroll_queue
from repertory.agents.vmpo import config as vmpo_config
from repertory.agents.vmpo import learning
from repertory.components import distributions


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
    return learning.VMPOUpdate(online, network, distribution, self.config)
