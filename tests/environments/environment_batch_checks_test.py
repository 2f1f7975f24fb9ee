"""Tests of what a batch refuses: actions, and what environments say."""

import dm_env
import numpy as np
import scripted_environment
from absl.testing import absltest, parameterized
from dm_env import specs

from repertory.environments import batch

Scripted = scripted_environment.ScriptedEnvironment
FIRST, MID, _ = dm_env.StepType


def make_actions(batch_size, move=1):
  return {
    'move': np.full(batch_size, move, np.int32),
    'force': np.zeros((batch_size, 2), np.float32),
  }


def make_observation(**changes):
  observation = Scripted().make_observation()
  observation.update(changes)
  return observation


class ActionsTest(parameterized.TestCase):
  def setUp(self):
    super().setUp()
    self.slots = [Scripted(length=1), Scripted(length=9)]
    self.batch = batch.EnvironmentBatch(self.slots)
    self.batch.reset()

  def test_each_slot_gets_its_row(self):
    actions = {
      'move': np.array([3, 2], np.int32),
      'force': np.array([[0.1, 0.2], [0.3, 0.4]], np.float32),
    }
    self.batch.step(actions)
    np.testing.assert_array_equal(self.slots[0].actions[0]['move'], 3)
    np.testing.assert_array_equal(
      self.slots[1].actions[0]['force'], np.array([0.3, 0.4], np.float32)
    )

  def test_ended_slot_is_reset_without_its_action(self):
    self.batch.step(make_actions(2))  # Ends slot 0.
    self.batch.step(make_actions(2, move=3))
    self.assertEqual([a['move'] for a in self.slots[0].actions], [1])
    self.assertEqual([a['move'] for a in self.slots[1].actions], [1, 3])
    self.assertEqual([s.num_resets for s in self.slots], [2, 1])

  def test_wider_actions_are_cast(self):
    self.batch.step({'move': [1, 2], 'force': np.zeros((2, 2), np.float64)})
    self.assertEqual(self.slots[1].actions[0]['move'].dtype, np.int32)
    self.assertEqual(self.slots[1].actions[0]['force'].dtype, np.float32)

  def test_environments_cannot_change_the_callers_actions(self):
    actions = make_actions(2)
    self.batch.step(actions)
    self.slots[0].actions[0]['force'][:] = 7
    np.testing.assert_array_equal(actions['force'], np.zeros((2, 2)))

  @parameterized.named_parameters(
    ('no_batch_axis', {'move': np.int32(1)}, r"`actions`\['move'\].*\(2,\)"),
    ('one_row', {'move': np.int32([1])}, r"`actions`\['move'\].*\(1,\)"),
    ('float', {'move': np.array([1.0, 2.0])}, 'int32.*float64'),
    ('too_large', {'move': np.array([1, 2**31])}, 'does not fit'),
    ('extra_axis', {'force': np.zeros((2, 1, 2), 'f')}, r'\(2, 1, 2\)'),
    (
      'broadcasting',
      {'force': np.zeros((2, 1), 'f')},
      r"\['force'\].*\(2, 1\)",
    ),
    ('extra_key', {'jump': np.zeros(2)}, 'keys .*move.*force.*jump'),
  )
  def test_wrong_actions(self, changes, message):
    with self.assertRaisesRegex(ValueError, message):
      self.batch.step({**make_actions(2), **changes})
    self.assertEqual(self.slots[0].actions, [])


class Choice(Scripted):
  """Has one array as observation, and one of many numbers as action."""

  def observation_spec(self):
    return specs.Array((2, 3), np.float32)

  def make_observation(self):
    return np.ones((2, 3), np.float32)

  def action_spec(self):
    return specs.DiscreteArray(2000, np.int32)


class ChoiceTest(parameterized.TestCase):
  @parameterized.product(
    size=[2, 200], action=[-1, 2000, 2**31 - 1, -(2**31), 1500, 1999, 0]
  )
  def test_range(self, size, action):
    slots = [Choice() for _ in range(size)]
    choices = batch.EnvironmentBatch(slots)
    choices.reset()
    actions = np.ones(size, np.int32)
    actions[1] = action
    if 0 <= action < 2000:
      choices.step(actions)
      self.assertEqual(slots[1].actions, [action])
    else:
      with self.assertRaisesRegex(
        ValueError, f'from 0 to 1999, found {action} in slot 1'
      ):
        choices.step(actions)

  @parameterized.parameters(
    (np.ones((1, 3), np.float32), r'\(2, 3\).*\(1, 3\)'),
    (np.ones((2, 3), np.complex64), r'float32[\s\S]*complex64'),
    ([[1.0] * 3] * 2, 'the nest'),
  )
  def test_wrong_observation(self, observation, message):
    slots = [Choice(), Choice(override_step=2, observation=observation)]
    choices = batch.EnvironmentBatch(slots)
    choices.reset()
    choices.step(np.zeros(2, np.int32))
    with self.assertRaisesRegex(
      batch.EnvironmentContractError,
      f'Slot 1, step 2 of its episode: observation: expected .*{message}',
    ):
      choices.step(np.zeros(2, np.int32))

  def test_steps_are_counted_from_the_restart(self):
    slots = [Choice(length=2), Choice(length=9)]
    choices = batch.EnvironmentBatch(slots)
    choices.reset()
    for _ in range(3):  # MID, LAST and FIRST in slot 0.
      choices.step(np.zeros(2, np.int32))
    slots[0]._override_step, slots[0]._overrides = 1, {'reward': 'x'}
    with self.assertRaisesRegex(
      batch.EnvironmentContractError, 'Slot 0, step 1 of its episode: reward'
    ):
      choices.step(np.zeros(2, np.int32))


class OutputsTest(parameterized.TestCase):
  @parameterized.named_parameters(
    ('nan_reward', {'reward': np.float32('nan')}, 'reward.*finite.*nan'),
    ('inf_reward', {'reward': -np.inf}, 'reward.*finite.*inf'),
    ('overflowing_reward', {'reward': 1e39}, r'reward.*float32.*1e\+39'),
    ('overflowing_array', {'reward': np.array(1e39)}, 'reward.*not fit'),
    ('no_reward', {'reward': None}, 'reward.*float32.*None'),
    ('vector_reward', {'reward': np.ones(1)}, r'reward.*\(\).*shape \(1,\)'),
    ('list_reward', {'reward': [1.0]}, r'reward.*nest \[1.0\]'),
    ('text_reward', {'reward': '1'}, 'reward.*float32.*1'),
    ('nan_discount', {'discount': float('nan')}, 'discount.*nan'),
    ('large_discount', {'discount': 1.5}, r'discount.*\[0, 1\].*1.5'),
    ('negative_discount', {'discount': np.float32(-0.1)}, 'discount.*-0.1'),
    ('vector_discount', {'discount': np.ones(2)}, r'discount.*\(2,\)'),
    ('first', {'step_type': FIRST}, 'step_type.*MID or .*LAST.*FIRST'),
    ('no_step_type', {'step_type': 1}, 'step_type.*found 1'),
    (
      'broadcasting',
      {'observation': make_observation(board=np.zeros((1, 3), np.float32))},
      r"observation\['board'\].*\(2, 3\).*\(1, 3\)",
    ),
    (
      'scalar_for_array',
      {'observation': make_observation(board=np.float32(1))},
      r"observation\['board'\].*\(2, 3\).*\(\)",
    ),
    (
      'float_for_integer',
      {'observation': make_observation(inner=(0.5, np.zeros(2, np.float32)))},
      r"observation\['inner'\]\[0\].*int32.*0.5",
    ),
    (
      'large_integer',
      {'observation': make_observation(inner=(2**31, np.zeros(2)))},
      r"observation\['inner'\]\[0\].*int32.*2147483648.*not fit",
    ),
    (
      'list_for_array',
      {'observation': make_observation(inner=(1, [0.0, 0.0]))},
      r"observation\['inner'\]\[1\].*nest",
    ),
    (
      'short_tuple',
      {'observation': make_observation(inner=(1,))},
      r"observation\['inner'\].*2 parts.*1 parts",
    ),
    (
      'list_for_tuple',
      {'observation': make_observation(inner=[1, np.zeros(2)])},
      r"observation\['inner'\].*tuple.*list",
    ),
    (
      'other_key',
      {'observation': {'bord': 0, 'inner': (0, np.zeros(2))}},
      r"observation: .*keys \['board', 'inner'\].*'bord'",
    ),
    ('no_nest', {'observation': np.zeros(3)}, 'observation.*ndarray'),
  )
  def test_wrong_timestep(self, overrides, message):
    environments = batch.EnvironmentBatch(
      [Scripted(length=5), Scripted(5, override_step=2, **overrides)]
    )
    environments.reset()
    environments.step(make_actions(2))
    # Both the place and what was wrong must be said.
    with self.assertRaisesRegex(ValueError, f'(?s)Slot 1, step 2.*{message}'):
      environments.step(make_actions(2))

  def test_wrong_reset(self):
    environments = batch.EnvironmentBatch(
      [Scripted(override_step=0, step_type=MID)]
    )
    with self.assertRaisesRegex(ValueError, 'Slot 0, step 0.*FIRST.*MID'):
      environments.reset()

  def test_first_observation_is_checked(self):
    environments = batch.EnvironmentBatch(
      [Scripted(override_step=0, observation=make_observation(board=1.0))]
    )
    with self.assertRaisesRegex(ValueError, r"Slot 0, step 0.*\['board'\]"):
      environments.reset()

  def test_step_after_an_error_resets_all_slots(self):
    slots = [Scripted(9), Scripted(9, override_step=1, reward=np.nan)]
    environments = batch.EnvironmentBatch(slots)
    environments.reset()
    with self.assertRaises(ValueError):
      environments.step(make_actions(2))
    timestep = environments.step(make_actions(2))
    np.testing.assert_array_equal(timestep.step_type, [FIRST, FIRST])
    self.assertEqual([s.num_resets for s in slots], [2, 2])

  @parameterized.named_parameters(
    ('python', 0.25, 1),
    ('float64', np.float64(0.25), np.float64(1)),
    ('array', np.array(0.25), np.array(1.0, np.float32)),
    ('boolean_discount', 0.25, True),
  )
  def test_scalars_of_any_kind(self, reward, discount):
    environments = batch.EnvironmentBatch(
      [Scripted(override_step=1, reward=reward, discount=discount)]
    )
    environments.reset()
    timestep = environments.step(make_actions(1))
    np.testing.assert_array_equal(timestep.reward, np.float32([0.25]))
    np.testing.assert_array_equal(timestep.discount, np.float32([1.0]))

  def test_compatible_observations_are_cast(self):
    observation = make_observation(inner=(3, np.array([0.5, 1.5])))
    environments = batch.EnvironmentBatch(
      [Scripted(override_step=1, observation=observation)]
    )
    environments.reset()
    inner = environments.step(make_actions(1)).observation['inner']
    self.assertEqual([x.dtype for x in inner], [np.int32, np.float32])
    np.testing.assert_array_equal(inner[0], [3])
    np.testing.assert_array_equal(inner[1], [[0.5, 1.5]])


if __name__ == '__main__':
  absltest.main()
