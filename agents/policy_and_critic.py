"""What agents have in common that learn a policy from a critic's ratings."""

from typing import Any, NamedTuple

import sonnet as snt
import tensorflow as tf

from repertory.components import learners


class Networks(NamedTuple):
  """The networks of an agent, of which there are two: learned, and target ones.

  Attributes:
    policy: Maps observations `[B, ...]` to what an agent acts by, `[B, P]`.
    critic: A module that rates actions, by a value or more each; some have
      parts that an agent asks for.
  """

  policy: snt.Module
  critic: Any

  @property
  def variables(self) -> list[tf.Variable]:
    """Those of both."""
    return [*self.policy.variables, *self.critic.variables]


def make_optimizers(
  networks: Networks, config: Any
) -> list[learners.ClippedAdam]:
  """Makes the policy's optimizer and the critic's.

  Args:
    networks: Those that are learned.
    config: Has `learning_rate`, `adam_epsilon` and `max_gradient_norm`, which
      is of each by itself.
  """
  return [
    learners.ClippedAdam(
      network.trainable_variables,
      config.learning_rate,
      config.adam_epsilon,
      config.max_gradient_norm,
    )
    for network in networks
  ]
