"""Numeric gradients by finite differences, and Adam in NumPy."""

import numpy as np

_STEP = 1e-5


def linear(arrays, name, x):
  """Computes x W + b with the arrays '<name>/w:0' and '<name>/b:0'."""
  return x @ arrays[f'{name}/w:0'] + arrays[f'{name}/b:0']


def of_critic(arrays, i):
  """Returns the arrays of one critic of several, as if it were alone."""
  return {k: v[i] if v.ndim == 3 else v for k, v in arrays.items()}


def layer_norm_mlp(arrays, prefix, x):
  """Computes a layer with layer norm and tanh, and one with an ELU."""
  name = f'{prefix}layer_norm_mlp'
  x = linear(arrays, f'{name}/first', x)
  mean = np.mean(x, axis=-1, keepdims=True)
  variance = np.mean((x - mean) ** 2, axis=-1, keepdims=True)
  x = (x - mean) / np.sqrt(variance + 1e-5)
  scale, offset = (
    arrays[f'{name}/layer_norm/{part}:0'] for part in ('scale', 'offset')
  )
  x = linear(arrays, f'{name}/mlp/linear_0', np.tanh(x * scale + offset))
  return np.where(x > 0, x, np.exp(np.minimum(x, 0)) - 1)


def gradients(function, arrays):
  """Returns the gradient of a function of arrays by central differences."""
  found = {}
  for name, array in arrays.items():
    gradient = np.zeros_like(array)
    for index in np.ndindex(array.shape):
      values = []
      for step in (_STEP, -_STEP):
        moved = np.array(array)
        moved[index] += step
        values.append(function({**arrays, name: moved}))
      gradient[index] = (values[0] - values[1]) / (2 * _STEP)
    found[name] = gradient
  return found


def norm(gradients):
  return np.sqrt(sum(np.sum(g**2) for g in gradients.values()))


def clipped(gradients, max_norm):
  if max_norm is None or norm(gradients) <= max_norm:
    return gradients
  return {k: g * max_norm / norm(gradients) for k, g in gradients.items()}


class Adam:
  """Adam: https://arxiv.org/abs/1412.6980, algorithm 1."""

  def __init__(self, learning_rate, epsilon, first_decay=0.9):
    self._learning_rate, self._epsilon = learning_rate, epsilon
    self._decay = first_decay
    self._t, self._first, self._second = 0, {}, {}

  def apply(self, gradients, arrays, share=1.0):
    """Returns the arrays after a step with a scaled step size."""
    self._t += 1
    moved = {}
    for name, g in gradients.items():
      first = self._decay * self._first.get(name, 0) + (1 - self._decay) * g
      second = 0.999 * self._second.get(name, 0) + 0.001 * g**2
      self._first[name], self._second[name] = first, second
      first_hat = first / (1 - self._decay**self._t)
      second_hat = second / (1 - 0.999**self._t)
      moved[name] = arrays[name] - share * self._learning_rate * first_hat / (
        np.sqrt(second_hat) + self._epsilon
      )
    return moved


class Descent:
  """Adam on numeric gradients, clipped by their global norm unless None."""

  def __init__(self, learning_rate, epsilon, max_norm=None, first_decay=0.9):
    self._adam = Adam(learning_rate, epsilon, first_decay)
    self._max_norm = max_norm

  def step(self, loss, arrays, share=1.0):
    """Returns the arrays after a step, and the norm of the gradient."""
    found = gradients(loss, arrays)
    limited = clipped(found, self._max_norm)
    return self._adam.apply(limited, arrays, share), norm(found)
