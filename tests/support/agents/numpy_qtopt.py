"""Reference QT-Opt in NumPy."""

import numpy as np

from support.agents import numeric_gradients, numpy_dqn, transition_updates


class Twin:
  """Section 4.2 of arXiv:1806.10293 in NumPy, item by item."""

  def __init__(self, config, network, average, lagged):
    self.config = config
    self.network, self.average, self.lagged = network, average, lagged
    self._descent = numeric_gradients.Descent(
      config.learning_rate, config.adam_epsilon, config.max_gradient_norm
    )
    self._count = 0

  def outputs(self, arrays, observation, action):
    x = np.concatenate([observation, action], axis=-1)
    x = numeric_gradients.linear(arrays, 'critic/mlp/linear_0', x)
    return numeric_gradients.linear(arrays, 'critic/head', np.maximum(x, 0))[
      ..., 0
    ]

  def best(self, observation, noise):
    """Runs the cross-entropy search for one state, `[I, N, D]`."""
    mean, stddev = np.zeros(transition_updates.D), self.config.initial_stddev
    ranked = []
    for numbers in noise:
      samples = np.clip(mean + stddev * numbers, -1, 1)
      ranked = sorted(
        samples,
        key=lambda a: self.outputs(self.average, observation, a),
        reverse=True,
      )
      elites = np.array(ranked[: self.config.num_elites])
      mean, stddev = elites.mean(axis=0), elites.std(axis=0)
    return ranked[0]

  def squashed(self, x):
    return 1 / (1 + np.exp(-x)) if self.config.bounded else np.array(x)

  def targets(self, batch, noise):
    """Returns Bellman targets, `[B]`."""
    config, targets = self.config, []
    for b in range(transition_updates.B):
      observation = batch['next_observation'][b]
      action = self.best(observation, noise[:, b])
      q = min(
        self.squashed(self.outputs(network, observation, action))
        for network in (self.average, self.lagged)
      )
      target = batch['reward'][b] + config.discount * batch['discount'][b] * q
      targets.append(min(max(target, 0), 1) if config.bounded else target)
    return np.array(targets)

  def step(self, batch):
    config = self.config
    targets = self.targets(batch, batch['noise'])
    scaled = transition_updates.scaled(batch)
    weights = numpy_dqn.weights(batch, config)

    def loss(arrays):
      q = self.squashed(self.outputs(arrays, batch['observation'], scaled))
      if config.bounded:
        of_items = -targets * np.log(q) - (1 - targets) * np.log(1 - q)
      else:
        of_items = (targets - q) ** 2 / 2
      return np.mean(weights * of_items)

    q = self.squashed(self.outputs(self.network, batch['observation'], scaled))
    sizes = np.abs(targets - q)
    metrics = {
      'loss': loss(self.network),
      'td_error': np.mean(sizes),
      'q_value': np.mean(q),
    }
    self.network, metrics['gradient_norm'] = self._descent.step(
      loss, self.network
    )
    tau = config.target_update_rate
    self.average = {
      name: (1 - tau) * array + tau * self.network[name]
      for name, array in self.average.items()
    }
    self._count += 1
    if self._count % config.target_lag == 0:
      self.lagged = dict(self.average)
    return metrics, sizes
