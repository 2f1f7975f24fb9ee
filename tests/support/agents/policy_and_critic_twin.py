"""Twins of updates of a policy and a critic."""

import numpy as np
import tensorflow as tf

from support.agents import (
  acting_policies,
  numeric_gradients,
  numpy_categorical,
  numpy_dqn,
  transition_updates,
)


class Twin:
  """Online and target parameters of an update, as arrays by name.

  Attributes:
    update: The update of a builder, with random online networks: initial
      variables may be 0 or small, which would be too simple a case.
  """

  def __init__(self, builder, spec=transition_updates.CONTINUOUS_SPEC):
    tf.random.set_seed(0)
    self.config = builder.config
    self.update = builder.make_update(builder.make_network(spec), spec)
    acting_policies.fill(self.update._online.variables)
    self.policy, self.critic = map(
      transition_updates.arrays, self.update._online
    )
    self.target_policy, self.target_critic = map(
      transition_updates.arrays, self.update._target
    )
    self.num_steps = 0
    self._descents = {}

  def descend(self, name, loss):
    """Takes a gradient step of 'policy' or 'critic'; returns the norm."""
    if name not in self._descents:
      config = self.config
      self._descents[name] = numeric_gradients.Descent(
        config.learning_rate, config.adam_epsilon, config.max_gradient_norm
      )
    moved, norm = self._descents[name].step(loss, getattr(self, name))
    setattr(self, name, moved)
    return norm

  def copy_to_target(self):
    """Counts a step, and copies the networks in each period."""
    self.num_steps += 1
    if self.num_steps % self.config.target_update_period == 0:
      self.target_policy, self.target_critic = self.policy, self.critic

  def check(self, batches, jit_compile=None):
    """Checks the update against `step` after each batch."""
    online, target = self.update._online, self.update._target
    transition_updates.check_steps(
      self.update,
      self.step,
      batches,
      lambda: [
        (online.policy, self.policy),
        (online.critic, self.critic),
        (target.policy, self.target_policy),
        (target.critic, self.target_critic),
      ],
      jit_compile,
    )


class CategoricalTwin(Twin):
  """Twin with a categorical critic of actions."""

  def __init__(self, builder):
    super().__init__(builder)
    self.support = numpy_categorical.support(self.config)

  def probs(self, arrays, observation, action):
    x = np.concatenate([observation, action], axis=-1)
    x = numeric_gradients.layer_norm_mlp(arrays, 'critic/', x)
    logits = numeric_gradients.linear(arrays, 'critic/head', x)
    return numpy_categorical.softmax(logits)

  def value(self, observation, action):
    return self.probs(self.critic, observation, action) @ self.support

  def improve_critic(self, batch, action_t):
    """Takes a step on the loss of r + γ Z(s', a'); returns metrics, sizes."""
    observation, action = batch['observation'], transition_updates.scaled(batch)
    target = numpy_categorical.project(
      batch['reward'],
      self.config.discount * batch['discount'],
      self.probs(self.target_critic, batch['next_observation'], action_t),
      self.support,
    )
    weights = numpy_dqn.weights(batch, self.config)

    def divergences(arrays):
      probs = self.probs(arrays, observation, action)
      return numpy_categorical.divergences(target, probs)

    def loss(arrays):
      return np.mean(weights * divergences(arrays))

    sizes = divergences(self.critic)
    return {
      'q_value': np.mean(self.value(observation, action)),
      'share_at_ends': np.mean(target[:, 0] + target[:, -1]),
      'critic_loss': loss(self.critic),
      'critic_gradient_norm': self.descend('critic', loss),
    }, sizes
