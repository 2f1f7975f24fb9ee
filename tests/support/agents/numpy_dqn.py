"""Reference DQN in NumPy, row by row, in the papers' notation."""

import dataclasses

import numpy as np

from support.agents import numeric_gradients


def weights(batch, config):
  """(N P)^-β / max; 1 if items are not sampled by priority."""
  if not config.prioritized:
    return np.ones(len(batch['reward']))
  raw = (batch['table_size'] * batch['probability']) ** (
    -config.importance_exponent
  )
  return raw / raw.max()


def values(arrays, observation, dueling):
  """q(s, ·) of observations `[..., S]`, with one hidden layer."""
  name = 'observation_torso/mlp/linear_0'
  x = np.maximum(numeric_gradients.linear(arrays, name, observation), 0)
  if not dueling:
    return numeric_gradients.linear(arrays, 'head', x)
  value, advantage = (
    numeric_gradients.linear(arrays, f'dueling_head/{stream}/linear_0', x)
    for stream in ('value', 'advantage')
  )
  return value + advantage - np.mean(advantage, axis=-1, keepdims=True)


def margin_gap(q_values, action, margin):
  """max_a (q(a) + l(a_E, a)) − q(a_E)."""
  rivals = [q + margin for a, q in enumerate(q_values) if a != action]
  return max(max(rivals) - q_values[action], 0)


def huber(error, threshold):
  size = abs(error)
  if size <= threshold:
    return 0.5 * size**2
  return threshold * (size - 0.5 * threshold)


class Learner:
  """Learner: clips by the global norm, steps with Adam, updates the target."""

  def __init__(self, online, target, config):
    self.online, self.target, self._config = online, target, config
    self._descent = numeric_gradients.Descent(
      config.learning_rate, config.adam_epsilon, config.max_gradient_norm
    )
    self._t = 0

  def _targets(self, batch):
    """r + γ d q⁻(s', a*), with a* of q if double and of q⁻ if not."""
    config, s_t = self._config, batch['next_observation']
    q_t = values(self.target, s_t, config.dueling)
    chooser = self.online if config.double else self.target
    best = np.argmax(values(chooser, s_t, config.dueling), axis=-1)
    bootstrap = np.array([row[a] for row, a in zip(q_t, best)])
    return batch['reward'] + config.discount * batch['discount'] * bootstrap

  def _loss(self, arrays, batch, targets, beta):
    """Returns the mean weighted loss."""
    config, total = self._config, 0.0
    q = values(arrays, batch['observation'], config.dueling)
    replaced = dataclasses.replace(config, importance_exponent=beta)
    for b, weight in enumerate(weights(batch, replaced)):
      action = batch['action'][b]
      loss = huber(targets[b] - q[b][action], config.huber_threshold)
      if config.conservative_weight is not None:
        gap = np.log(np.sum(np.exp(q[b]))) - q[b][action]
        loss += config.conservative_weight * gap
      if config.margin_weight is not None and batch['is_demonstration'][b]:
        gap = margin_gap(q[b], action, config.margin)
        loss += config.margin_weight * gap
      total += weight * loss
    return total / len(targets)

  def step(self, batch):
    """Returns the loss, the errors and the norm of the gradients."""
    config, beta = self._config, self._config.importance_exponent
    if (steps := config.importance_anneal_learner_steps) is not None:
      beta = min(beta + (1 - beta) * self._t / steps, 1)
    targets = self._targets(batch)
    q = values(self.online, batch['observation'], config.dueling)
    errors = targets - [row[a] for row, a in zip(q, batch['action'])]

    def loss(arrays):
      return self._loss(arrays, batch, targets, beta)

    before = loss(self.online)
    self.online, norm = self._descent.step(loss, self.online)
    self._t += 1
    if self._t % config.target_update_period == 0:
      self.target = dict(self.online)
    return before, errors, norm
