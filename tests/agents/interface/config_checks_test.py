"""Tests of checks of settings, by the settings of all agents."""

import dataclasses
from collections.abc import Callable
from typing import Optional

import numpy as np
import pytest

from repertory.agents import dqn
from repertory.agents.interface import registry

CONFIGS = [agent.config_class for agent in registry.agents()]
FIELDS = [
  pytest.param(config, field, id=f'{config.__name__}_{field.name}')
  for config in CONFIGS
  for field in dataclasses.fields(config)
]


@pytest.mark.parametrize(('config', 'field'), FIELDS)
def test_each_field_has_one_type(config, field):
  with pytest.raises(ValueError, match=f"^{field.name} must be .*'1'"):
    # Text that is a number is no number; a text must be a known one.
    config(**{field.name: '1'})
  with pytest.raises(ValueError, match=f'^{field.name} must be .*'):
    config(**{field.name: [1.5]})


@pytest.mark.parametrize(('config', 'field'), FIELDS)
def test_none_is_for_fields_that_say_so(config, field):
  if 'None' in str(field.type):
    assert getattr(config(**{field.name: None}), field.name) is None
  else:
    with pytest.raises(ValueError, match=f'^{field.name} .* got None'):
      config(**{field.name: None})


@pytest.mark.parametrize(
  ('name', 'value', 'message'),
  [
    ('n_step', 2.5, 'n_step must be an integer, got 2.5.'),
    ('n_step', True, 'n_step must be an integer, got True.'),
    ('discount', False, 'discount must be a number, got False.'),
    ('prioritized', 1, 'prioritized must be True or False, got 1.'),
    ('prioritized', 'no', "prioritized must be True or False, got 'no'."),
    ('error_buffer', 'x', "must be a number or None, got 'x'."),
    ('hidden_sizes', (4, '4'), r"of integers, got \(4, '4'\)."),
    ('image_torso', ['nature'], r"must be a text, got \['nature'\]."),
    ('learning_rate', 1e39, 'must be finite in single precision, got 1e\\+39'),
    ('min_priority', np.inf, 'must be finite in single precision, got inf'),
  ],
)
def test_says_what_it_expected(name, value, message):
  with pytest.raises(ValueError, match=message):
    dqn.DQNConfig(**{name: value})


def test_takes_numbers_of_numpy_integers_for_floats_and_lists():
  config = dqn.DQNConfig(
    n_step=np.int64(2),
    discount=np.float32(0.5),
    learning_rate=1,
    prioritized=np.bool_(False),
    hidden_sizes=[8, np.int32(4)],
  )
  assert config.n_step == 2
  assert config.learning_rate == 1


def test_fields_that_others_add():
  @dataclasses.dataclass(frozen=True)
  class Config(dqn.DQNConfig):
    schedule: Callable[[int], float] = float
    betas: tuple[float, ...] = (0.9, 0.999)
    scale: Optional[float] = None  # noqa: UP045, another spelling.
    either: int | str | None = 'x'
    told_as_text: 'float' = 1.0

  Config()
  Config(scale=2, either=3)
  for name in ('scale', 'discount'):
    with pytest.raises(ValueError, match=f'{name} must be a number'):
      Config(**{name: 'x'})
