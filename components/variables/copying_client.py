"""Variable client that copies from a learner in the same thread."""

from collections.abc import Sequence

import tensorflow as tf

from repertory.components.variables import local_client, shared_client


class CopyingVariableClient(local_client.LocalVariableClient):
  """Copies the current variables of a learner in the same thread.

  For actors whose variables are not the learner's own; otherwise see
  `SharedVariableClient`.
  """

  def __init__(
    self,
    learner: shared_client.Versioned,
    sources: Sequence[tf.Variable],
    variables: Sequence[tf.Variable],
  ):
    """Initializes the client, without copying.

    Args:
      learner: Learner with the version of the sources.
      sources: Variables of the learner.
      variables: Targets of the copies, in the same order.
    """
    super().__init__(local_client.Publisher(sources), variables)
    self._learner = learner

  def update(self, wait: bool = False) -> None:
    if self.version != self._learner.version:
      self._publisher.publish(self._learner.version, self._learner.max_priority)
    super().update(wait)
