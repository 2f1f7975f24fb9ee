"""Reference DQN in NumPy, row by row, in the papers' notation."""

import dataclasses

import numpy as np


def values(parameters, observation, dueling):
  """q(s, ·) of one observation.

  Args:
    parameters: Arrays by the networks' variable names.
    observation: Vector.
    dueling: Whether the head has two streams.
  """
  x = np.asarray(observation, np.float64)
  layer = 0
  torso = 'observation_torso/mlp'
  while f'{torso}/linear_{layer}/w:0' in parameters:
    x = np.maximum(_linear(parameters, f'{torso}/linear_{layer}', x), 0)
    layer += 1
  if not dueling:
    return _linear(parameters, 'head', x)
  value = _linear(parameters, 'dueling_head/value/linear_0', x)
  advantage = _linear(parameters, 'dueling_head/advantage/linear_0', x)
  return value + advantage - np.mean(advantage)


def errors(online, target, batch, config):
  """r + γ d q⁻(s', a*) − q(s, a), with a* of q if double and of q⁻ if not."""
  result = []
  for b in range(len(batch['reward'])):
    next_values = values(target, batch['next_observation'][b], config.dueling)
    chooser = online if config.double else target
    choice = values(chooser, batch['next_observation'][b], config.dueling)
    bootstrap = next_values[int(np.argmax(choice))]
    goal = batch['reward'][b] + config.discount * batch['discount'][b] * (
      bootstrap
    )
    value = values(online, batch['observation'][b], config.dueling)
    result.append(goal - value[batch['action'][b]])
  return np.array(result)


def weights(batch, config):
  """(N P)^-β / max; 1 if items are not sampled by priority."""
  if not config.prioritized:
    return np.ones(len(batch['reward']))
  raw = (batch['table_size'] * batch['probability']) ** (
    -config.importance_exponent
  )
  return raw / raw.max()


def loss(online, target, batch, config, fixed_online=None):
  """Returns the mean weighted Huber loss.

  Args:
    online: Parameters of q.
    target: Parameters of q⁻.
    batch: Arrays by name.
    config: A `DQNConfig`.
    fixed_online: Parameters that choose a*, without gradient; default `online`.
  """
  chooser = online if fixed_online is None else fixed_online
  fixed = errors(chooser, target, batch, config)
  total = 0.0
  for b in range(len(fixed)):
    # The target is the error of the fixed parameters plus their value.
    action = batch['action'][b]
    goal = (
      fixed[b]
      + values(chooser, batch['observation'][b], config.dueling)[action]
    )
    error = (
      goal - values(online, batch['observation'][b], config.dueling)[action]
    )
    size, threshold = abs(error), config.huber_threshold
    huber = (
      0.5 * size**2
      if size <= threshold
      else threshold * (size - 0.5 * threshold)
    )
    gap = 0.0
    if config.conservative_weight is not None:
      q_values = values(online, batch['observation'][b], config.dueling)
      gap = config.conservative_weight * (
        np.log(np.sum(np.exp(q_values))) - q_values[action]
      )
    if config.margin_weight is not None and batch['is_demonstration'][b]:
      q_values = values(online, batch['observation'][b], config.dueling)
      gap += config.margin_weight * margin_gap(q_values, action, config.margin)
    total += weights(batch, config)[b] * (huber + gap)
  return total / len(fixed)


def margin_gap(q_values, action, margin):
  """max_a (q(a) + l(a_E, a)) − q(a_E)."""
  rivals = [q + margin for a, q in enumerate(q_values) if a != action]
  return max(max(rivals) - q_values[action], 0)


def gradients(online, target, batch, config):
  """Difference quotients of the loss."""
  result = {}
  for name, array in online.items():
    gradient = np.zeros_like(array)
    for index in np.ndindex(*array.shape):
      ends = []
      for step in (1e-5, -1e-5):
        changed = {**online, name: array.copy()}
        changed[name][index] += step
        ends.append(loss(changed, target, batch, config, fixed_online=online))
      gradient[index] = (ends[0] - ends[1]) / 2e-5
    result[name] = gradient
  return result


class Learner:
  """Learner: clips by the global norm, steps with Adam, updates the target."""

  def __init__(self, online, target, config):
    self.online = {n: np.array(a, np.float64) for n, a in online.items()}
    self.target = {n: np.array(a, np.float64) for n, a in target.items()}
    self._config = config
    self._m = {n: np.zeros_like(a) for n, a in self.online.items()}
    self._v = {n: np.zeros_like(a) for n, a in self.online.items()}
    self._t = 0

  def step(self, batch):
    """Returns the loss, the errors and the norm of the gradients."""
    config = self._config
    anneal_steps = config.importance_anneal_learner_steps
    if anneal_steps is not None:
      begin = config.importance_exponent
      beta = min(begin + (1 - begin) * self._t / anneal_steps, 1)
      config = dataclasses.replace(config, importance_exponent=beta)
    result = loss(self.online, self.target, batch, config)
    td = errors(self.online, self.target, batch, config)
    grads = gradients(self.online, self.target, batch, config)
    norm = np.sqrt(sum(np.sum(g**2) for g in grads.values()))
    scale = min(1.0, config.max_gradient_norm / norm)
    self._t += 1
    for name, gradient in grads.items():
      g = scale * gradient
      self._m[name] = 0.9 * self._m[name] + 0.1 * g
      self._v[name] = 0.999 * self._v[name] + 0.001 * g**2
      m = self._m[name] / (1 - 0.9**self._t)
      v = self._v[name] / (1 - 0.999**self._t)
      self.online[name] = self.online[name] - config.learning_rate * m / (
        np.sqrt(v) + config.adam_epsilon
      )
    if self._t % config.target_update_period == 0:
      self.target = {n: a.copy() for n, a in self.online.items()}
    return result, td, norm


def _linear(parameters, name, x):
  return x @ parameters[f'{name}/w:0'] + parameters[f'{name}/b:0']
