"""Reference V-MPO in NumPy, from the equations of arXiv:1909.12238."""

import numpy as np

from support.agents import numeric_gradients, numpy_mpo


def _log_softmax(logits):
  largest = np.max(logits, axis=-1, keepdims=True)
  total = np.sum(np.exp(logits - largest), axis=-1, keepdims=True)
  return logits - largest - np.log(total)


def _log_prob(logits, sample):
  log_probs = _log_softmax(logits)
  return np.take_along_axis(log_probs, sample[..., None], axis=-1)[..., 0]


def act(arrays, observation):
  """Returns policy parameters and values of a network with a shared layer."""
  x = np.maximum(
    numeric_gradients.linear(arrays, 'observation_torso/mlp/linear_0',
                             observation), 0
  )  # fmt: skip
  outputs = []
  for stream in ('policy', 'value'):
    hidden = np.tanh(
      numeric_gradients.linear(
        arrays, f'actor_critic_head/{stream}_layers/linear_0', x
      )
    )
    outputs.append(
      numeric_gradients.linear(arrays, f'actor_critic_head/{stream}', hidden)
    )
  return outputs[0], outputs[1][..., 0]


def estimate(config, batch, values, lambda_, limit=None):
  """Returns advantages and returns `[T, B]`; 0 in masked steps."""
  advantages = np.zeros(batch['mask'].shape)
  for b in range(advantages.shape[1]):
    following = 0.0
    for t in reversed(range(advantages.shape[0])):
      if not batch['mask'][t, b]:
        following = 0.0
        continue
      reward = batch['reward'][t, b]
      reward = reward if limit is None else np.clip(reward, -limit, limit)
      gamma = config.discount * batch['discount'][t, b]
      delta = reward + gamma * values[t + 1, b] - values[t, b]
      following = delta + gamma * lambda_ * following
      advantages[t, b] = following
  return advantages, advantages + values[:-1]


class Losses:
  """Losses of a gradient step on a whole batch."""

  def __init__(self, config, batch, old, advantages, returns, duals):
    """Takes the constants of the step, with advantages of `estimate`."""
    self._config, self._mask = config, batch['mask']
    self._sample = batch['sample'][self._mask]
    self._old, self._returns = old[self._mask], returns[self._mask]
    a = advantages[self._mask]
    if config.normalize_advantages:
      a = (a - a.mean()) / a.std()
    order = sorted(range(len(a)), key=lambda i: -a[i])
    self._best = order[: -(-len(a) // 2)]
    self._best_advantages = a[self._best]
    self._duals = duals
    powers = np.exp(self._best_advantages / self._value(duals, 'temperature'))
    self._weights = powers / powers.sum()

  def _value(self, duals, name):
    return numpy_mpo.softplus(np.ravel(duals[f'{name}:0'])[0]) + 1e-8

  def network_loss(self, parameters, values):
    fit, kl, error = self._terms(parameters, values)
    price = self._value(self._duals, 'alpha_policy')
    return fit + price * kl + self._config.baseline_cost * error

  def dual_loss(self, duals, kl):
    config, eta = self._config, self._value(duals, 'temperature')
    mean = np.mean(np.exp(self._best_advantages / eta))
    total = eta * config.epsilon + eta * np.log(mean)
    return total + self._value(duals, 'alpha_policy') * (
      config.epsilon_policy - kl
    )

  def metrics(self, parameters, values):
    fit, kl, error = self._terms(parameters, values)
    weights, duals = self._weights, self._duals
    log_probs = _log_softmax(parameters[self._mask])
    return {
      'policy_loss': fit,
      'value_loss': error,
      'dual_loss': self.dual_loss(duals, kl),
      'entropy': -np.mean(np.sum(np.exp(log_probs) * log_probs, axis=-1)),
      'temperature': self._value(duals, 'temperature'),
      'kl': np.sum(weights * np.log(weights * len(weights))),
      'kl_policy': kl,
      'alpha_policy': self._value(duals, 'alpha_policy'),
    }

  def _terms(self, parameters, values):
    parameters, values = parameters[self._mask], values[self._mask]
    log_probs = _log_prob(parameters, self._sample)
    old, new = _log_softmax(self._old), _log_softmax(parameters)
    return (
      -np.sum(self._weights * log_probs[self._best]),
      np.mean(np.sum(np.exp(old) * (old - new), axis=-1)),
      np.mean((self._returns - values) ** 2) / 2,
    )


class Twin:
  """Reference learner, with one minibatch per epoch."""

  def __init__(self, config, online, target, duals):
    self._config = config
    self.online, self.target, self.duals = online, target, duals
    self._num_steps = 0
    self._returns_so_far, self._scale = [], 1.0
    self._descent = numeric_gradients.Descent(
      config.learning_rate, config.adam_epsilon, config.max_gradient_norm
    )
    self._dual_descent = numeric_gradients.Descent(
      config.dual_learning_rate, config.adam_epsilon
    )

  def step(self, batch):
    """Runs a learner step; returns mean metrics over its gradient steps."""
    config = self._config
    values = act(self.online, batch['observation'])[1]
    old = act(self.target, batch['observation'])[0][:-1]
    scales = {}
    if config.normalize_rewards:
      batch = {
        **batch,
        'reward': batch['reward'] / self._rescale(batch, values),
      }
      scales = {'reward_scale': self._scale}
    advantages, returns = estimate(
      config, batch, values, config.lambda_, config.max_abs_reward
    )
    log_probs = _log_prob(old, batch['sample'])
    ratios = np.exp(log_probs - batch['log_prob'])[batch['mask']]
    errors, goals = advantages[batch['mask']], returns[batch['mask']]
    rows = []
    for _ in range(config.num_epochs):
      losses = Losses(config, batch, old, advantages, returns, self.duals)
      outputs = act(self.online, batch['observation'][:-1])
      metrics = losses.metrics(*outputs)
      kl = metrics['kl_policy']
      self.online, norm = self._descent.step(
        lambda arrays, losses=losses: losses.network_loss(
          *act(arrays, batch['observation'][:-1])
        ),
        self.online,
      )
      self.duals, _ = self._dual_descent.step(
        lambda duals, losses=losses, kl=kl: losses.dual_loss(duals, kl),
        self.duals,
      )
      rows.append({**metrics, 'gradient_norm': norm})
    self._num_steps += 1
    if self._num_steps % config.target_update_period == 0:
      self.target = self.online
    return {
      **{name: np.mean([row[name] for row in rows]) for name in rows[0]},
      'value': np.mean(values[:-1][batch['mask']]),
      'importance_ratio': np.mean(ratios),
      'explained_variance': 1 - np.var(errors) / np.var(goals),
      'share_of_padding': 1 - np.mean(batch['mask']),
      'gradient_steps': config.num_epochs,
      **scales,
    }

  def _rescale(self, batch, values):
    """Returns the deviation of all returns so far, including the batch."""
    _, returns = estimate(self._config, batch, self._scale * values, 1.0)
    self._returns_so_far.extend(returns[batch['mask']])
    self._scale = np.std(self._returns_so_far)
    return self._scale
