"""The contracts of environments and batches, for every family of names."""

import dataclasses

import dm_env
import numpy as np
import psutil
import tree
from absl.testing import absltest, parameterized
from dm_env import specs

from repertory.environments import registry

_FIRST, _MID, _LAST = (int(step_type) for step_type in dm_env.StepType)


@dataclasses.dataclass(frozen=True)
class Case:
  """A name and what is true of it.

  Attributes:
    name: As in the registry.
    end_discounts: Those that ends have within `num_steps` random steps of three
      slots; each comes at least once.
    num_steps: How many random steps to take.
    batch_size: Of the batch, whose seeds are 0, 1, 2, ...
    alone: Whether a slot does what an environment of its seed does alone.
    random: Whether seeds make a difference.
  """

  name: str
  end_discounts: tuple[float, ...]
  num_steps: int = 120
  batch_size: int = 3
  alone: bool = True
  random: bool = True


CASES = (
  Case('catch', (0,)),
  Case('memory_chain:4', (0,)),
  Case('gym:CartPole-v1', (0,)),
  Case('gym:CartPole-v1', (0,), batch_size=8, alone=False),
  Case('gym:Pendulum-v1', (1,), 420),
  Case('gym:Taxi-v4', (1,), 420),
  Case('atari:Breakout', (0,), 420),
  Case('atari:Breakout?life_loss=true&max_frames=140', (0, 1), 150),
  Case('atari:Pong?max_frames=60&sticky_actions=0.25&stack=2', (1,), 60),
  Case(
    'atari:Pong?max_frames=60&noops=0&full_actions=true', (1,), 60, random=False
  ),
  Case('envpool:CartPole-v1', (0,), alone=False),
  Case('envpool:Pendulum-v1', (1,), 420, alone=False),
  Case('envpool:FrozenLake-v1', (0,), alone=False),
  Case('envpool:Pong-v5?threads=1', (), 20, alone=False),
  Case('envpool:CheetahRun-v1', (), 20, alone=False),
  Case('envpool:CarRacing-v2', (), 20, alone=False),
  Case('dm_control:cartpole/swingup', (1,), 1010),
  Case('dm_control:cartpole/swingup?nested=true', (), 20),
  Case('bsuite:catch/0', (0,)),
  Case('bsuite:bandit_noise/0', (0,), 20),
  Case('bsuite:cartpole_noise/0', (0,), 120),
  Case('bsuite:cartpole_swingup/0', (0,), 1010),
  Case('bsuite:deep_sea/0', (0,), random=False),
  Case('bsuite:deep_sea_stochastic/0', (0,)),
  Case('bsuite:discounting_chain/0', (0,), 210, random=False),
  Case('bsuite:memory_len/5', (0,)),
  Case('bsuite:memory_size/5', (0,)),
  Case('bsuite:mountain_car_scale/0', (0,), 1010),
  Case('bsuite:umbrella_distract/0', (0,)),
  Case('minigrid:MiniGrid-DoorKey-5x5-v0', (1,), 510),
  Case('minigrid:MiniGrid-LavaCrossingS9N1-v0?one_hot=true', (0,), 210),
  Case('minigrid:MiniGrid-MultiRoom-N6-v0?full=true&one_hot=true', (1,), 130),
  Case('minatar:breakout', (0,)),
  Case('minatar:seaquest?full_actions=false&ramping=false', (0,), 210),
  Case('minatar:asterix?sticky_actions=0', (0,), 210),
)

_NAMED = tuple((f'{case.name}_{case.batch_size}', case) for case in CASES)

_ONE_PER_FAMILY = tuple(
  {named[1].name.partition(':')[0]: named for named in _NAMED}.values()
)


class Actions:
  """Random actions `[B, ...]`, of one seed."""

  def __init__(self, spec, batch_size):
    self._spec = spec
    self._batch_size = batch_size
    self._random = np.random.default_rng(0)

  def draw(self):
    return tree.map_structure(self._draw, self._spec)

  def _draw(self, spec):
    shape = (self._batch_size, *spec.shape)
    if spec.dtype.kind == 'i':
      drawn = self._random.integers(spec.minimum, spec.maximum + 1, shape)
    else:
      drawn = self._random.uniform(spec.minimum, spec.maximum, shape)
    return drawn.astype(spec.dtype)


def row(nest, slot):
  return tree.map_structure(lambda array: array[slot], nest)


def same(one, other):
  pairs = zip(tree.flatten(one), tree.flatten(other), strict=True)
  return all(np.array_equal(a, b) for a, b in pairs)


def run(factory, seeds, num_steps, spoil=lambda actions, ended: actions):
  """Returns the timesteps of a fresh batch, and closes it."""
  environments = factory.make_batch(seeds)
  actions = Actions(environments.action_spec(), len(seeds))
  timesteps = [environments.reset()]
  for _ in range(num_steps):
    ended = timesteps[-1].step_type == _LAST
    timesteps.append(environments.step(spoil(actions.draw(), ended)))
  environments.close()
  return timesteps


class FamilyTest(parameterized.TestCase):
  @parameterized.named_parameters(*_NAMED)
  def test_environment(self, case):
    environment = registry.make(case.name, seed=0)
    self.addCleanup(environment.close)
    actions = Actions(environment.action_spec(), 1)
    timestep = environment.step(row(actions.draw(), 0))
    self.assertTrue(timestep.first())  # A fresh one ignores the action.
    discounts = set()
    for _ in range(case.num_steps):
      self.check_timestep(environment, timestep)
      ended = timestep.last()
      timestep = environment.step(row(actions.draw(), 0))
      self.assertEqual(timestep.first(), ended)
      if timestep.last():
        discounts.add(float(timestep.discount))
    self.assertContainsSubset(discounts, case.end_discounts)
    self.assertTrue(environment.reset().first())
    self.assertTrue(environment.reset().first())

  def check_timestep(self, environment, timestep):
    tree.map_structure(
      lambda spec, value: spec.validate(value),
      environment.observation_spec(),
      timestep.observation,
    )
    if timestep.first():
      self.assertIsNone(timestep.reward)
      self.assertIsNone(timestep.discount)
      return
    environment.reward_spec().validate(timestep.reward)
    environment.discount_spec().validate(timestep.discount)
    if timestep.mid():
      # One of bsuite and those of the suite have other discounts than 1.
      self.assertEqual(timestep.discount, 1)

  @parameterized.named_parameters(*_NAMED)
  def test_batch(self, case):
    factory = registry.make_factory(case.name)
    environments = factory.make_batch(list(range(case.batch_size)))
    self.addCleanup(environments.close)
    single = factory(0)
    self.addCleanup(single.close)
    self.check_specs(environments, single, case.batch_size)
    actions = Actions(environments.action_spec(), case.batch_size)
    timestep = environments.step(actions.draw())  # A reset.
    self.assertEqual(timestep.step_type.tolist(), [_FIRST] * case.batch_size)
    kept, discounts = [], set()
    for _ in range(case.num_steps):
      self.check_batched(environments, timestep)
      kept = [*kept[-5:], (timestep, tree.map_structure(np.copy, timestep))]
      ended = timestep.step_type == _LAST
      timestep = environments.step(actions.draw())
      np.testing.assert_array_equal(timestep.step_type == _FIRST, ended)
      last = timestep.step_type == _LAST
      discounts |= set(timestep.discount[last].tolist())
      self.assertTrue((timestep.discount[~last] == 1).all())
      self.assertTrue((timestep.reward[ended] == 0).all())
      for old, copy in kept:
        self.assertTrue(same(old, copy), 'A step changed arrays of another.')
    self.assertSetEqual(discounts, set(case.end_discounts))
    environments.close()
    environments.close()

  def check_specs(self, environments, single, batch_size):
    self.assertEqual(environments.batch_size, batch_size)
    for name in (
      'observation_spec',
      'action_spec',
      'reward_spec',
      'discount_spec',
    ):
      spec = getattr(environments, name)()
      self.assertEqual(spec, getattr(single, name)())
      for leaf in tree.flatten(spec):
        self.assertLessEqual(leaf.dtype.itemsize, 4)
    self.assertEqual(environments.reward_spec().dtype, np.float32)
    self.assertEqual(environments.discount_spec().dtype, np.float32)

  def check_batched(self, environments, timestep):
    shape = (environments.batch_size,)
    self.assertEqual(timestep.step_type.dtype, np.int32)
    self.assertEqual(timestep.reward.dtype, np.float32)
    self.assertEqual(timestep.discount.dtype, np.float32)
    for array in timestep[:3]:
      self.assertEqual(array.shape, shape)

    def check(spec, array):
      self.assertEqual(array.shape, (*shape, *spec.shape))
      self.assertEqual(array.dtype, spec.dtype)
      for one in array:
        spec.validate(one)

    tree.map_structure(
      check, environments.observation_spec(), timestep.observation
    )

  @parameterized.named_parameters(*_NAMED)
  def test_seeds(self, case):
    factory = registry.make_factory(case.name)
    num_steps = min(case.num_steps, 40)
    seeds = list(range(case.batch_size))
    timesteps = run(factory, seeds, num_steps)
    self.assertTrue(same(timesteps, run(factory, seeds, num_steps)))
    if case.random:
      # Of every step the observation and the reward.
      shown = [(t.observation, t.reward) for t in timesteps]
      self.assertFalse(same(row(shown, 0), row(shown, 1)))
      others = run(factory, [seed + 100 for seed in seeds], num_steps)
      self.assertFalse(same(timesteps, others))

  @parameterized.named_parameters(*_NAMED)
  def test_action_of_an_ended_slot_is_ignored(self, case):
    factory = registry.make_factory(case.name)
    seeds = list(range(case.batch_size))
    # Enough for those that end soon.
    num_steps = min(case.num_steps, 110)

    def spoil(actions, ended):
      def replace(array):
        array = array.copy()
        array[ended] = 100
        return array

      return tree.map_structure(replace, actions)

    self.assertTrue(
      same(
        run(factory, seeds, num_steps),
        run(factory, seeds, num_steps, spoil),
      )
    )

  @parameterized.named_parameters(
    *(named for named in _NAMED if named[1].alone)
  )
  def test_slot_does_what_an_environment_does_alone(self, case):
    factory = registry.make_factory(case.name)
    num_steps = min(case.num_steps, 40)
    timesteps = run(factory, list(range(3)), num_steps)
    alone = factory(2)
    self.addCleanup(alone.close)
    actions = Actions(alone.action_spec(), 3)
    timestep = alone.reset()
    for batched in timesteps:
      self.assertEqual(batched.step_type[2], timestep.step_type)
      self.assertTrue(same(row(batched.observation, 2), timestep.observation))
      if not timestep.first():
        self.assertEqual(batched.reward[2], timestep.reward)
        self.assertEqual(batched.discount[2], timestep.discount)
      timestep = alone.step(row(actions.draw(), 2))

  @parameterized.named_parameters(*_ONE_PER_FAMILY)
  def test_wrong_actions(self, case):
    environments = registry.make_factory(case.name).make_batch([0, 1, 2])
    self.addCleanup(environments.close)
    spec = environments.action_spec()
    environments.reset()
    wrong = np.zeros((2, *spec.shape), spec.dtype)
    with self.assertRaisesRegex(ValueError, '`actions`.*one action.*axis of 3'):
      environments.step(wrong)
    if isinstance(spec, specs.DiscreteArray):
      wrong = np.array([0, spec.num_values, 0], spec.dtype)
      with self.assertRaisesRegex(
        ValueError, f'from 0 to {spec.num_values - 1}'
      ):
        environments.step(wrong)

  @parameterized.parameters('atari:Pong?threads=3', 'envpool:Pong-v5?threads=3')
  def test_close_ends_the_threads(self, name):
    factory = registry.make_factory(name)
    factory.make_batch([0]).close()  # What a package starts only once.
    process = psutil.Process()
    before = process.num_threads()
    environments = factory.make_batch([0, 1, 2])
    environments.reset()
    self.assertGreater(process.num_threads(), before)
    environments.close()
    self.assertEqual(process.num_threads(), before)


class UnknownNamesTest(parameterized.TestCase):
  @parameterized.parameters(
    ('atari:Pongg', "`game`.*Did you mean 'Pong'"),
    ('atari:space_invaders', "`game`.*Did you mean 'SpaceInvaders'"),
    ('envpool:CartPol-v1', "`id`.*Did you mean 'CartPole-v1'"),
    ('dm_control:cartpole', "`task`.*Did you mean 'cartpole/"),
    ('dm_control:cheetah/walk', '`task`.*Did you mean.*cheetah/run'),
    ('bsuite:catch', "`id`.*Did you mean 'catch/"),
    ('bsuite:catch/99', "`id`.*Did you mean 'catch/"),
    ('minigrid:DoorKey-5x5-v0', '`id`.*Did you mean.*MiniGrid-DoorKey-5x5-v0'),
    ('minatar:pong', '`game`: expected one of asterix, .*pong'),
  )
  def test_unknown(self, name, message):
    with self.assertRaisesRegex(ValueError, message):
      registry.make(name, seed=0)
    with self.assertRaisesRegex(ValueError, message):
      registry.make_factory(name).make_batch([0, 1])

  def test_no_seeds(self):
    with self.assertRaisesRegex(ValueError, '`seeds`'):
      registry.make_factory('catch').make_batch([])

  @parameterized.parameters(
    'gym:CartPole-v1',
    'atari:Pong',
    'minatar:breakout',
    'minigrid:MiniGrid-Empty-5x5-v0',
    'bsuite:catch/0',
    'envpool:CartPole-v1',
    'dm_control:cartpole/swingup',
    'catch',
  )
  def test_wrong_seed(self, name):
    with self.assertRaisesRegex(ValueError, '`seed`.*at least 0, got -1'):
      registry.make(name, seed=-1)
    with self.assertRaisesRegex(ValueError, '`seed`.*at least 0, got -1'):
      registry.make_factory(name).make_batch([0] * 7 + [-1])

  @parameterized.parameters(
    'atari:Pong',
    'envpool:CartPole-v1',
    'catch',
    'gym:CartPole-v1',
    'minatar:breakout',
    'bsuite:catch/0',
    'dm_control:cartpole/swingup',
    'minigrid:MiniGrid-Empty-5x5-v0',
  )
  def test_large_seeds(self, name):
    environments = registry.make_factory(name).make_batch([2**32 - 1, 2**40])
    environments.reset()
    environments.close()


if __name__ == '__main__':
  absltest.main()
