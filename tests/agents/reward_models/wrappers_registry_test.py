"""Tests of `agents/reward_models/registry.py`."""

import dataclasses

import pytest

from repertory.agents import dqn
from repertory.agents.reward_models import registry, rnd, wrapping_builder
from repertory.components.config import settings


@pytest.mark.parametrize('wrapper', registry.wrappers(), ids=lambda w: w.name)
def test_all_can_be_had(wrapper):
  assert registry.get(wrapper.name) is wrapper
  assert wrapper.description
  wrapping = registry.make_wrapping(wrapper.name, {})
  assert wrapping is not None
  made = wrapping.wrap(dqn.DQNBuilder())
  assert isinstance(made, wrapping_builder.WrappingBuilder)
  assert made.name == wrapper.name
  assert made.wrap_config == wrapper.config_class()
  assert wrapper.config_class.__dataclass_params__.frozen
  for setting in settings.describe(wrapper.config_class):
    assert setting.help, setting.name
    assert setting.default is not dataclasses.MISSING


def test_text_and_values():
  wrapping = registry.make_wrapping(
    'rnd', {'hidden_sizes': '32,16', 'learning_rate': 1e-3}
  )
  assert wrapping is not None
  assert wrapping.config == rnd.RNDConfig(
    hidden_sizes=(32, 16), learning_rate=1e-3
  )


def test_nothing():
  assert registry.make_wrapping(None, {}) is None


@pytest.mark.parametrize(
  ('name', 'values', 'message'),
  [
    ('rmd', {}, "^wrap must be one of .*'rmd'. Did you mean 'rnd'"),
    (None, {'a': 1}, '^wrap must be given with its settings a'),
    ('rnd', {'embeding_size': 1}, r'^wrap\.embeding_size is no .*embedding_s'),
    ('rnd', {'embedding_size': 'x'}, r'^wrap\.embedding_size must be of type'),
    ('rnd', {'embedding_size': 0}, r'^wrap\.embedding_size must be at least 1'),
  ],
)
def test_refuses(name, values, message):
  with pytest.raises(settings.SettingError, match=message):
    registry.make_wrapping(name, values)
