"""Conformance tests of environments and batches of every family."""

import dataclasses

import dm_env
import psutil
import pytest

from repertory.environments import conformance
from repertory.environments.registry import registry
from support.system import rare_cases

_MID = int(dm_env.StepType.MID)


@dataclasses.dataclass(frozen=True)
class Case:
  """A name and its expected properties.

  Attributes:
    name: As in the registry.
    end_discounts: Discounts of the LAST timesteps within `num_steps` random
      steps of three slots; each occurs at least once.
    num_steps: Number of random steps to take.
    batch_size: Batch size; the seeds are 0, 1, 2, ...
    alone: Whether a slot equals a single environment of its seed.
    random: Whether different seeds give different episodes.
  """

  name: str
  end_discounts: tuple[float, ...]
  num_steps: int = 120
  batch_size: int = 3
  alone: bool = True
  random: bool = True

  def __str__(self):
    return f'{self.name}_{self.batch_size}'


CASES = (
  Case('reach', (0, 1), 420),
  Case('gym:CartPole-v1', (0,)),
  Case('gym:CartPole-v1', (0,), batch_size=8, alone=False),
  Case('gym:LunarLander-v3', (0,), 150),
  Case('gym:CarRacing-v3', (), 10),
  Case('gym:Taxi-v4', (1,), 420),
  Case('atari:Breakout?life_loss=true&max_frames=140&threads=1', (0, 1), 150),
  Case(
    'atari:Pong?max_frames=60&sticky_actions=0.25&stack=2&threads=1', (1,), 60
  ),
  Case('atari:Pong?max_frames=60&noops=0&threads=1', (1,), 60, random=False),
  Case('envpool:CartPole-v1', (0,), alone=False),
  Case('envpool:Pong-v5?threads=1', (), 20, alone=False),
  Case('envpool:CheetahRun-v1', (), 20, alone=False),
  Case('envpool:CarRacing-v2', (), 20, alone=False),
  Case('envpool:Jumanji/Game2048-v1', (), 40, alone=False),
  Case('envpool:Jumanji/BinPack-v2', (0,), 60, alone=False),
  Case(
    'envpool:Play2048-v1?action_mask=legal_action_mask', (), 20, alone=False
  ),
  Case('envpool:MiniGrid-DoorKey-5x5-v0', (), 20, alone=False),
  Case('envpool:FetchReach-v4', (1,), 60, alone=False),
  Case('envpool:BigfishEasy-v0', (), 20, alone=False),
  Case('dm_control:cartpole/swingup', (1,), 1010),
  Case('dm_control:cartpole/swingup?nested=true', (), 20),
  Case('bsuite:catch/0', (0,)),
  Case('bsuite:deep_sea/0', (0,), random=False),
  Case('bsuite:deep_sea_stochastic/0', (0,)),
  Case('bsuite:memory_len/5', (0,)),
  Case('minigrid:MiniGrid-DoorKey-5x5-v0', (1,), 510),
  Case('minigrid:MiniGrid-LavaCrossingS9N1-v0?one_hot=true', (0,), 210),
  Case('minigrid:MiniGrid-MultiRoom-N6-v0?full=true&one_hot=true', (1,), 125),
  Case('minatar:breakout', (0,)),
  Case('minatar:breakout?resize=5&frame_stack=2&flatten', (0,)),
  Case('gym:Taxi-v4?action_mask=action_mask&time_limit=30', (1,)),
  Case('gym:CarRacing-v3?grayscale&resize=32&action_repeat=2', (), 10),
  Case('reach?frame_stack=3&rescale_actions&discretize=3', (0, 1), 420),
  Case('minatar:seaquest?full_actions=false&ramping=false', (0,), 210),
)

_ONE_PER_FAMILY = {case.name.partition(':')[0]: case for case in CASES}


# Checks that do not depend on the name run on one name per family.
_OF_A_FAMILY = ('test_calls',)


def _require(name):
  if name.startswith('dm_control:'):
    pytest.importorskip('dm_control')  # Python 3.13 has none.
  prefix, _, environment_id = name.partition('?')[0].partition(':')
  if prefix == 'envpool':
    # Older versions of Python have one with fewer suites.
    known = pytest.importorskip('envpool').list_all_envs()
    if environment_id not in known:
      pytest.skip(f'There is no {environment_id}.')


def pytest_generate_tests(metafunc):
  if '_case' in metafunc.fixturenames:
    is_of_family = metafunc.function.__name__ in _OF_A_FAMILY
    few = list(_ONE_PER_FAMILY.values())
    cases = few if is_of_family else rare_cases.daily(CASES, few)
    metafunc.parametrize('_case', cases, indirect=True, ids=str)


class TestBatches(conformance.EnvironmentBatchConformance):
  @pytest.fixture(autouse=True)
  def _case(self, request):
    self.case = request.param
    _require(self.case.name)
    self.num_steps = self.case.num_steps
    self.batch_size = self.case.batch_size
    self.end_discounts = self.case.end_discounts
    self.is_random = self.case.random

  def make_environment(self, seed):
    return registry.make(self.case.name, seed)

  def make_batch(self, seeds):
    return registry.make_factory(self.case.name).make_batch(seeds)

  def play(self, *arguments, **settings):
    timesteps = super().play(*arguments, **settings)
    for timestep in timesteps:
      assert (timestep.discount[timestep.step_type == _MID] == 1).all()
    return timesteps

  def test_slots_do_what_environments_do_alone(self):
    self.num_steps = min(self.num_steps, 40)
    if self.case.alone:
      super().test_slots_do_what_environments_do_alone()

  def test_seeds(self):
    self.num_steps = min(self.num_steps, 40)
    super().test_seeds()

  def test_actions_of_ended_slots_are_ignored(self):
    # Enough for environments with short episodes.
    self.num_steps = min(self.num_steps, 110)
    super().test_actions_of_ended_slots_are_ignored()


class TestFamily:
  @pytest.mark.parametrize(
    'name', ['atari:Pong?threads=3', 'envpool:CartPole-v1?threads=3']
  )
  def test_close_ends_the_threads(self, name):
    factory = registry.make_factory(name)
    factory.make_batch([0]).close()  # Starts what a package starts only once.
    process = psutil.Process()
    before = process.num_threads()
    environments = factory.make_batch([0, 1, 2])
    environments.reset()
    assert process.num_threads() > before
    environments.close()
    assert process.num_threads() == before


class TestUnknownNames:
  @pytest.mark.parametrize(
    ('name', 'message'),
    [
      ('atari:Pongg', "`game`.*Did you mean 'Pong'"),
      ('envpool:CartPol-v1', "`id`.*Did you mean 'CartPole-v1'"),
      ('dm_control:cartpole', "`task`.*Did you mean 'cartpole/"),
      ('bsuite:catch/99', "`id`.*Did you mean 'catch/"),
      (
        'minigrid:DoorKey-5x5-v0',
        '`id`.*Did you mean.*MiniGrid-DoorKey-5x5-v0',
      ),
      ('minatar:pong', '`game`: expected one of asterix, .*pong'),
    ],
  )
  def test_unknown(self, name, message):
    _require(name)
    with pytest.raises(ValueError, match=message):
      registry.make_factory(name).make_batch([0, 1])

  @pytest.mark.parametrize(
    'name',
    [
      'gym:CartPole-v1',
      'atari:Pong',
      'minatar:breakout',
      'envpool:CartPole-v1',
      'catch',
    ],
  )
  def test_wrong_seed(self, name):
    with pytest.raises(ValueError, match=r'`seed`.*at least 0, got -1'):
      registry.make_factory(name).make_batch([0] * 7 + [-1])
