"""Reference updates of SAC in NumPy."""

import math

import numpy as np

from repertory.agents.sac import learning
from support.agents import numeric_gradients, numpy_dqn, transition_updates

B, D = transition_updates.B, transition_updates.D


def batch_norm(arrays, name, x, seen):
  """Normalizes by the moments of the batch, or by running ones."""
  mean, variance = arrays[f'{name}/mean:0'], arrays[f'{name}/variance:0']
  if seen is not None:
    mean, variance = np.mean(x, axis=0), np.var(x, axis=0)
    seen[name] = mean, variance
  x = (x - mean) / np.sqrt(variance + 1e-3)
  return x * arrays[f'{name}/scale:0'] + arrays[f'{name}/offset:0']


def keep(arrays, seen):
  """Updates running means and variances with those of a batch."""
  for name, (mean, variance) in seen.items():
    for kind, value in (('mean', mean), ('variance', variance)):
      before = arrays[f'{name}/{kind}:0']
      arrays[f'{name}/{kind}:0'] = 0.99 * before + 0.01 * value
    count = arrays[f'{name}/num_calls:0']
    arrays[f'{name}/num_calls:0'] = np.array(count + 1)


class Learner:
  """Online and target parameters of an update, as arrays by name."""

  def __init__(self, update):
    self.config = config = update._config
    self._modules = *update._online, update._target_critics
    self.policy, self.critics, self.targets = (
      module and transition_updates.arrays(module) for module in self._modules
    )
    self.log_temperature = {
      '': np.array([math.log(config.initial_temperature)])
    }
    rate, decay = config.learning_rate, config.adam_first_decay
    self._descents = {
      name: numeric_gradients.Descent(
        learning_rate, config.adam_epsilon, config.max_gradient_norm, decay
      )
      for name, learning_rate, decay in (
        ('critics', rate, decay),
        ('policy', config.policy_learning_rate or rate, decay),
        ('log_temperature', config.temperature_learning_rate, 0.9),
      )
    }

  def pairs(self):
    """Returns pairs of modules and their arrays."""
    arrays = self.policy, self.critics, self.targets
    return [pair for pair in zip(self._modules, arrays) if pair[0] is not None]

  def descend(self, name, loss):
    """Takes a gradient step; returns the norm of the gradient."""
    moved, norm = self._descents[name].step(loss, getattr(self, name))
    setattr(self, name, moved)
    return norm

  def improve_temperature(self, log_prob, aim):
    if self.config.target_entropy is not None:
      aim = self.config.target_entropy
    self.descend(
      'log_temperature',
      lambda arrays: -np.exp(arrays[''][0]) * np.mean(log_prob + aim),
    )

  def update_targets(self):
    tau = self.config.target_update_rate
    for name in self.targets or ():
      difference = self.critics[name] - self.targets[name]
      self.targets[name] = self.targets[name] + tau * difference


class Twin(Learner):
  """The equations of arXiv:1812.05905."""

  def __init__(self, update):
    super().__init__(update)
    self.count = 0
    self._policy_metrics: dict = dict.fromkeys(learning._POLICY_METRICS, 0.0)

  def layers(self, arrays, name, sizes, x, mask=None, seen=None):
    """Applies the layers that a name ends with, `[B, D]`."""
    kind = name.split('/')[-1]
    if kind == 'batch_renorm_mlp':
      x = batch_norm(arrays, f'{name}/norm', x, seen)
    for i in range(len(sizes)):
      x = numeric_gradients.linear(arrays, f'{name}/linear_{i}', x)
      if mask is not None:
        x *= np.split(mask, np.cumsum(sizes)[:-1], axis=-1)[i]
      if kind == 'normalized_mlp':
        x -= np.mean(x, axis=-1, keepdims=True)
        x /= np.sqrt(np.mean(x**2, axis=-1, keepdims=True) + 1e-5)
        norm = f'{name}/norm_{i}'
        x = x * arrays[f'{norm}/scale:0'] + arrays[f'{norm}/offset:0']
      x = np.maximum(x, 0)
      if kind == 'batch_renorm_mlp':
        x = batch_norm(arrays, f'{name}/norm_{i}', x, seen)
    return x

  def outputs(self, arrays, observation, action, masks, seen=None):
    """Returns values or quantiles, `[B, N, K]`."""
    body, sizes = self.config.critic_layers
    outputs, moments = [], []
    for i in range(self.config.num_critics):
      own = numeric_gradients.of_critic(arrays, i)
      moments.append(None if seen is None else {})
      x = np.concatenate([observation, action], axis=-1)
      name = f'critic/{body}'
      x = self.layers(own, name, sizes, x, masks[:, i], moments[i])
      outputs.append(numeric_gradients.linear(own, 'critic/head', x))
    for name in moments[0] or ():
      of_critics = zip(*(of_one[name] for of_one in moments))
      seen[name] = [np.stack(each)[:, None] for each in of_critics]
    return np.stack(outputs, axis=1)

  def value(self, outputs, drawn):
    """Returns the values that make up a target, `[B, M]`."""
    if self.config.num_quantiles is None:
      return np.min(outputs[:, drawn, 0], axis=1)[:, None]
    pooled = [sorted(np.ravel(of_item)) for of_item in outputs]
    dropped = self.config.num_dropped_quantiles * self.config.num_critics
    return np.array(pooled)[:, : len(pooled[0]) - dropped]

  def losses(self, outputs, target):
    """Returns the loss of each item, `[B]`."""
    if self.config.num_quantiles is None:
      return np.sum((target - outputs[..., 0]) ** 2, axis=-1) / 2
    number = self.config.num_quantiles
    losses = np.zeros(B)
    for i in range(number):
      tau = (2 * i + 1) / (2 * number)
      errors = target[:, None] - outputs[:, :, i, None]  # [B, N, M]
      sizes = np.abs(errors)
      huber = np.where(sizes < 1, errors**2 / 2, sizes - 0.5)
      weights = np.where(errors < 0, 1 - tau, tau)
      losses += np.sum(np.mean(weights * huber, axis=2), axis=1)
    return losses

  def gaps(self, arrays, batch, done):
    """Returns values of proposals minus those of the data, `[B, N]`."""
    action, log_prob = batch['proposals']
    number = action.shape[1]
    sums = np.zeros((B, self.config.num_critics))
    masks = np.ones_like(batch['masks'][0])
    for p in range(number):
      outputs = self.outputs(arrays, batch['observation'], action[:, p], masks)
      q = np.mean(outputs, axis=-1)
      sums += np.exp(q - log_prob[:, p, None])
    return np.log(sums / number) - np.mean(done, axis=-1)

  def act(self, arrays, observation, noise, seen=None):
    name = f'observation_torso/{self.config.body}'
    x = self.layers(
      arrays, name, self.config.hidden_sizes, observation, seen=seen
    )
    x = numeric_gradients.linear(arrays, 'head', x)
    mean, log_scale = x[:, :D], np.clip(x[:, D:], -20, 2)
    action = np.tanh(mean + np.exp(log_scale) * noise)
    density = -(noise**2) / 2 - log_scale - np.log(2 * np.pi) / 2
    return action, np.sum(density - np.log(1 - action**2), axis=-1)

  def step(self, batch):
    config = self.config
    temperature = np.exp(self.log_temperature[''][0])
    action, log_prob = self.act(
      self.policy, batch['next_observation'], batch['noise'][0]
    )
    scaled = transition_updates.scaled(batch)

    def rate(arrays, seen):
      """Returns outputs for the next step and for the actions taken."""
      masks = batch['masks']
      following = batch['next_observation'], action
      done = batch['observation'], scaled
      if self.targets is not None:
        return (
          self.outputs(self.targets, *following, masks[0]),
          self.outputs(arrays, *done, masks[1], seen),
        )
      observation, action_of_both = map(np.concatenate, zip(following, done))
      masks = np.concatenate(masks[:2])
      return np.split(
        self.outputs(arrays, observation, action_of_both, masks, seen), 2
      )

    seen = {}
    outputs, q = rate(self.critics, seen)
    value = (
      self.value(outputs, batch['drawn']) - temperature * log_prob[:, None]
    )
    discount = config.discount * batch['discount']
    target = batch['reward'][:, None] + discount[:, None] * value
    weights = numpy_dqn.weights(batch, config)

    def mean_loss(arrays):
      return np.mean(weights * self.losses(rate(arrays, {})[1], target))

    def critic_loss(arrays):
      loss = mean_loss(arrays)
      if config.conservative_weight is not None:
        gaps = self.gaps(arrays, batch, rate(arrays, {})[1])
        gap = np.mean(weights * np.sum(gaps, axis=-1))
        loss += config.conservative_weight * gap
      return loss

    differences = np.mean(target, axis=-1)[:, None] - np.mean(q, axis=-1)
    sizes = np.mean(np.abs(differences), axis=-1)
    metrics = {
      'critic_loss': mean_loss(self.critics),
      'td_error': np.mean(sizes),
      'q_value': np.mean(q),
    }
    if config.conservative_weight is not None:
      gaps = self.gaps(self.critics, batch, q)
      metrics['conservative_gap'] = np.mean(gaps)
    metrics['critic_gradient_norm'] = self.descend('critics', critic_loss)
    keep(self.critics, seen)
    self.count += 1
    if self.count % config.policy_update_period == 0:
      self.improve_policy(batch, temperature)
    self.update_targets()
    return {**metrics, **self._policy_metrics}, sizes

  def improve_policy(self, batch, temperature):
    config = self.config
    rate = np.mean if config.critics_of_policy == 'mean' else np.min

    def policy_loss(arrays):
      action, log_prob = self.act(
        arrays, batch['observation'], batch['noise'][1], {}
      )
      q = self.outputs(
        self.critics, batch['observation'], action, batch['masks'][2]
      )
      q = np.mean(q, axis=-1)
      return np.mean(temperature * log_prob - rate(q, axis=-1))

    seen = {}
    _, log_prob = self.act(
      self.policy, batch['observation'], batch['noise'][1], seen
    )
    self._policy_metrics = {
      'policy_loss': policy_loss(self.policy),
      'entropy': -np.mean(log_prob),
      'temperature': temperature,
    }
    norm = self.descend('policy', policy_loss)
    self._policy_metrics['policy_gradient_norm'] = norm
    keep(self.policy, seen)
    self.improve_temperature(log_prob, -D)


class DiscreteTwin(Learner):
  """The equations of arXiv:1910.07207, action by action."""

  def outputs(self, arrays, prefix, head, observation):
    x = numeric_gradients.linear(arrays, f'{prefix}/mlp/linear_0', observation)
    return numeric_gradients.linear(arrays, head, np.maximum(x, 0))

  def values(self, arrays, observation):
    """Returns the outputs of each critic, `[N, B, A]`."""
    return np.array(
      [
        self.outputs(
          numeric_gradients.of_critic(arrays, i),
          'critics/critic',
          'critics/critic/head',
          observation,
        )
        for i in range(self.config.num_critics)
      ]
    )

  def act(self, arrays, observation):
    powers = np.exp(
      self.outputs(arrays, 'observation_torso', 'head', observation)
    )
    return powers / powers.sum(axis=-1, keepdims=True)

  def step(self, batch):
    config = self.config
    temperature = np.exp(self.log_temperature[''][0])
    policy = self.act(self.policy, batch['next_observation'])
    least = self.values(self.targets, batch['next_observation']).min(axis=0)
    value = np.zeros(B)
    for a in range(3):
      soft = least[:, a] - temperature * np.log(policy[:, a])
      value += policy[:, a] * soft
    target = batch['reward'] + config.discount * batch['discount'] * value
    weights = numpy_dqn.weights(batch, config)

    def errors(arrays):
      q = self.values(arrays, batch['observation'])
      return target - q[:, np.arange(B), batch['action']]  # [N, B]

    def critic_loss(arrays):
      return np.mean(weights * np.sum(errors(arrays) ** 2, axis=0)) / 2

    sizes = np.mean(np.abs(errors(self.critics)), axis=0)
    metrics = {
      'critic_loss': critic_loss(self.critics),
      'td_error': np.mean(sizes),
      'q_value': np.mean(self.values(self.critics, batch['observation'])),
      'temperature': temperature,
    }
    metrics['critic_gradient_norm'] = self.descend('critics', critic_loss)
    q = self.values(self.critics, batch['observation'])
    rated = np.mean(q, 0) if config.critics_of_policy == 'mean' else q.min(0)

    def policy_loss(arrays):
      policy = self.act(arrays, batch['observation'])
      costs = policy * (temperature * np.log(policy) - rated)
      return np.mean(np.sum(costs, axis=-1))

    policy = self.act(self.policy, batch['observation'])
    log_prob = np.sum(policy * np.log(policy), axis=-1)
    metrics['policy_loss'] = policy_loss(self.policy)
    metrics['entropy'] = -np.mean(log_prob)
    metrics['policy_gradient_norm'] = self.descend('policy', policy_loss)
    self.improve_temperature(log_prob, 0.98 * math.log(3))
    self.update_targets()
    return metrics, sizes
