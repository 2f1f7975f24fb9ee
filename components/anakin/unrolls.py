"""Queue of unrolls inside a compiled program."""

from collections.abc import Mapping
from typing import Any

import tensorflow as tf
import tree

from repertory.components import learners, replay, types
from repertory.components.anakin import acting
from repertory.components.config import settings
from repertory.components.runtime import loops
from repertory.components.transports import experience as experience_lib


class UnrollTransport(acting.CompiledTransport):
  """Passes each unroll to one of the next updates, in the order of rows.

  An iteration makes enough unrolls for whole batches: those of N environments
  form several batches, or a batch takes several unrolls per environment. So no
  item outlives an iteration, and only counts are saved.
  """

  def __init__(
    self,
    experience: experience_lib.Experience,
    num_environments: int,
  ):
    """Determines the numbers of unrolls and batches per iteration.

    Raises:
      SettingError: If the batch size and N do not divide each other, or the
        items are not unrolls: `Sequences` across episodes, without burn-in,
        that overlap by one observation.
    """
    batch_size = experience.batch_size
    super().__init__(experience.table, batch_size)
    if batch_size % num_environments and num_environments % batch_size:
      raise settings.SettingError(
        'batch_size',
        'must be a multiple or a divisor of the number of environments where '
        'acting and learning are one program; got '
        f'{batch_size} and {num_environments} environments.',
      )
    items: Any = experience.items
    if not items.are_unrolls:
      raise settings.SettingError(
        'across_episodes',
        'must be true, without burn-in and overlap, for unrolls inside a '
        'compiled program, which are consecutive steps of the environments; '
        f'got {items}.',
      )
    self._length = items.length - 1
    self._num_environments = num_environments
    self._num_rollouts = max(1, batch_size // num_environments)
    self.num_steps = self._length * self._num_rollouts
    self.max_updates = max(1, num_environments // batch_size)
    self._inserts = tf.Variable(0, dtype=tf.int64, trainable=False)

  def collect(self, act, carry, version, max_priority):
    del max_priority

    def roll_out(i, carry):
      del i
      return self._roll_out(act, carry, version)

    if self._num_rollouts == 1:
      carry, (unrolls, episodes) = roll_out(0, carry)
    else:
      carry, rollouts = loops.scan(roll_out, carry, self._num_rollouts)
      unrolls, episodes = tree.map_structure(loops.merge_axes, rollouts)
    num_items = self._num_rollouts * self._num_environments
    self._inserts.assign_add(num_items)
    batches = tree.map_structure(
      lambda x: tf.reshape(x, [-1, self._batch_size, *x.shape[1:]]), unrolls
    )  # [max_updates, B, ...]
    return carry, batches, episodes

  def is_due(self, held, num_updates):
    return num_updates < self.max_updates

  def sample(self, held, num_updates):
    size = self._batch_size
    return types.Sample(
      tree.map_structure(lambda x: tf.gather(x, num_updates), held),
      keys=tf.cast(tf.range(size), tf.uint64),
      probabilities=tf.ones([size], tf.float64),
      table_sizes=tf.fill([size], tf.constant(size, tf.int64)),
    )

  def statuses(self) -> Mapping[str, replay.TableInfo]:
    inserts = int(self._inserts.numpy())
    info = replay.TableInfo(0, self._table.max_size, inserts, inserts)
    return {self._table.name: info}

  @property
  def saved(self):
    return {'inserts': self._inserts}

  def _roll_out(self, act, carry, version):
    """Creates an unroll of each environment, `[N, ...]`, as an adder does."""

    def step(i, carry):
      carry, state = carry
      carry, result, episodes = act(carry)
      extras = result.extras or types.SequenceExtras()
      action, reward, discount, of_step, now = loops.zero_unless(
        result.happened,
        (result.action, result.reward, result.discount, *extras),
      )
      kept = types.Sequence(
        result.observation, result.first, action, reward, discount,
        mask=result.happened, extras=of_step, state=(), version=(),
      )  # fmt: skip
      is_start = tf.equal(i, 0)
      state = tree.map_structure(
        lambda kept, now: tf.where(is_start, now, kept), state, now
      )
      return (carry, state), (kept, episodes)

    size = self._num_environments
    signature = self._table.signature
    state = tree.map_structure(
      lambda spec: tf.zeros([size, *spec.shape], spec.dtype), signature.state
    )
    (carry, state), (unroll, episodes) = loops.scan(
      step, (carry, state), self._length
    )
    last = carry.observation, tf.equal(carry.step_type, acting.FIRST)
    moments = tree.map_structure(
      lambda before, last: tf.concat([before, last[None]], 0),
      (unroll.observation, unroll.first),
      last,
    )
    unroll = unroll._replace(observation=moments[0], first=moments[1])
    unroll = learners.swap_leading_axes(unroll)  # [N, T, ...]
    versions = tf.fill([size], version)
    unroll = unroll._replace(state=state, version=versions)
    return carry, (unroll, episodes)
