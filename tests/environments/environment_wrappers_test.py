"""Tests of `environments/wrappers/`."""

import unittest

import dm_env
import numpy as np
import pytest
from dm_env import specs, test_utils

from repertory.environments import wrappers
from repertory.environments.games import catch
from support.environments import scripted_environment

ScriptedEnvironment = scripted_environment.ScriptedEnvironment


class WideEnvironment(dm_env.Environment):
  """Float64 and int64 throughout; observes its last action."""

  def __init__(self, counter=0):
    self.actions = []
    self._counter = counter
    self._fresh = True

  def reset(self):
    self._fresh = False
    return dm_env.restart(self._observe(np.zeros(2)))

  def step(self, action):
    if self._fresh:
      return self.reset()
    self.actions.append(action)
    return dm_env.transition(0.1, self._observe(action['force']))

  def observation_spec(self):
    return {
      'force': specs.BoundedArray((2,), np.float64, -0.1, 0.1),
      'counter': specs.Array((), np.int64),
      'image': specs.Array((1,), np.uint8),
    }

  def action_spec(self):
    return {
      'force': specs.BoundedArray((2,), np.float64, -0.1, 0.1),
      'move': specs.DiscreteArray(3, np.int64),
    }

  def _observe(self, force):
    return {
      'force': force,
      'counter': np.int64(self._counter),
      'image': np.uint8([255]),
    }


# dm_env's mixin calls methods of unittest's TestCase.
class TestConformance(test_utils.EnvironmentTestMixin, unittest.TestCase):
  def make_object_under_test(self):
    stacked = wrappers.FrameStack(WideEnvironment(), 3)
    return wrappers.SinglePrecision(wrappers.StepLimit(stacked, 3))


class TestSinglePrecision:
  def test_values(self):
    inner = WideEnvironment(counter=5)
    environment = wrappers.SinglePrecision(inner)
    assert environment.reset().reward is None
    action = {'force': np.float32([0.05, -0.05]), 'move': np.int32(2)}
    timestep = environment.step(action)
    assert timestep.reward == np.float32(0.1)
    assert timestep.reward.dtype == np.float32
    assert timestep.discount.dtype == np.float32
    dtypes = {k: v.dtype for k, v in timestep.observation.items()}
    assert dtypes == {
      'force': np.float32,
      'counter': np.int32,
      'image': np.uint8,
    }
    np.testing.assert_array_equal(
      timestep.observation['force'], action['force']
    )
    assert timestep.observation['counter'] == 5
    assert inner.actions[0]['force'].dtype == np.float64
    assert inner.actions[0]['move'].dtype == np.int64
    assert inner.actions[0]['move'] == 2

  def test_extreme_actions_stay_within_the_wide_bounds(self):
    # float32(0.1) is larger than 0.1: the bounds must be rounded inwards.
    inner = WideEnvironment()
    narrow = wrappers.SinglePrecision(inner).action_spec()['force']
    wide = inner.action_spec()['force']
    for bound in (narrow.minimum, narrow.maximum):
      wide.validate(np.broadcast_to(bound, (2,)).astype(np.float64))
    assert float(narrow.maximum) == pytest.approx(0.1, abs=5e-8)
    assert float(narrow.minimum) == pytest.approx(-0.1, abs=5e-8)

  def test_bounds_without_a_narrow_number_between_them(self):
    class Narrow(WideEnvironment):
      def action_spec(self):
        return specs.BoundedArray((2,), np.float64, [0, 0.1], [1, 0.1])

    with pytest.raises(
      ValueError,
      match=r'`environment`: expected a number of float32 .* of action',
    ):
      wrappers.SinglePrecision(Narrow())


class TestStepLimit:
  def test_truncates(self):
    inner = ScriptedEnvironment(length=5)
    environment = wrappers.StepLimit(inner, 2)
    timesteps = [environment.step(None) for _ in range(6)]
    assert [t.step_type for t in timesteps] == [0, 1, 2, 0, 1, 2]
    # Two steps into an episode of five: the discount is still 0.5.
    assert timesteps[2].discount == 0.5
    assert timesteps[2].reward == 2
    assert inner.num_resets == 2


class CountedImage(ScriptedEnvironment):
  """Images whose two channels are the step and its double."""

  def observation_spec(self):
    maximum = np.broadcast_to([7, 9], (2, 4, 2))
    return specs.BoundedArray((2, 4, 2), np.uint8, 0, maximum)

  def reset(self):
    self._count = 0
    return self._image(super().reset())

  def step(self, action):
    self._count += 1
    return self._image(super().step(action))

  def _image(self, timestep):
    image = np.zeros((2, 4, 2), np.uint8)
    image[...] = [self._count, 2 * self._count]
    return timestep._replace(observation=image)


class TestChannelsLast:
  def test_transposes_images_alone(self):
    environment = wrappers.ChannelsLast(_ChannelsFirst())
    spec = environment.observation_spec()
    assert spec['image'].shape == (2, 4, 3)
    np.testing.assert_array_equal(spec['image'].maximum[1, 2], [7, 8, 9])
    assert spec['vector'].shape == (3, 5)
    for timestep in (environment.reset(), environment.step(None)):
      image = timestep.observation['image']
      spec['image'].validate(image)
      np.testing.assert_array_equal(image[1, 2], [2, 3, 4])
      assert timestep.observation['vector'].shape == (3, 5)

  def test_needs_an_image(self):
    with pytest.raises(
      ValueError,
      match=r'expected an image .*channels, hei.*, got observation of shape '
      r'\(10, 5\) and dtype float32\.$',
    ):
      wrappers.ChannelsLast(catch.Catch())

  def test_refuses_channels_that_are_last(self):
    shape = (84, 84, 3)
    with pytest.raises(
      ValueError, match=r'Leave out .channels_first'
    ) as caught:
      wrappers.ChannelsLast(_Shaped(specs.Array(shape, np.uint8)))
    assert f'got observation of shape {shape}, which' in str(caught.value)


class _Shaped(ScriptedEnvironment):
  """Has a given observation spec."""

  def __init__(self, spec):
    super().__init__()
    self._spec = spec

  def observation_spec(self):
    return self._spec


class _ChannelsFirst(ScriptedEnvironment):
  def observation_spec(self):
    maximum = np.broadcast_to(np.reshape([7, 8, 9], (3, 1, 1)), (3, 2, 4))
    return {
      'image': specs.BoundedArray((3, 2, 4), np.uint8, 0, maximum),
      'vector': specs.Array((3, 5), np.float32),
    }

  def make_observation(self):
    image = np.zeros((3, 2, 4), np.uint8)
    image[:, 1, 2] = [2, 3, 4]
    return {'image': image, 'vector': np.zeros((3, 5), np.float32)}


class TestFrameStack:
  def test_stacks(self):
    environment = wrappers.FrameStack(ScriptedEnvironment(length=3), 3)
    counts = [
      environment.step(None).observation['inner'][0].tolist() for _ in range(6)
    ]
    assert counts == [
      [0, 0, 0],
      [0, 0, 1],
      [0, 1, 2],
      [1, 2, 3],
      [0, 0, 0],
      [0, 0, 1],
    ]

  def test_images_are_joined_along_their_channels(self):
    environment = wrappers.FrameStack(CountedImage(), 3)
    spec = environment.observation_spec()
    assert spec.shape == (2, 4, 6)
    np.testing.assert_array_equal(spec.maximum[1, 2], [7, 9, 7, 9, 7, 9])
    environment.reset()
    observation = environment.step(None).observation
    spec.validate(observation)
    np.testing.assert_array_equal(observation[1, 2], [0, 0, 0, 0, 1, 2])

  def test_refuses_channels_that_are_first(self):
    environment = _Shaped({'eye': specs.Array((3, 84, 84), np.uint8)})
    with pytest.raises(ValueError, match='got observation') as caught:
      wrappers.FrameStack(environment, 4)
    message = str(caught.value)
    assert "got observation['eye'] of shape (3, 84, 84), which looks" in message
    assert 'FrameStack(ChannelsLast(environment), 4)' in message
    stack = wrappers.FrameStack(wrappers.ChannelsLast(environment), 4)
    assert stack.observation_spec()['eye'].shape == (84, 84, 12)
