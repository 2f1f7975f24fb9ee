"""Tests of `critics.py`."""

import numpy as np
import pytest
import tensorflow as tf

from repertory.components import networks, specs

VECTOR = specs.Array((3,), np.float32)
IMAGE = specs.BoundedArray((36, 36, 1), np.uint8, 0, 255)


def normal(*shape, seed=0):
  random = np.random.default_rng(seed)
  return tf.constant(random.normal(size=shape), tf.float32)


class TestCritic:
  @pytest.mark.parametrize(
    ('body', 'expected'),
    [
      ('mlp', [(5, 8), (8,), (8, 4), (4,), (4, 7), (7,)]),
      # With scale and offset of the normalized layer.
      (
        'layer_norm_mlp',
        [(5, 8), (8,), (8, 4), (4,), (4, 7), (7,), (8,), (8,)],
      ),
    ],
  )
  def test_variables(self, body, expected):
    critic = networks.Critic(VECTOR, (8, 4), 7, body=body)
    networks.create_critic_variables(critic, VECTOR, 2)
    assert sorted(tuple(v.shape) for v in critic.variables) == sorted(expected)
    assert critic(normal(6, 3), normal(6, 2)).shape == [6, 7]
    assert len({v.name for v in critic.variables}) == len(expected)

  def test_equals_numpy(self):
    critic = networks.Critic(VECTOR, (8,), 1)
    networks.create_critic_variables(critic, VECTOR, 2)
    values = {v.name: v.numpy() for v in critic.variables}
    observation, action = normal(6, 3), normal(6, 2, seed=1)
    x = np.concatenate([observation, action], axis=-1)
    x = np.maximum(x @ values['critic/mlp/linear_0/w:0'], 0)
    np.testing.assert_allclose(
      critic(observation, action), x @ values['critic/head/w:0'], atol=1e-5
    )

  @pytest.mark.parametrize('body', ['mlp', 'layer_norm_mlp'])
  def test_several_actions_are_rated_as_each_alone(self, body):
    critic = networks.Critic(VECTOR, (8, 4), 7, body=body)
    networks.create_critic_variables(critic, VECTOR, 2)
    observation, actions = normal(6, 3), normal(6, 5, 2, seed=1)
    expected = [critic(observation, actions[:, k]) for k in range(5)]
    np.testing.assert_allclose(
      critic(observation, actions), np.stack(expected, axis=1), atol=1e-6
    )

  @pytest.mark.parametrize('image_torso', networks.IMAGE_TORSOS)
  def test_images(self, image_torso):
    spec = {'eye': IMAGE, 'x': VECTOR}
    critic = networks.Critic(spec, (8,), 1, image_torso)
    networks.create_critic_variables(critic, spec, 2)
    pixels = np.random.default_rng(0).integers(0, 256, [4, 36, 36, 1])
    observation = {
      'eye': tf.constant(pixels, tf.uint8),
      'x': tf.zeros([4, 3]),
    }
    values = critic(observation, tf.zeros([4, 2]))
    assert len(np.unique(values)) == 4


class TestCriticEnsemble:
  def test_each_rates_on_its_own(self):
    critics = [
      networks.Critic(VECTOR, (8,), 1, name=f'critic_{i}') for i in range(3)
    ]
    ensemble = networks.CriticEnsemble(critics)
    networks.create_critic_variables(ensemble, VECTOR, 2)
    observation, action = normal(6, 3), normal(6, 2, seed=1)
    values = ensemble(observation, action)
    assert values.shape == [6, 3]
    for i, critic in enumerate(critics):
      np.testing.assert_allclose(
        values[:, i : i + 1], critic(observation, action), rtol=1e-6
      )
    names = [v.name for v in ensemble.variables]
    assert len(set(names)) == 3 * 4
