"""Tests of custom agents by import path."""

import re
from typing import Any

import pytest

from repertory.agents import dqn, r2d2
from repertory.agents.interface import builder, registry, user_agents
from repertory.components.config import settings as settings_lib

_OWN = """
  import dataclasses
  from typing import Any, Literal
  from repertory.agents import dqn
  from repertory.agents.interface import agent_config, builder
  from repertory.components.config import settings

  @dataclasses.dataclass(frozen=True)
  class OwnConfig(dqn.DQNConfig):
    n_step: int = settings.field(2, 'How far it sees.')
    mood: Literal['calm', 'wild'] = 'calm'
    table: dict = dataclasses.field(default_factory=lambda: {'a': 1})

  class Own(dqn.DQNBuilder):
    '''DQN, in a mood.

    More of it.
    '''
    config: OwnConfig

  class ByConstructor(dqn.DQNBuilder):
    def __init__(self, config: OwnConfig | None = None):
      super().__init__(config or OwnConfig())

  class Wilder(ByConstructor):
    pass

  class Wide(dqn.DQNBuilder):
    def make_network(self, spec):
      return super().make_network(spec)

  PRESETS = {'wild': {'mood': 'wild', 'n_step': 5}}

  @dataclasses.dataclass(frozen=True)
  class BareConfig(agent_config.AgentConfig):
    size: int = 3

  class Bare(dqn.DQNBuilder):
    config: BareConfig
    def __init__(self, config: BareConfig):
      self.config = config
"""


@pytest.fixture(autouse=True)
def _own_agent(write_module):
  write_module('own_agent', _OWN)


class TestFind:
  def test_config_is_what_the_class_says(self):
    agent = registry.get('own_agent:Own')
    assert agent.name == 'own_agent:Own'
    assert agent.description == 'DQN, in a mood.'
    assert agent.config_class.__name__ == 'OwnConfig'
    assert agent.builder_class.__name__ == 'Own'
    assert agent.presets == {'wild': {'mood': 'wild', 'n_step': 5}}

  @pytest.mark.parametrize('name', ['ByConstructor', 'Wilder'])
  def test_config_is_what_the_constructor_says(self, name):
    made = registry.make_builder(f'own_agent:{name}', {'mood': 'wild'})
    assert type(made).__name__ == name
    assert made.config.mood == 'wild'

  def test_config_is_inherited(self):
    agent = registry.get('own_agent:Wide')
    assert agent.config_class is dqn.DQNConfig
    made = registry.make_builder('own_agent:Wide', {'n_step': '4'})
    assert made.config == dqn.DQNConfig(n_step=4)

  @pytest.mark.parametrize('agent', registry.agents(), ids=lambda a: a.name)
  def test_baseline_agents_say_it(self, agent):
    builder = agent.builder_class
    found = user_agents.find(f'{builder.__module__}:{builder.__qualname__}')
    assert found.builder_class is builder
    assert found.config_class is agent.config_class


class TestMake:
  def make(self, settings, preset=None, name='Own'):
    return registry.make_builder(f'own_agent:{name}', settings, preset).config

  def test_settings(self):
    config = self.make({'mood': 'wild', 'learning_rate': '1e-2'})
    assert type(config).__name__ == 'OwnConfig'
    assert (config.n_step, config.mood) == (2, 'wild')
    assert (config.learning_rate, config.table) == (1e-2, {'a': 1})
    assert self.make({'table': {'b': 2}}).table == {'b': 2}

  def test_preset(self):
    assert self.make({}, 'wild').n_step == 5
    config = self.make({'n_step': '7'}, 'wild')
    assert (config.n_step, config.mood) == (7, 'wild')
    with pytest.raises(
      ValueError, match=r"be one of auto, none, wild; .*mean 'wild'"
    ):
      self.make({}, 'wilt')

  @pytest.mark.parametrize(
    ('settings', 'expected'),
    [
      ({'moood': 'wild'}, "agent 'own_agent:Own'. Did you mean 'mood'?"),
      ({'mood': 'sad'}, 'must be one of calm, wild, got'),
      ({'table': '{}'}, "must be of type dict, got '{}'."),
      ({'n_step': '0'}, 'n_step must be at least 1'),
    ],
  )
  def test_wrong_settings(self, settings, expected):
    with pytest.raises(settings_lib.SettingError, match=re.escape(expected)):
      self.make(settings)

  def test_settings_without_default(self):
    given = {'batch_size': '8', 'discount': '0.9'}
    with pytest.raises(
      settings_lib.SettingError, match=r'config.learning_rate must be given'
    ):
      self.make(given, name='Bare')
    config = self.make({**given, 'learning_rate': '1'}, name='Bare')
    assert (config.batch_size, config.size) == (8, 3)

  def test_types_that_are_texts(self, write_module):
    write_module('own_agent', f'\n  from __future__ import annotations{_OWN}')
    config = self.make({'n_step': '3', 'mood': 'wild', 'hidden_sizes': '1,2'})
    assert (config.n_step, config.hidden_sizes) == (3, (1, 2))
    with pytest.raises(ValueError, match="must be of type int, got 'x'"):
      self.make({'n_step': 'x'})


_WRONG = """
  from repertory.agents import dqn
  from repertory.agents.interface import agent_config, builder

  def make(config): pass

  class NoBuilder: pass

  class Abstract(builder.Builder):
    config: dqn.DQNConfig
    def make_network(self, spec): pass

  class Silent(builder.Builder):
    def make_network(self, spec): pass
    def make_policy(self, network, acting): pass
    def make_update(self, network, spec): pass
    def experience(self, spec, num_environments): pass

  class Undecorated(dqn.DQNConfig):
    mood: int = 3

  class OfUndecorated(dqn.DQNBuilder):
    config: Undecorated

  class Demanding(dqn.DQNBuilder):
    def __init__(self, config: dqn.DQNConfig, size):
      super().__init__(config)

  class Unknown(dqn.DQNBuilder):
    config: 'Unheard'
"""


class TestWrong:
  @pytest.mark.parametrize(
    ('thing', 'expected'),
    [
      ('own_wrongs:make', ["no module 'own_wrongs'", "'own_wrong'?"]),
      ('own_wrong:OfUndecoratd', ["Did you mean 'OfUndecorated'"]),
      ('own_wrong:make', ['a subclass of repertory.', 'a function, make']),
      ('own_wrong:NoBuilder', ['a subclass of', 'found a type, NoBuilder']),
      ('own_wrong:Abstract', ['implements experience, make_policy, make_upd']),
      ('own_wrong:Demanding', ['Demanding(config)', "argument: 'size'"]),
      ('own_wrong:Silent', ['Silent to declare its config', 'no declaration.']),
      ('own_wrong:OfUndecorated', ['a frozen dataclass', 'Undecorated']),
      ('own_wrong:Unknown', ["NameError: name 'Unheard' is not defined"]),
    ],
  )
  def test_is_refused(self, write_module, thing, expected):
    write_module('own_wrong', _WRONG)
    with pytest.raises(settings_lib.SettingError) as raised:
      registry.get(thing)
    assert raised.value.setting == 'agent'
    for part in (f"got '{thing}', but ", *expected):
      assert part in str(raised.value)

  @pytest.mark.parametrize('presets', ['[1]', "{'wild': 3}"])
  def test_presets(self, write_module, presets):
    write_module('own_agent', f'{_OWN}\n  PRESETS = {presets}')
    with pytest.raises(settings_lib.SettingError, match='PRESETS to be a dict'):
      registry.get('own_agent:Own')

  def test_module_raises(self, write_module):
    write_module('own_broken', 'import unheard_of')
    with pytest.raises(ValueError, match=r'line 1, in <module>(?s:.)*unheard'):
      registry.get('own_broken:Own')


@pytest.mark.parametrize('shows', [False, True])
def test_builder_shows_previous_actions_by_its_setting(shows):
  class Own(builder.Builder):
    nothing: Any = lambda *_: ()
    make_network = make_policy = make_update = experience = nothing

  config = r2d2.R2D2Config(previous_action_and_reward=shows)
  assert Own(config).observes_previous_action_and_reward == shows
