"""Tests of `agents/reward_models/registry.py` and of names of settings."""

import dataclasses

import pytest

from repertory.agents import dqn
from repertory.agents.reward_models import (
  gail,
  registry,
  reward_model_config,
  rnd,
  sqil,
)
from repertory.components.config import settings


@pytest.mark.parametrize(
  'model', registry.reward_models(), ids=lambda m: m.name
)
def test_all_are_registered(model):
  assert registry.get(model.name) is model
  assert model.description
  config = registry.make_config(model.name, {})
  assert config == model.config_class()
  made = model.builder_class(dqn.DQNBuilder(), config)
  assert made.name == model.name
  assert model.builder_class(dqn.DQNBuilder()).reward_model_config == config
  for setting in settings.describe(model.config_class):
    assert setting.help, setting.name
    assert setting.default is not dataclasses.MISSING


def test_text_and_values():
  config = registry.make_config(
    'rnd', {'hidden_sizes': '32,16', 'learning_rate': 1e-3}
  )
  assert config == rnd.RNDConfig(hidden_sizes=(32, 16), learning_rate=1e-3)
  assert registry.make_config(None, {}) is None


@pytest.mark.parametrize(
  ('name', 'values', 'message'),
  [
    ('rmd', {}, "^reward_model must be one of .*'rmd'. Did you mean 'rnd'"),
    (None, {'a': 1}, '^reward_model must be given with its settings a'),
    ('rnd', {'embeding_size': 1}, r'\.embeding_size is not a .*embedding_s'),
    ('rnd', {'embedding_size': 'x'}, r'\.embedding_size must be of type'),
    ('rnd', {'embedding_size': 0}, r'\.embedding_size must be at least 1'),
  ],
)
def test_rejects(name, values, message):
  with pytest.raises(settings.SettingError, match=message):
    registry.make_config(name, values)


def test_earlier_names_of_settings_are_read():
  stored = {
    'wrap': 'rnd', 'wrap.reward': 1, 'wrap_config': {}, 'wrapper': 2,
    'config.scale_rewards': True,
  }  # fmt: skip
  assert reward_model_config.with_present_names(stored) == {
    'reward_model': 'rnd', 'reward_model.reward': 1, 'reward_model_config': {},
    'wrapper': 2,
    'config.normalize_rewards': True,
  }  # fmt: skip


@pytest.mark.parametrize(
  ('config_class', 'name', 'value'),
  [
    (gail.GAILConfig, 'reward', 'wgan'),
    (gail.GAILConfig, 'hidden_sizes', (0,)),
    (rnd.RNDConfig, 'intrinsic_coefficient', 0.0),
    (rnd.RNDConfig, 'image_torso', 'nothing'),
    (sqil.SQILConfig, 'demonstration_reward', -1.0),
  ],
)
def test_configs_reject_invalid_values(config_class, name, value):
  with pytest.raises(settings.SettingError, match=f'^{name} must be '):
    config_class(**{name: value})
