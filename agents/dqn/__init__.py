"""DQN: double, dueling, n-step, prioritized."""

from repertory.agents.dqn.builder import DQNBuilder
from repertory.agents.dqn.config import PRESETS, DQNConfig

__all__ = ['PRESETS', 'DQNBuilder', 'DQNConfig']
