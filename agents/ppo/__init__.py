"""PPO: actor-critic that learns several times from what it just did."""

from repertory.agents.ppo.builder import PPOBuilder
from repertory.agents.ppo.config import PRESETS, PPOConfig

__all__ = ['PRESETS', 'PPOBuilder', 'PPOConfig']
