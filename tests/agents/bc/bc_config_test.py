"""Tests of `agents/bc/config.py`."""

import dataclasses

import pytest

from repertory.agents import bc
from repertory.agents.interface import registry


@pytest.mark.parametrize(
  ('name', 'value', 'expected'),
  [
    ('hidden_sizes', (3, 0), 'a tuple of integers of at least 1'),
    ('image_torso', 'vgg', 'one of'),
    ('batch_size', 0, 'at least 1'),
    ('learning_rate', 0.0, 'positive'),
    ('adam_epsilon', 0.0, 'positive'),
    ('max_gradient_norm', 0.0, 'positive'),
  ],
)
def test_refuses(name, value, expected):
  with pytest.raises(ValueError, match=f'{name} must be {expected}'):
    bc.BCConfig(**{name: value})


def test_has_no_setting_that_would_be_ignored():
  names = {field.name for field in dataclasses.fields(bc.BCConfig)}
  assert names == {
    'hidden_sizes', 'image_torso', 'batch_size', 'learning_rate',
    'adam_epsilon', 'max_gradient_norm', 'jit_compile',
  }  # fmt: skip
  with pytest.raises(ValueError, match=r'config\.discount is no setting of'):
    registry.make_config('bc', {'discount': 0.9})
