"""The contract of batched timesteps, as tests for any batch of environments."""

import itertools

import dm_env
import numpy as np
import tree

from repertory.environments import batch

FIRST = dm_env.StepType.FIRST
LAST = dm_env.StepType.LAST


class BatchConformanceMixin:
  """Compares a batch with the same environments, stepped one by one.

  Subclasses override `make_environment`, and `make_batch` if the batch is more
  than these side by side; mix in before `absltest.TestCase`.
  """

  batch_size = 3
  num_steps = 60

  def make_environment(self, slot):
    """Returns an environment for the slot, alike for equal slots.

    Within `num_steps` the slots must end at different times.
    """
    raise NotImplementedError

  def make_batch(self):
    """Returns the batch that must behave like `make_environment`'s."""
    return batch.EnvironmentBatch(
      [self.make_environment(slot) for slot in range(self.batch_size)]
    )

  def setUp(self):
    super().setUp()
    self.slots = range(self.batch_size)
    self.batch = self.make_batch()
    self.addCleanup(self.batch.close)
    self.twins = [self.make_environment(slot) for slot in self.slots]
    for twin in self.twins:
      self.addCleanup(twin.close)
    self._random = np.random.default_rng(0)

  def sample_actions(self):
    """Returns random actions `[B, ...]`; unbounded ones are normal."""

    def sample(spec):
      shape = (self.batch_size, *spec.shape)
      if spec.dtype.kind == 'i':
        actions = self._random.integers(spec.minimum, spec.maximum + 1, shape)
      else:
        actions = self._random.uniform(-1, 1, shape)
      return actions.astype(spec.dtype)

    return tree.map_structure(sample, self.batch.action_spec())

  def assert_batch(self, timestep):
    """Checks structure, shapes and dtypes of a batch of timesteps."""
    shape = (self.batch_size,)
    self.assertIsInstance(timestep, dm_env.TimeStep)
    self.assertEqual(timestep.step_type.shape, shape)
    self.assertEqual(timestep.step_type.dtype, np.int32)
    self.assertEqual((timestep.step_type == LAST).dtype, bool)
    self.assertEqual(timestep.reward.shape, shape)
    self.assertEqual(timestep.reward.dtype, self.batch.reward_spec().dtype)
    self.assertEqual(timestep.discount.shape, shape)
    self.assertEqual(timestep.discount.dtype, self.batch.discount_spec().dtype)
    spec = self.batch.observation_spec()
    tree.assert_same_structure(spec, timestep.observation)

    def check(leaf_spec, leaf):
      self.assertEqual(leaf.shape, (*shape, *leaf_spec.shape))
      self.assertEqual(leaf.dtype, leaf_spec.dtype)

    tree.map_structure(check, spec, timestep.observation)

  def assert_slot(self, timestep, slot, expected):
    """Checks that a row of the batch says what one environment says."""
    self.assertEqual(timestep.step_type[slot], expected.step_type)
    if expected.first():
      self.assertEqual(timestep.reward[slot], 0)
      self.assertEqual(timestep.discount[slot], 1)
    else:
      self.assertEqual(timestep.reward[slot], expected.reward)
      self.assertEqual(timestep.discount[slot], expected.discount)
    tree.map_structure(
      lambda array, row: np.testing.assert_array_equal(array[slot], row),
      timestep.observation,
      expected.observation,
    )

  def test_specs_have_no_batch_axis(self):
    twin = self.twins[0]
    self.assertEqual(self.batch.batch_size, self.batch_size)
    self.assertEqual(self.batch.observation_spec(), twin.observation_spec())
    self.assertEqual(self.batch.action_spec(), twin.action_spec())
    self.assertEqual(self.batch.reward_spec(), twin.reward_spec())
    self.assertEqual(self.batch.discount_spec(), twin.discount_spec())

  def test_slots_are_independent(self):
    timestep = self.batch.reset()
    self.assert_batch(timestep)
    for slot in self.slots:
      self.assert_slot(timestep, slot, self.twins[slot].reset())
    ends = np.zeros(self.batch_size, int)
    ended_alone = False
    for _ in range(self.num_steps):
      actions = self.sample_actions()
      previous, timestep = timestep, self.batch.step(actions)
      self.assert_batch(timestep)
      for slot in self.slots:
        if previous.step_type[slot] == LAST:
          expected = self.twins[slot].reset()
          self.assertEqual(timestep.step_type[slot], FIRST)
        else:
          action = tree.map_structure(lambda a, row=slot: a[row], actions)
          expected = self.twins[slot].step(action)
        self.assert_slot(timestep, slot, expected)
      last = timestep.step_type == LAST
      ends += last
      ended_alone |= last.any() and not last.all()
    self.assertTrue(ended_alone, 'No slot ended alone: take other lengths.')
    self.assertGreater(ends.min(), 1, 'A slot did not end twice.')

  def test_reset_begins_all_episodes(self):
    self.batch.reset()
    self.batch.step(self.sample_actions())
    timestep = self.batch.reset()
    self.assert_batch(timestep)
    np.testing.assert_array_equal(timestep.step_type, [FIRST] * self.batch_size)
    np.testing.assert_array_equal(timestep.reward, [0] * self.batch_size)
    np.testing.assert_array_equal(timestep.discount, [1] * self.batch_size)

  def test_first_step_is_a_reset(self):
    timestep = self.batch.step(self.sample_actions())
    self.assert_batch(timestep)
    for slot in self.slots:
      self.assert_slot(timestep, slot, self.twins[slot].reset())

  def test_arrays_are_fresh(self):
    timesteps = [self.batch.reset()]
    copies = [tree.map_structure(np.copy, timesteps[0])]
    for _ in range(5):
      actions = self.sample_actions()
      timesteps.append(self.batch.step(actions))
      copies.append(tree.map_structure(np.copy, timesteps[-1]))
    for timestep, copy in zip(timesteps, copies, strict=True):
      tree.map_structure(np.testing.assert_array_equal, timestep, copy)
    leaves = [leaf for timestep in timesteps for leaf in tree.flatten(timestep)]
    for one, other in itertools.combinations(leaves, 2):
      self.assertFalse(np.shares_memory(one, other))
