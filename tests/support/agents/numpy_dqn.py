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
    is_demonstration = batch.get('is_demonstration', np.ones(len(q), bool))
    for b, weight in enumerate(weights(batch, replaced)):
      action = batch['action'][b]
      loss = huber(targets[b] - q[b][action], config.huber_threshold)
      for name, gap in self._gaps(q[b], action, is_demonstration[b]).items():
        loss += getattr(config, f'{name}_weight') * gap
      total += weight * loss
    return total / len(targets)

  def _gaps(self, q, action, is_demonstration):
    """Returns the additional losses of an item by name."""
    config, gaps = self._config, {}
    if config.conservative_weight is not None:
      gaps['conservative'] = np.log(np.sum(np.exp(q))) - q[action]
    if config.margin_weight is not None:
      rivals = np.delete(q, action) + config.margin
      gaps['margin'] = is_demonstration * max(max(rivals) - q[action], 0)
    return gaps

  def step(self, batch):
    """Returns metrics, and the absolute TD errors."""
    config, beta = self._config, self._config.importance_exponent
    if (steps := config.importance_anneal_learner_steps) is not None:
      beta = min(beta + (1 - beta) * self._t / steps, 1)
    targets = self._targets(batch)
    q = values(self.online, batch['observation'], config.dueling)
    errors = targets - [row[a] for row, a in zip(q, batch['action'])]

    def loss(arrays):
      return self._loss(arrays, batch, targets, beta)

    marks = batch.get('is_demonstration', np.ones(len(q), bool))
    gaps = [self._gaps(*item) for item in zip(q, batch['action'], marks)]
    metrics = {
      'loss': loss(self.online),
      'td_error': np.mean(np.abs(errors)),
      'q_value': np.mean(q),
      **{f'{n}_gap': np.mean([gap[n] for gap in gaps]) for n in gaps[0]},
    }
    # The norm of the gradient before it is clipped.
    self.online, metrics['gradient_norm'] = self._descent.step(
      loss, self.online
    )
    self._t += 1
    if self._t % config.target_update_period == 0:
      self.target = dict(self.online)
    return metrics, np.abs(errors)
