"""Tests of `agents/pqn/config.py`."""

import pytest

from repertory.agents import pqn


@pytest.mark.parametrize(
  ('name', 'value', 'expected'),
  [
    ('hidden_sizes', (3, 0), 'a tuple of integers of at least 1'),
    ('image_torso', 'vgg', 'one of'),
    ('core', 'rnn', 'one of'),
    ('unroll_length', 0, 'at least 1'),
    ('batch_size', 0, 'at least 1'),
    ('num_epochs', 0, 'at least 1'),
    ('num_minibatches', 1.5, 'an integer'),
    ('lambda_', 1.1, r'in \[0, 1\]'),
    ('learning_rate', 0.0, 'positive'),
    ('max_gradient_norm', 0.0, 'positive'),
    ('reward_scale', 0.0, 'positive'),
    ('anneal_learner_steps', 0, 'at least 1'),
    ('epsilon_base', 0.0, r'in \(0, 1\]'),
    ('epsilon_exponent', -1.0, 'at least 0'),
    ('epsilon_anneal_steps', -1, 'at least 0'),
    ('evaluation_epsilon', 2.0, r'in \[0, 1\]'),
  ],
)
def test_refuses(name, value, expected):
  with pytest.raises(ValueError, match=f'{name} must be {expected}'):
    pqn.PQNConfig(**{name: value})


def test_a_batch_is_an_unroll_of_each_environment():
  config = pqn.PQNConfig(unroll_length=5, num_minibatches=15)
  assert config.batch_size_for(3) == 3
  assert config.queue_size_for(3) == 6
  with pytest.raises(ValueError, match='num_minibatches must be at most 10'):
    config.batch_size_for(2)
  recurrent = pqn.PQNConfig(core='gru', num_minibatches=4)
  with pytest.raises(ValueError, match='num_minibatches must be at most 3'):
    recurrent.batch_size_for(3)
  assert pqn.PQNConfig(batch_size=7).batch_size_for(3) == 7
