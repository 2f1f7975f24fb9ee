"""Update whose settings follow schedules."""

import math
from collections.abc import Mapping

import tensorflow as tf

from repertory.components import interfaces, types
from repertory.components.config import schedules as schedules_lib
from repertory.components.config.settings import SettingError


class ScheduledUpdate(interfaces.UpdateWrapper):
  """Assigns scheduled values to variables before each call of an update.

  The number of calls, one for each learner step, is a variable, so a resumed
  run continues its schedules. The values are logged by their names.

  Attributes:
    num_learner_steps: Expected learner steps of the whole run, the length of
      schedules without their own; None if unknown. See `set_run_length`.
  """

  num_learner_steps: int | None = None

  def __init__(
    self,
    update: interfaces.Update,
    schedules: Mapping[str, schedules_lib.Schedule],
    values: Mapping[str, tf.Variable],
  ):
    """Takes an update that reads `values`, variables by name of a schedule."""
    super().__init__(update)
    self._schedules = dict(schedules)
    self._values = dict(values)
    self._num_calls = tf.Variable(
      0, dtype=tf.int64, trainable=False, name='schedule_calls'
    )

  def __call__(self, sample: types.Sample) -> interfaces.UpdateResult:
    lengths = {n: self._length(n, one) for n, one in self._schedules.items()}
    # In double precision, as single precision cannot count beyond 2²⁴.
    num_calls = tf.cast(self._num_calls.assign_add(1) - 1, tf.float64)
    values = {}
    for name, schedule in self._schedules.items():
      fraction = tf.minimum(num_calls / lengths[name], 1)
      values[name] = tf.cast(_evaluate(schedule, fraction), tf.float32)
      self._values[name].assign(values[name])
    result = interfaces.call_update(self._update, sample)
    if both := sorted(values.keys() & result.metrics.keys()):
      raise ValueError(
        'Metrics of an update must not have names of scheduled settings, '
        f'which are logged; got {", ".join(both)}. Rename them.'
      )
    return result._replace(metrics={**result.metrics, **values})

  def _length(self, name: str, schedule: schedules_lib.Schedule) -> int:
    length = schedule.num_steps or self.num_learner_steps
    if length is None:
      raise SettingError(
        name,
        'must have a length in learner steps where that of the run is '
        f'unknown, got {schedule}. Write '
        f'{schedule[:-1]},steps=10000), or call learners.set_run_length.',
      )
    return length


def set_run_length(update: interfaces.Update, num_learner_steps: int) -> None:
  """Sets the expected learner steps of the run, for schedules over all of it.

  Call it before the update, which may be wrapped in others.
  """
  for module in (update, *update.submodules):
    if isinstance(module, ScheduledUpdate):
      module.num_learner_steps = max(1, num_learner_steps)


def make_values(
  schedules: Mapping[str, schedules_lib.Schedule],
) -> dict[str, tf.Variable]:
  """Returns a variable for each schedule, with the value at its start."""
  return {
    name: tf.Variable(schedule.value(0), trainable=False, name=name)
    for name, schedule in schedules.items()
  }


def _evaluate(
  schedule: schedules_lib.Schedule, fraction: tf.Tensor
) -> tf.Tensor:
  """Returns the value after a fraction in [0, 1], both float64 scalars."""
  if schedule.kind == 'piecewise':
    begins = tf.constant(schedule.fractions, tf.float64)
    reached = tf.reduce_sum(tf.cast(begins <= fraction, tf.int32))
    return tf.gather(tf.constant(schedule.values, tf.float64), reached - 1)
  start, end = schedule.values
  if schedule.kind == 'cosine':
    fraction = 0.5 * (1 - tf.cos(math.pi * fraction))
  return (1 - fraction) * start + fraction * end
