"""Tests of the metric `target_age` of learners."""

import tensorflow as tf
import tree

from repertory.components import interfaces, learners, types

_SAMPLE = types.Sample(
  data=types.SampleWithTargets(
    data=tf.constant([1.0, 2.0]),
    target=tf.constant([3.0, 4.0]),
    version=tf.constant([0, 3], tf.int64),
  ),
  keys=tf.constant([0, 1], tf.uint64),
  probabilities=tf.constant([0.5, 0.5], tf.float64),
  table_sizes=tf.constant([2, 2], tf.int64),
)
_SPEC = tree.map_structure(
  lambda leaf: tf.TensorSpec(leaf.shape, leaf.dtype), _SAMPLE
)


class _Update(interfaces.Update):
  def __init__(self):
    super().__init__()
    self.bias = tf.Variable(0.0)

  @property
  def exports(self):
    return {'policy': [self.bias]}

  def __call__(self, sample):
    errors = sample.data.target - sample.data.data - self.bias
    self.bias.assign_add(0.1 * tf.reduce_mean(errors))
    return interfaces.UpdateResult({'error': tf.reduce_mean(errors)})


class _Rows(list):
  write = list.append


def test_is_of_the_learner_step_that_takes_them():
  rows = _Rows()
  learner = learners.GradientLearner(
    _Update(), iter([_SAMPLE] * 6), _SPEC, logger=rows
  )
  for _ in range(6):
    learner.step()
  # The sixth step begins with variables of step 5: (5 − 0 + 5 − 3) / 2.
  assert rows[5]['target_age'] == 3.5
  assert rows[4]['target_age'] == 2.5
