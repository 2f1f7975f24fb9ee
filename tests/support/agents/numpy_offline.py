"""Networks of IQL, CRR and TD3 in NumPy, shared by their reference learners."""

import numpy as np

from support.agents import numeric_gradients


def values(arrays, num_critics, observation, action):
  """Returns values `[B, N]` of critics with one hidden layer."""
  found = []
  for i in range(num_critics):
    x = np.concatenate([observation, action], axis=-1)
    own = numeric_gradients.of_critic(arrays, i)
    x = numeric_gradients.linear(own, 'critic/mlp/linear_0', x)
    x = numeric_gradients.linear(own, 'critic/head', np.maximum(x, 0))
    found.append(x[:, 0])
  return np.stack(found, axis=-1)


def features(arrays, observation):
  """Computes the hidden layers of policies and of values."""
  x, name = observation, 'observation_torso/mlp/linear_'
  for i in range(sum(one.startswith(name) for one in arrays) // 2):
    x = np.maximum(numeric_gradients.linear(arrays, f'{name}{i}', x), 0)
  return x


def gaussian(arrays, observation):
  """Returns means and deviations `[B, D]` of a policy."""
  mean = np.tanh(
    numeric_gradients.linear(arrays, 'head/mean', features(arrays, observation))
  )
  scale = np.exp(np.clip(arrays['head/log_scale:0'], -5, 2))
  return mean, np.broadcast_to(scale, mean.shape)


def sample(arrays, observation, noise):
  mean, scale = gaussian(arrays, observation)
  return np.clip(mean + scale * noise, -1, 1)


def log_prob(arrays, observation, action):
  mean, scale = gaussian(arrays, observation)
  density = np.exp(-0.5 * ((action - mean) / scale) ** 2)
  return np.log(density / (scale * np.sqrt(2 * np.pi))).sum(axis=-1)
