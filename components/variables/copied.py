"""A copy of variables of a learner that is in the same thread."""

from collections.abc import Sequence

import tensorflow as tf

from repertory.components.variables import published, shared


class CopiedVariables(published.PublishedVariables):
  """Copies what a learner of the same thread has now.

  For those who need other variables than those that act, see
  `SharedVariables`.
  """

  def __init__(
    self,
    learner: shared.Versioned,
    sources: Sequence[tf.Variable],
    variables: Sequence[tf.Variable],
  ):
    """Copies nothing yet.

    Args:
      learner: Tells of which learner step the sources are.
      sources: Variables of the learner.
      variables: Take the values, in the same order.
    """
    super().__init__(published.Publisher(sources), variables)
    self._learner = learner

  def update(self, wait: bool = False) -> None:
    if self.version != self._learner.version:
      self._publisher.publish(self._learner.version, self._learner.max_priority)
    super().update(wait)
