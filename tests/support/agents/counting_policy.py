"""A recurrent policy with predictable behavior."""

import tensorflow as tf

from repertory.components import interfaces


class CountingPolicy(interfaces.Policy):
  """Policy that counts the steps of each row's episode, and acts by the count.

  The action is (id + count) mod 3, the extras are the count before the step.
  """

  def initial_state(self, environment_ids):
    return {
      # No episode starts with it: it must be reset at the first step.
      'count': tf.fill([len(environment_ids)], 1000),
      'id': tf.constant(list(environment_ids), tf.int32),
    }

  def step(self, observation, state):
    del observation
    count = state['count']
    return interfaces.PolicyOutput(
      action=(state['id'] + count) % 3,
      extras={'count': count},
      state={'count': count + 1, 'id': state['id']},
    )

  def reset_state(self, state, first):
    count = tf.where(first, tf.zeros_like(state['count']), state['count'])
    return {'count': count, 'id': state['id']}
