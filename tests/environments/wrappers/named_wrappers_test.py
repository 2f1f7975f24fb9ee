"""Tests of wrappers that are options of environment names."""

import dm_env
import numpy as np
import pytest
from dm_env import specs

from repertory.environments import wrappers
from repertory.environments.batches import batch, layout
from repertory.environments.registry import registry
from repertory.environments.values import argument_checks

_HERE = f'{__name__}:Rows'


class Rows(dm_env.Environment):
  """Episodes of `length` steps, with rewards 1, 2 and so on."""

  def __init__(self, seed: int = 0, length: int = 5, masked: str = ''):
    self._random = np.random.default_rng(seed)
    self._length, self._masked = length, masked
    self._t = length
    self.actions = []
    self.info = {}

  def observation_spec(self):
    image = specs.BoundedArray((6, 9, 3), np.uint8, 0, 255)
    spec = {'image': image, 'flag': specs.Array((2,), bool)}
    if self._masked:
      spec[self._masked] = specs.BoundedArray((3,), np.int8, 0, 1)
    return spec

  def action_spec(self):
    if self._masked:
      return specs.DiscreteArray(3)
    return specs.BoundedArray((2,), np.float32, [0, -4], [1, 4])

  def _observe(self):
    image = self._random.integers(256, size=(6, 9, 3), dtype=np.uint8)
    observation = {'image': image, 'flag': np.array([True, False])}
    mask = np.array([1, 0, self._t % 2], np.int8)
    self.info = {'possible': mask}
    return observation | ({self._masked: mask} if self._masked else {})

  def reset(self):
    self._t = 0
    return dm_env.restart(self._observe())

  def step(self, action):
    if self._t == self._length:
      return self.reset()
    self._t += 1
    self.actions.append(action)
    observation = self._observe()
    if self._t == self._length:
      return dm_env.termination(float(self._t), observation)
    return dm_env.transition(float(self._t), observation, 0.5)


def _make(options):
  return registry.make(f'{_HERE}?{options}'.rstrip('?'), 0)


def _area_mean(image, i, j, size):
  """Mean over the area of a pixel of the resized image, by 60 × 90 points."""
  fine = np.repeat(np.repeat(image, 10, 0), 10, 1).astype(float)
  fine = np.repeat(np.repeat(fine, size, 0), size, 1)
  height, width = fine.shape[0] // size, fine.shape[1] // size
  part = fine[i * height : (i + 1) * height, j * width : (j + 1) * width]
  return part.mean((0, 1))


@pytest.mark.parametrize('size', [4, 6, 5])
def test_resize_takes_the_mean_of_the_area(size):
  image = Rows(3).reset().observation['image']
  resized = wrappers.resize(Rows().observation_spec(), size)
  found = resized.convert({'image': image, 'flag': 0})['image']
  assert found.shape == (size, size, 3)
  assert found.dtype == np.uint8
  expected = [
    [_area_mean(image, i, j, size) for j in range(size)] for i in range(size)
  ]
  np.testing.assert_allclose(found, expected, atol=0.501)


def test_images_grow_by_repetition():
  spec = specs.Array((1, 2, 1), np.float32)
  found = wrappers.resize(spec, 4).convert(np.float32([[[1], [2]]]))
  assert found[..., 0].tolist() == [[1, 1, 2, 2]] * 4


def test_grayscale_is_the_luma():
  before, after = (_make(o).reset().observation for o in ('', 'grayscale'))
  expected = np.rint(before['image'] @ [0.299, 0.587, 0.114])[..., None]
  np.testing.assert_array_equal(after['image'], expected)
  assert after['flag'].tolist() == [True, False]


def test_flatten_concatenates_in_order_of_the_spec():
  before, after = (_make(o).reset().observation for o in ('', 'flatten'))
  expected = [*before['image'].ravel(), 1, 0]
  np.testing.assert_array_equal(after, np.float32(expected))
  spec = _make('flatten').observation_spec()
  assert (spec.minimum.tolist(), spec.maximum.max()) == ([0] * 164, 255)


def test_order_is_that_of_the_name():
  small = _make('resize=2&grayscale&frame_stack=3').observation_spec()
  assert small['image'].shape == (2, 2, 3)
  assert small['flag'].shape == (2, 3)
  with pytest.raises(argument_checks.ArgumentError, match='expected an image'):
    _make('flatten&resize=2')


@pytest.mark.parametrize(
  'option',
  ['frame_stack=0', 'frame_stack=1025', 'resize=0', 'time_limit=-1'],
)
def test_numbers_out_of_range_are_refused(option):
  name, _, value = option.partition('=')
  with pytest.raises(
    argument_checks.ArgumentError, match=f'{name} must be from .* got .{value}'
  ):
    _make(option)


def test_repeats_end_with_the_episode():
  environment = _make('action_repeat=3&length=5')
  environment.reset()
  one, other = (environment.step(np.float32([0, i])) for i in range(2))
  assert (one.reward, one.discount, one.step_type) == (6, 0.125, 1)
  assert (other.reward, other.discount, other.step_type) == (9, 0, 2)
  assert environment.step(np.float32([0, 0])).first()
  assert [a.tolist() for a in environment.actions] == [[0, 0]] * 3 + [
    [0, 1]
  ] * 2


def test_time_limits_truncate():
  environment = _make('time_limit=2')
  environment.reset()
  environment.step(np.float32([0, 0]))
  timestep = environment.step(np.float32([0, 0]))
  assert (timestep.step_type, timestep.discount) == (2, 0.5)
  assert environment.step(np.float32([0, 0])).first()


def test_actions_are_scaled_and_discretized():
  environment = _make('rescale_actions')
  assert environment.action_spec() == specs.BoundedArray(
    (2,), np.float32, -1, 1
  )
  environment.reset()
  environment.step(np.float32([-1, 0.5]))
  assert environment.actions[-1].tolist() == [0, 2]
  environment = _make('discretize=5')
  assert environment.action_spec() == specs.BoundedArray((2,), np.int32, 0, 4)
  environment.reset()
  environment.step(np.int32([4, 1]))
  assert environment.actions[-1].tolist() == [1, -2]


@pytest.mark.parametrize(
  'options', ['masked=action_mask&action_mask=action_mask',
              'masked=legal&action_mask=legal']
)  # fmt: skip
def test_action_masks_become_booleans(options):
  environment = _make(options)
  spec = environment.observation_spec()
  assert spec['action_mask'].dtype == np.bool_
  assert set(spec) == {'image', 'flag', 'action_mask'}
  assert environment.reset().observation['action_mask'].tolist() == [
    True, False, False,
  ]  # fmt: skip


def _make_masked(seed, **settings):
  return wrappers.ActionMask(Rows(seed, masked='legal', **settings), 'legal')


def test_masked_actions_are_refused():
  environments = batch.EnvironmentBatch([_make_masked(0), _make_masked(1)])
  environments.reset()
  environments.step(np.int32([0, 0]))
  environments.step(np.int32([2, 0]))
  with pytest.raises(ValueError, match=r'Slot 1, step 2 .*allows, got 1'):
    environments.step(np.int32([0, 1]))


class _Stuck(Rows):
  def _observe(self):
    observation = super()._observe()
    if self._t in (self._stuck_at, self._length):
      observation['legal'] = np.zeros(3, np.int8)
    return observation


def test_masks_allow_something_until_the_end():
  def make(stuck_at):
    made = _Stuck(masked='legal', length=3)
    made._stuck_at = stuck_at
    environment = wrappers.ActionMask(made, 'legal')
    return batch.EnvironmentBatch([environment, _make_masked(1, length=3)])

  environments = make(None)
  environments.reset()
  assert [
    environments.step(np.int32([0, 0])).step_type[0] for _ in range(4)
  ] == [1, 1, 2, 0]
  environments = make(2)
  environments.reset()
  environments.step(np.int32([0, 0]))
  with pytest.raises(layout.EnvironmentContractError, match='Slot 0, step 2'):
    environments.step(np.int32([0, 0]))


@pytest.mark.parametrize('is_nested', [False, True])
def test_masks_fit_the_actions(is_nested):
  mask = specs.BoundedArray((3 if is_nested else 4,), np.int8, 0, 1)

  class Other(Rows):
    def observation_spec(self):
      legal = {'part': mask} if is_nested else mask
      return super().observation_spec() | {'legal': legal}

  with pytest.raises(argument_checks.ArgumentError, match=r'shape \(3,\)'):
    wrappers.ActionMask(Other(masked='legal'), 'legal')


def test_continuous_actions_have_no_masks():
  with pytest.raises(argument_checks.ArgumentError, match='integers with'):
    _make('action_mask=possible')


def test_masks_are_observed_if_asked():
  name = 'tensor:gates?observe_mask&flatten'
  environments = registry.make_batch(name, [0, 1])
  observation = environments.reset().observation
  assert observation['observation'].shape == (2, 25 + 32)
  np.testing.assert_array_equal(
    observation['observation'][:, 25:], observation['action_mask']
  )
  with pytest.raises(argument_checks.ArgumentError, match="'action_mask', got"):
    _make('observe_mask')


def test_compiled_environments_take_no_wrappers():
  factory = registry.make_factory('tensor:catch?frame_stack=2')
  assert factory.make_batch([0]).observation_spec().shape == (10, 5, 2)
  with pytest.raises(argument_checks.ArgumentError, match='got frame_stack'):
    factory.make_tensor_environment()
