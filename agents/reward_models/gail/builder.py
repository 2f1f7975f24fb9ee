"""Builder of GAIL reward models."""

from repertory.agents.interface import builder
from repertory.agents.reward_models import rewarding, wrapping_builder
from repertory.agents.reward_models.gail import config as gail_config
from repertory.agents.reward_models.gail import learning
from repertory.components import specs
from repertory.components.transports import experience as experience_lib


class GAILBuilder(wrapping_builder.ImitatingBuilder):
  """GAIL: imitation learning by rewards of a discriminator.

  See https://arxiv.org/abs/1606.03476; with an agent with replay it is DAC,
  https://arxiv.org/abs/1809.02925, without absorbing states.
  """

  name = 'gail'

  def __init__(
    self,
    wrapped: builder.Builder,
    config: gail_config.GAILConfig | None = None,
  ):
    super().__init__(wrapped, config or gail_config.GAILConfig())

  def experience(
    self, spec: specs.EnvironmentSpec, num_environments: int
  ) -> experience_lib.Experience:
    learning.ActionEncoder(spec.actions)  # Checks the actions.
    return super().experience(spec, num_environments)

  def make_rewards(self, spec: specs.EnvironmentSpec) -> rewarding.Rewards:
    return learning.GAILRewards(spec, self.wrap_config)
