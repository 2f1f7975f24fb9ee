"""Tests of `environments/batches/batch.py`."""

import dm_env
import numpy as np
import pytest
from dm_env import specs

from repertory.environments import conformance, wrappers
from repertory.environments.batches import batch
from repertory.environments.games import catch
from support.environments import scripted_environment

Scripted = scripted_environment.ScriptedEnvironment
FIRST, MID, LAST = dm_env.StepType


def make_actions(batch_size, move=1):
  return {
    'move': np.full(batch_size, move, np.int32),
    'force': np.zeros((batch_size, 2), np.float32),
  }


def make_observation(**changes):
  observation = Scripted().make_observation()
  observation.update(changes)
  return observation


class TestActions:
  @pytest.fixture(autouse=True)
  def _set_up(self):
    self.slots = [Scripted(length=1), Scripted(length=9)]
    self.batch = batch.EnvironmentBatch(self.slots)
    self.batch.reset()

  def test_environments_cannot_change_the_callers_actions(self):
    actions = make_actions(2)
    self.batch.step(actions)
    self.slots[0].actions[0]['force'][:] = 7
    np.testing.assert_array_equal(actions['force'], np.zeros((2, 2)))

  @pytest.mark.parametrize(
    ('changes', 'message'),
    [
      ({'move': np.int32([1])}, r"`actions`\['move'\].*\(1,\)"),
      ({'move': np.array([1.0, 2.0])}, 'int32.*float64'),
      ({'jump': np.zeros(2)}, 'keys .*move.*force.*jump'),
    ],
  )
  def test_wrong_actions(self, changes, message):
    with pytest.raises(ValueError, match=message):
      self.batch.step({**make_actions(2), **changes})
    assert self.slots[0].actions == []

  def test_action_that_is_not_finite(self):
    actions = make_actions(2)
    self.batch.step(actions)  # Ends slot 0, whose action is then ignored.
    actions['force'][0] = -np.inf
    self.batch.step(actions)
    actions['force'][:] = [[0, 0.5], [0, -np.inf]]
    with pytest.raises(
      FloatingPointError,
      match=r"^Slot 1, step 3 of its episode: `actions`\['force'\]: expected "
      r'finite numbers, found \[0.0, -inf\]',
    ):
      self.batch.step(actions)
    assert [len(slot.actions) for slot in self.slots] == [1, 2]
    actions['force'][1] = 0
    assert self.batch.step(actions).step_type.tolist() == [LAST, MID]


class Choice(Scripted):
  """Has a single array as observation, and a scalar as action."""

  def observation_spec(self):
    return specs.Array((2, 3), np.float32)

  def make_observation(self):
    return np.ones((2, 3), np.float32)

  def action_spec(self):
    return specs.DiscreteArray(2000, np.int32)


class Dials(Choice):
  """Has two integers as action."""

  def action_spec(self):
    return specs.BoundedArray((2,), np.int32, [3, -1], [6, 1])


def _check_second_step(slots, message):
  environments = batch.EnvironmentBatch(slots)
  environments.reset()
  environments.step(np.zeros(2, np.int32))
  with pytest.raises(batch.EnvironmentContractError, match=message):
    environments.step(np.zeros(2, np.int32))


class TestChoice:
  @pytest.mark.parametrize('action', [-1, 2000])
  def test_range(self, action):
    choices = batch.EnvironmentBatch([Choice(), Choice()])
    choices.reset()
    choices.step(np.array([1, 1999], np.int32))
    with pytest.raises(
      ValueError, match=f'from 0 to 1999, found {action} in slot 1'
    ):
      choices.step(np.array([1, action], np.int32))

  def test_range_of_several_integers(self):
    slots = [Dials() for _ in range(3)]
    dials = batch.EnvironmentBatch(slots)
    dials.reset()
    dials.step(np.array([[3, -1], [6, 1], [4, 0]], np.int32))
    assert slots[1].actions[0].tolist() == [6, 1]
    actions = np.array([[3, -1], [6, 2], [4, 0]], np.int32)
    with pytest.raises(
      ValueError,
      match=r'`actions`: expected integers from \[3, -1\] to \[6, 1\], found '
      r'\[6, 2\] in slot 1',
    ):
      dials.step(actions)

  def test_range_of_observed_integers(self):
    spec = specs.BoundedArray((2,), np.int8, [0, 1], [1, 4])

    class Observed(Choice):
      def observation_spec(self):
        return {'kind': spec}

      def make_observation(self):
        return {'kind': spec.maximum}

    wrong = {'kind': np.array([1, 5], np.int8)}
    _check_second_step(
      [Observed(), Observed(override_step=2, observation=wrong)],
      r"observation\['kind'\]: expected integers from \[0, 1\] to \[1, 4\], "
      r'found \[1, 5\] in slot 1',
    )

  def test_steps_are_counted_from_the_restart(self):
    slots = [Choice(length=2), Choice(length=9)]
    choices = batch.EnvironmentBatch(slots)
    choices.reset()
    for _ in range(3):  # MID, LAST and FIRST in slot 0.
      choices.step(np.zeros(2, np.int32))
    slots[0]._override_step, slots[0]._overrides = 1, {'reward': 'x'}
    with pytest.raises(
      batch.EnvironmentContractError,
      match='Slot 0, step 1 of its episode: reward',
    ):
      choices.step(np.zeros(2, np.int32))


class TestOutputs:
  @pytest.mark.parametrize(
    ('overrides', 'message'),
    [
      ({'reward': np.float32('nan')}, 'reward.*finite.*nan'),
      ({'reward': 1e39}, r'reward.*float32.*1e\+39'),
      ({'discount': 1.5}, r'discount.*\[0, 1\].*1.5'),
      ({'step_type': FIRST}, 'step_type.*MID or .*LAST.*FIRST'),
      (
        {'observation': make_observation(board=np.zeros((1, 3), np.float32))},
        r"observation\['board'\].*\(2, 3\).*\(1, 3\)",
      ),
      (
        {'observation': make_observation(inner=[1, np.zeros(2)])},
        r"observation\['inner'\].*tuple.*list",
      ),
      (
        {'observation': {'bord': 0, 'inner': (0, np.zeros(2))}},
        r"observation: .*keys \['board', 'inner'\].*'bord'",
      ),
    ],
  )
  def test_wrong_timestep(self, overrides, message):
    environments = batch.EnvironmentBatch(
      [Scripted(length=5), Scripted(5, override_step=2, **overrides)]
    )
    environments.reset()
    environments.step(make_actions(2))
    # The message must have both the slot and the problem.
    with pytest.raises(ValueError, match=f'(?s)Slot 1, step 2.*{message}'):
      environments.step(make_actions(2))

  @pytest.mark.parametrize('as_wrappers', [False, True])
  def test_number_that_overflows_single_precision(self, as_wrappers):
    # The batch does the casts of the wrappers, or the wrapper its own.
    class Wide(Choice):
      def observation_spec(self):
        return specs.Array((2,), np.float64)

      def make_observation(self):
        return np.array([3e38, np.inf])

    wide = Wide(override_step=2, observation=np.array([1.0, -4e38]))
    single = wrappers.SinglePrecision(wide)
    step = single.step
    if not as_wrappers:
      environments = batch.EnvironmentBatch([single])
      step = lambda action: environments.step(action[None])  # noqa: E731
    step(np.int32(0))
    observation = step(np.int32(0)).observation
    # Numbers that do not overflow are cast, and an infinity is kept.
    np.testing.assert_array_equal(
      observation.reshape(-1), np.float32([3e38, np.inf])
    )
    with pytest.raises(
      ValueError, match=r'observation: expected .*float32.*-4.*e\+38.*not fit'
    ):
      step(np.int32(0))

  def test_wrong_reset(self):
    environments = batch.EnvironmentBatch(
      [Scripted(override_step=0, step_type=MID)]
    )
    with pytest.raises(ValueError, match=r'Slot 0, step 0.*FIRST.*MID'):
      environments.reset()

  def test_step_after_an_error_resets_all_slots(self):
    slots = [Scripted(9), Scripted(9, override_step=1, reward=np.nan)]
    environments = batch.EnvironmentBatch(slots)
    environments.reset()
    with pytest.raises(ValueError):
      environments.step(make_actions(2))
    timestep = environments.step(make_actions(2))
    np.testing.assert_array_equal(timestep.step_type, [FIRST, FIRST])
    assert [s.num_resets for s in slots] == [2, 2]


class TestNestedBatch(conformance.EnvironmentBatchConformance):
  def make_environment(self, seed):
    return Scripted(length=2 + seed)


class VectorReward(Scripted):
  def reward_spec(self):
    return specs.Array((2,), np.float32)


class TestConstruction:
  def test_empty(self):
    with pytest.raises(ValueError, match=r'`environments`.*at least one'):
      batch.EnvironmentBatch([])

  def test_different_specs(self):
    environments = [catch.Catch(), catch.Catch(), catch.Catch(rows=9)]
    with pytest.raises(
      ValueError, match=r'(?s)observation_spec\(\).*slot 2.*\(9, 5\).*\(10, 5\)'
    ):
      batch.EnvironmentBatch(environments)

  def test_same_environment_twice(self):
    environment = catch.Catch()
    with pytest.raises(ValueError, match='slots 0 and 2 hold the same'):
      batch.EnvironmentBatch([environment, catch.Catch(), environment])

  def test_vector_reward(self):
    with pytest.raises(ValueError, match=r'reward_spec\(\).*scalar.*\(2,\)'):
      batch.EnvironmentBatch([VectorReward()])


class FailingClose(Scripted):
  def close(self):
    super().close()
    raise RuntimeError('The door is stuck.')


class TestClose:
  def test_closes_all_once_and_raises_the_error(self):
    slots = [Scripted(), FailingClose(), Scripted()]
    environments = batch.EnvironmentBatch(slots)
    with pytest.raises(RuntimeError, match='stuck'):
      environments.close()
    environments.close()
    assert [s.num_closes for s in slots] == [1, 1, 1]


class Forgetful(Choice):
  """Has a `step` without `return`."""

  def step(self, action):
    super().step(action)


@pytest.mark.parametrize(
  'wrap',
  [lambda e: e, wrappers.SinglePrecision, lambda e: wrappers.StepLimit(e, 3)],
)
def test_step_without_result(wrap):
  environments = batch.EnvironmentBatch([wrap(Forgetful())])
  environments.reset()
  with pytest.raises(
    batch.EnvironmentContractError,
    match=r'Forgetful: `step` must return a `dm_env\.TimeStep`, got None',
  ):
    environments.step(np.zeros(1, np.int32))
