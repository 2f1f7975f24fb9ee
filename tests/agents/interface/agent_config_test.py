"""Tests of `agents/interface/agent_config.py`."""

import dataclasses
from typing import Any

import pytest

from repertory.agents.interface import agent_config, registry
from repertory.agents.replay import replay_config
from repertory.agents.unrolls import unroll_config
from repertory.components.config import settings
from support.agents import known_agents


@dataclasses.dataclass(frozen=True)
class _Config(agent_config.AgentConfig):
  batch_size: int = 4
  discount: float = 0.9
  learning_rate: float = 0.1
  own: int = 3


@pytest.mark.parametrize(
  ('name', 'value', 'expected'),
  [
    ('batch_size', 0, 'at least 1'),
    ('batch_size', 1.5, 'an integer'),
    ('discount', 1.1, r'in \[0, 1\]'),
    ('learning_rate', 0.0, 'positive'),
    ('prefetch', -1, 'at least 0'),
    ('variable_update_period', 0, 'at least 1'),
    ('jit_compile', 1, 'True or False or None'),
    ('own', 'x', 'an integer'),
  ],
)
def test_refuses(name, value, expected):
  with pytest.raises(ValueError, match=f'^{name} must be {expected}, got'):
    _Config(**{name: value})


def test_takes_the_ends():
  _Config(batch_size=1, discount=0.0, prefetch=0, variable_update_period=1)


def test_asks_for_what_has_no_default():
  make_silent: Any = agent_config.AgentConfig
  with pytest.raises(
    TypeError, match="'batch_size', 'discount', and 'learning_rate'"
  ):
    make_silent()


@pytest.mark.parametrize('name', [agent.name for agent in registry.agents()])
def test_no_agent_repeats_a_field(name):
  """Except to change the default or its source."""
  config_class = registry.get(name).config_class
  inherited = {
    setting.name: setting for setting in settings.describe(config_class)
  }
  for base in filter(dataclasses.is_dataclass, config_class.__mro__[1:]):
    for setting in settings.describe(base):
      if setting.name in config_class.__annotations__:
        # Removed fields are not fields.
        assert setting != inherited.get(setting.name)


@pytest.mark.parametrize('name', known_agents.learning_from('replay'))
def test_replay_agents_share_their_settings(name):
  config_class = registry.get(name).config_class
  assert issubclass(config_class, replay_config.ReplayConfig)


@pytest.mark.parametrize('name', known_agents.learning_from('unrolls'))
def test_unroll_agents_share_their_settings(name):
  config_class = registry.get(name).config_class
  assert issubclass(config_class, unroll_config.UnrollConfig)
