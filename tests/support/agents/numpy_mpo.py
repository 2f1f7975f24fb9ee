"""Reference MPO in NumPy, from the equations of arXiv:1812.02256."""

import numpy as np

from support.agents import (
  numeric_gradients,
  numpy_categorical,
  numpy_dqn,
  policy_and_critic_twin,
  transition_updates,
)

_LOG_2_PI = np.log(2 * np.pi)


def log_mean_exp(x, prior):
  largest = np.max(x, axis=-1, keepdims=True)
  total = np.sum(prior * np.exp(x - largest), axis=-1)
  return np.log(total) + largest[..., 0]


def softplus(x):
  return np.log1p(np.exp(-np.abs(x))) + np.maximum(x, 0)


class Twin(policy_and_critic_twin.Twin):
  """Reference learner of MPO."""

  def __init__(self, builder, spec):
    super().__init__(builder, spec)
    config = self.config
    self.duals = self._found_duals()
    self._dual_descent = numeric_gradients.Descent(
      config.dual_learning_rate, config.adam_epsilon
    )
    self.support = numpy_categorical.support(config)

  def _found_duals(self):
    variables = [v for dual in self.update._duals for v in dual.variables]
    return {v.name: v.numpy().astype(np.float64) for v in variables}

  def check(self, batches, jit_compile=None):
    super().check(batches, jit_compile)
    transition_updates.assert_all_close(self._found_duals(), self.duals)

  def body(self, arrays, prefix, x, head):
    x = numeric_gradients.layer_norm_mlp(arrays, prefix, x)
    return numeric_gradients.linear(arrays, head, x)

  def mean(self, outputs):
    """Returns the expected values of a critic's outputs, `[..., M]`."""
    if self.config.distribution == 'none':
      return outputs[..., 0]
    return numpy_categorical.softmax(outputs) @ self.support

  def bootstrap(self, batch, outputs, prior):
    """Returns the critic's targets: means over the target policy's actions."""
    discount = self.config.discount * batch['discount']
    if self.config.distribution == 'none':
      value = np.sum(prior * outputs[..., 0], axis=-1)
      return batch['reward'] + discount * value
    mixed = np.sum(
      prior[..., None] * numpy_categorical.softmax(outputs), axis=1
    )
    return numpy_categorical.project(
      batch['reward'], discount, mixed, self.support
    )

  def step(self, batch):
    config = self.config
    old = self.act(self.target_policy, batch['next_observation'])
    actions, prior = self.propose(old, batch)
    outputs = self.rate(self.target_critic, batch['next_observation'], actions)
    targets = self.bootstrap(batch, outputs, prior)
    weights = numpy_dqn.weights(batch, config)

    def errors(arrays):
      """Returns the losses and priorities of all items."""
      found = self.rate_taken(arrays, batch)
      if config.distribution == 'none':
        error = targets - found[:, 0]
        return error**2 / 2, np.abs(error)
      probs = numpy_categorical.softmax(found)
      divergence = numpy_categorical.divergences(targets, probs)
      return divergence, divergence

    def critic_loss(arrays):
      return np.mean(weights * errors(arrays)[0])

    sizes = errors(self.critic)[1]
    metrics = {
      'critic_loss': critic_loss(self.critic),
      'q_value': np.mean(self.mean(self.rate_taken(self.critic, batch))),
    }
    if config.distribution == 'none':
      metrics['td_error'] = np.mean(sizes)
    else:
      metrics['share_at_ends'] = np.mean(targets[:, 0] + targets[:, -1])

    q = self.mean(outputs)
    loss, dual_loss, diagnostics = self.losses(old, actions, prior, q, batch)
    metrics.update(diagnostics)
    metrics['policy_loss'] = loss(self.policy)
    metrics['dual_loss'] = dual_loss(self.duals)
    metrics['critic_gradient_norm'] = self.descend('critic', critic_loss)
    metrics['policy_gradient_norm'] = self.descend('policy', loss)
    duals, _ = self._dual_descent.step(dual_loss, self.duals)
    self.duals = {name: np.maximum(x, -18) for name, x in duals.items()}
    self.copy_to_target()
    return metrics, sizes

  def value_of(self, name, duals=None):
    return softplus((duals or self.duals)[f'{name}:0']) + 1e-8

  def mpo_e_step(self, name, values, prior, epsilon):
    """Returns probabilities, g(η) and the metrics of an E-step."""

    def dual(duals):
      eta = self.value_of(name, duals)
      return eta * epsilon + eta * np.mean(log_mean_exp(values / eta, prior))

    probs = numpy_categorical.softmax(
      np.log(prior) + values / self.value_of(name)
    )
    diagnostics = np.mean(np.sum(probs * np.log(probs / prior), axis=-1))
    return probs, dual, diagnostics


class GaussianTwin(Twin):
  """Twin for actions of `transition_updates.CONTINUOUS_SPEC`."""

  def __init__(self, builder):
    super().__init__(builder, transition_updates.CONTINUOUS_SPEC)

  def act(self, arrays, observation):
    both = self.body(arrays, '', observation, 'gaussian_head/head')
    mean, raw = np.split(both, 2, axis=-1)
    shift = np.log(np.expm1(self.config.initial_stddev))
    return mean, softplus(raw + shift) + 1e-4

  def propose(self, old, batch):
    mean, scale = old
    actions = mean[:, None] + scale[:, None] * batch['noise']
    return actions, np.full(actions.shape[:2], 1 / actions.shape[1])

  def rate(self, arrays, observation, actions):
    found = []
    for n in range(actions.shape[1]):
      action = np.clip(actions[:, n], -1, 1)
      inputs = np.concatenate([observation, action], axis=-1)
      found.append(self.body(arrays, 'critic/', inputs, 'critic/head'))
    return np.stack(found, axis=1)

  def rate_taken(self, arrays, batch):
    scaled = transition_updates.scaled(batch)
    return self.rate(arrays, batch['observation'], scaled[:, None])[:, 0]

  def losses(self, old, actions, prior, q, batch):
    config = self.config
    probs, dual, kl = self.mpo_e_step('temperature', q, prior, config.epsilon)
    duals = [dual]
    diagnostics = {'kl': kl, 'temperature': self.value_of('temperature')}
    if config.epsilon_penalty is not None:
      outside = np.maximum(np.abs(actions) - 1, 0)
      more, dual, kl = self.mpo_e_step(
        'penalty_temperature', -np.sqrt(np.sum(outside**2, axis=-1)), prior,
        config.epsilon_penalty,
      )  # fmt: skip
      probs = probs + more
      duals.append(dual)
      diagnostics['penalty_kl'] = kl
      diagnostics['penalty_temperature'] = self.value_of('penalty_temperature')

    def parts(arrays):
      """Returns the parts with changed means only, and changed deviations."""
      mean, scale = self.act(arrays, batch['next_observation'])
      for name, m, s in (('mean', mean, old[1]), ('stddev', old[0], scale)):
        x = (actions - m[:, None]) / s[:, None]
        log_prob = -(x**2) / 2 - np.log(s[:, None]) - _LOG_2_PI / 2
        likelihood = np.mean(np.sum(probs * np.sum(log_prob, -1), axis=-1))
        kl = (
          np.log(s / old[1])
          + (old[1] ** 2 + (old[0] - m) ** 2) / (2 * s**2)
          - 0.5
        )
        yield name, likelihood, np.mean(kl, axis=0)  # [], [D]

    prices = {n: self.value_of(f'alpha_{n}') for n in ('mean', 'stddev')}

    def loss(arrays):
      return sum(
        np.sum(prices[name] * kl) - likelihood
        for name, likelihood, kl in parts(arrays)
      )

    kls = {name: kl for name, _, kl in parts(self.policy)}
    bounds = {'mean': config.epsilon_mean, 'stddev': config.epsilon_stddev}

    def dual_loss(arrays):
      total = sum(dual(arrays) for dual in duals)
      for name, kl in kls.items():
        alpha = self.value_of(f'alpha_{name}', arrays)
        total += np.sum(alpha * (bounds[name] - kl))
      return total

    scale = self.act(self.policy, batch['next_observation'])[1]
    diagnostics['entropy'] = np.mean(
      np.sum(np.log(scale) + (_LOG_2_PI + 1) / 2, axis=-1)
    )
    for name in kls:
      diagnostics[f'kl_{name}'] = np.mean(kls[name])
      diagnostics[f'alpha_{name}'] = np.mean(prices[name])
    return loss, dual_loss, diagnostics


class DiscreteTwin(Twin):
  """Twin for actions of `transition_updates.DISCRETE_SPEC`."""

  def __init__(self, builder):
    super().__init__(builder, transition_updates.DISCRETE_SPEC)

  def act(self, arrays, observation):
    return numpy_categorical.softmax(self.body(arrays, '', observation, 'head'))

  def propose(self, old, batch):
    return None, old

  def rate(self, arrays, observation, actions):
    outputs = self.body(arrays, '', observation, 'head')
    return outputs.reshape(len(outputs), 3, -1)

  def rate_taken(self, arrays, batch):
    outputs = self.rate(arrays, batch['observation'], None)
    return outputs[np.arange(len(outputs)), batch['action']]

  def losses(self, old, actions, prior, q, batch):
    config = self.config
    probs, dual, kl = self.mpo_e_step('temperature', q, prior, config.epsilon)
    price = self.value_of('alpha_policy')[0]

    def divergence(arrays):
      new = self.act(arrays, batch['next_observation'])
      return np.mean(np.sum(old * np.log(old / new), axis=-1))

    def loss(arrays):
      new = self.act(arrays, batch['next_observation'])
      fit = -np.mean(np.sum(probs * np.log(new), axis=-1))
      return fit + price * divergence(arrays)

    moved = divergence(self.policy)

    def dual_loss(arrays):
      alpha = self.value_of('alpha_policy', arrays)[0]
      return dual(arrays) + alpha * (config.epsilon_policy - moved)

    new = self.act(self.policy, batch['next_observation'])
    diagnostics = {
      'kl': kl,
      'temperature': self.value_of('temperature'),
      'kl_policy': moved,
      'alpha_policy': price,
      'entropy': -np.mean(np.sum(new * np.log(new), axis=-1)),
    }
    return loss, dual_loss, diagnostics
