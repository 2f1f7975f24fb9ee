"""Builder of RND reward models."""

from repertory.agents.interface import builder
from repertory.agents.reward_models import rewarding, wrapping_builder
from repertory.agents.reward_models.rnd import config as rnd_config
from repertory.agents.reward_models.rnd import learning
from repertory.components import specs


class RNDBuilder(wrapping_builder.WrappingBuilder):
  """RND: exploration by intrinsic rewards for novel observations.

  See https://arxiv.org/abs/1810.12894.
  """

  name = 'rnd'

  def __init__(
    self,
    wrapped: builder.Builder,
    config: rnd_config.RNDConfig | None = None,
  ):
    super().__init__(wrapped, config or rnd_config.RNDConfig())

  def make_rewards(self, spec: specs.EnvironmentSpec) -> rewarding.Rewards:
    return learning.RNDRewards(spec.observations, self.wrap_config)
