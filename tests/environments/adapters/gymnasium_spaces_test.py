"""Tests of `environments/adapters/gymnasium_spaces.py`, through the adapter."""

import numpy as np
import pytest
import tree
from dm_env import specs
from gymnasium import spaces

from repertory.environments import conformance
from repertory.environments.adapters import gymnasium_adapter
from repertory.environments.batches import batch
from repertory.environments.wrappers import single_precision
from support.environments import fake_gym_env

FakeGymEnv = fake_gym_env.FakeGymEnv


@pytest.mark.parametrize(
  ('space', 'observation', 'spec', 'expected'),
  [
    pytest.param(
      # -2, -1, 0 become 0, 1, 2.
      spaces.Discrete(3, start=-2),
      np.int64(-1),
      specs.DiscreteArray(3, np.int64),
      np.int64(1),
      id='discrete_with_start',
    ),
    pytest.param(
      spaces.Box(-np.inf, np.inf, (2,), np.float64),
      np.array([1.0, 2.0]),
      specs.Array((2,), np.float64),
      np.array([1.0, 2.0]),
      id='open_box',
    ),
    pytest.param(
      spaces.Box(np.float32([0, 0]), np.float32([1, np.inf])),
      [0.5, 2.0],
      specs.BoundedArray((2,), np.float32, [0, 0], [1, np.inf]),
      np.float32([0.5, 2.0]),
      id='half_open_box',
    ),
    pytest.param(
      spaces.MultiBinary(3),
      np.array([0, 1, 1], np.int8),
      specs.BoundedArray((3,), np.int8, 0, 1),
      np.array([0, 1, 1], np.int8),
      id='multi_binary',
    ),
    pytest.param(
      # 3 values from 5, 2 values from 1.
      spaces.MultiDiscrete([3, 2], start=[5, 1]),
      np.array([7, 1]),
      specs.BoundedArray((2,), np.int64, [5, 1], [7, 2]),
      np.array([7, 1]),
      id='multi_discrete_with_start',
    ),
  ],
)
def test_observation(space, observation, spec, expected):
  environment = gymnasium_adapter.GymnasiumAdapter(
    FakeGymEnv(space, observation=observation), 0
  )
  assert type(environment.observation_spec()) is type(spec)
  assert environment.observation_spec() == spec
  for timestep in (environment.reset(), environment.step(0)):
    np.testing.assert_array_equal(timestep.observation, expected)
    assert timestep.observation.dtype == expected.dtype


@pytest.mark.parametrize(
  'space',
  [
    spaces.Discrete(3, start=5),
    spaces.MultiDiscrete([[3, 2], [1, 4]], start=[[5, 1], [-1, 0]]),
    spaces.MultiBinary((2, 2)),
    spaces.Box(-2, 3, (2,), np.int32),
    spaces.Dict(
      move=spaces.MultiDiscrete([3, 2], start=[5, 1]),
      arm=spaces.Tuple([spaces.Box(-1, 1, (2,)), spaces.Discrete(2)]),
    ),
  ],
  ids=str,
)
def test_actions_of_the_spec_are_of_the_space(space):
  gym_envs = [FakeGymEnv(action_space=space) for _ in range(3)]
  environments = batch.EnvironmentBatch(
    [
      single_precision.SinglePrecision(
        gymnasium_adapter.GymnasiumAdapter(gym_env, 0)
      )
      for gym_env in gym_envs
    ]
  )
  spec, random = environments.action_spec(), np.random.default_rng(0)
  environments.reset()
  for _ in range(20):
    actions = tree.map_structure(
      lambda leaf: conformance.draw_actions(leaf, 3, random), spec
    )
    environments.step(actions)
  for gym_env in gym_envs:
    assert len(gym_env.actions) == 20
    for one in gym_env.actions:
      # Any integer dtype is valid for a Discrete.
      assert space.contains(one)


@pytest.mark.parametrize(
  ('space', 'action', 'message'),
  [
    (spaces.Discrete(2), 1.0, 'action_space: .* 0 to 1, found 1.0'),
    (spaces.Discrete(3, start=5), 7, 'action_space: .* 0 to 2, found 7'),
    (spaces.Dict(a=spaces.Discrete(2)), {'b': 0}, 'action_space.*a.*b'),
    (spaces.Tuple([spaces.Discrete(2)]), (), 'action_space.*1 parts'),
  ],
)
def test_wrong_action(space, action, message):
  gym_env = FakeGymEnv(action_space=space)
  environment = gymnasium_adapter.GymnasiumAdapter(gym_env, 0)
  environment.reset()
  with pytest.raises(ValueError, match=message):
    environment.step(action)
  assert gym_env.actions == []


def test_discrete_action_is_a_scalar():
  gym_env = FakeGymEnv(action_space=spaces.Discrete(2))
  environment = gymnasium_adapter.GymnasiumAdapter(gym_env, 0)
  environment.reset()
  environment.step(np.array(1, np.int64))
  assert type(gym_env.actions[0]) is np.int64


@pytest.mark.parametrize('value', [0, 3, 1.5])
def test_wrong_observation(value):
  space = spaces.Dict(x=spaces.Discrete(2, start=1))
  environment = gymnasium_adapter.GymnasiumAdapter(
    FakeGymEnv(space, observation={'x': value}), 0
  )
  with pytest.raises(
    batch.EnvironmentContractError,
    match=rf"^observation_space\['x'\]: .* 1 to 2, found {value}\.$",
  ):
    environment.reset()


def test_wrong_observation_in_a_batch():
  gym_env = FakeGymEnv(spaces.Discrete(4, start=2), observation=2)
  adapter = gymnasium_adapter.GymnasiumAdapter(gym_env, 0)
  environments = batch.EnvironmentBatch([adapter])
  environments.reset()
  gym_env.observation = 1
  with pytest.raises(
    batch.EnvironmentContractError,
    match='^Slot 0, step 1 of its episode: observation_space: expected an '
    r'integer from 2 to 5, found 1\.$',
  ):
    environments.step(np.zeros(1, np.int32))


def test_unsupported_space():
  nested = spaces.Dict(hand=spaces.Tuple([spaces.Text(5)]))
  with pytest.raises(
    ValueError, match=r"observation_space\['hand'\]\[0\].*got Text"
  ):
    gymnasium_adapter.GymnasiumAdapter(FakeGymEnv(nested), 0)
