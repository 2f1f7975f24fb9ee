"""Tests of user-defined environments by name."""

import contextlib
import pickle
import sys

import dm_env
import gymnasium
import numpy as np
import pytest

from repertory.environments.batches import vector_batch
from repertory.environments.registry import registry
from repertory.environments.rendering import rendering
from repertory.environments.values import argument_checks

_OWN = """
  from repertory.environments.games import catch

  class Own(catch.Catch):
    def __init__(self, seed, size: int = 5, step_size=0.5, *, name: str = 'n'):
      super().__init__(seed=seed)
      self.seed, self.size, self.step_size = seed, size, step_size
      self.name = name

  class Proxy:
    def __init__(self, seed):
      self._own = Own(seed)

    def __getattr__(self, name):
      return getattr(self._own, name)
"""

_GYMNASIUM = """
  import gymnasium
  import numpy as np

  class Own(gymnasium.Env):
    metadata = {'render_modes': ['rgb_array'], 'render_fps': 7}
    observation_space = gymnasium.spaces.Box(0, 1, (2,), np.float64)
    action_space = gymnasium.spaces.Discrete(2)

    def __init__(self, render_mode=None, size: int = 3):
      self.render_mode, self.size = render_mode, size

    def render(self):
      return np.full((4, 3, 3), 9, np.uint8)

    def reset(self, *, seed=None, options=None):
      super().reset(seed=seed)
      self._count = 0
      return self.np_random.uniform(size=2), {}

    def step(self, action):
      self._count += 1
      end = self._count == self.size
      return self.np_random.uniform(size=2), 1.0, end, False, {}

  def make(size: int = 3):
    return gymnasium.wrappers.TimeLimit(Own(size=size), 100)

  gymnasium.register('OwnByModule-v0', Own, kwargs={'size': 4})

  class Screen(gymnasium.Env):
    observation_space = gymnasium.spaces.Box(0, 255, (3, 36, 40), np.uint8)
    action_space = gymnasium.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
      screen = np.zeros((3, 36, 40), np.uint8)
      screen[:, 5, 7] = 1, 2, 3
      return screen, {}

    def step(self, action):
      return self.reset()[0], 1.0, False, False, {}

  gymnasium.register('OwnScreen-v0', Screen)
"""


def _length(environments):
  """Returns the length of the first episode, which is equal in all slots."""
  timestep, length = environments.reset(), 0
  while timestep.step_type[0] != dm_env.StepType.LAST:
    timestep = environments.step(np.zeros(len(timestep.reward), np.int32))
    length += 1
  return length


class TestOfDmEnv:
  @pytest.mark.parametrize(
    ('options', 'expected'),
    [
      ('', (5, 0.5, 'n')),
      ('?size=-7', (-7, 0.5, 'n')),  # By its annotation.
      ('?step_size=2', (5, 2.0, 'n')),  # By its default.
      ('?size=9&name=None&step_size=1e-3', (9, 1e-3, 'None')),
    ],
  )
  def test_options(self, write_module, options, expected):
    write_module('own_module', _OWN)
    inner = registry.make(f'own_module:Own{options}', seed=3).environment
    assert (inner.size, inner.step_size, inner.name) == expected
    assert type(inner.step_size) is float
    assert inner.seed == 3

  def test_needs_no_base_class(self, write_module):
    write_module('own_module', _OWN)
    assert registry.make('own_module:Proxy', seed=3).reset().first()

  def test_can_be_pickled(self, write_module):
    write_module('own_module', _OWN)
    factory = registry.make_factory('own_module:Own?size=4')
    pickled = pickle.dumps(factory)
    del sys.modules['own_module']  # As in another process.
    copy = pickle.loads(pickled)
    assert copy == factory
    assert copy(seed=1).environment.size == 4


class TestOfGymnasium:
  @pytest.fixture(autouse=True)
  def _module(self, write_module):
    for name in ('OwnByModule-v0', 'OwnScreen-v0'):
      gymnasium.registry.pop(name, None)
    write_module('own_gymnasium', _GYMNASIUM)

  @pytest.mark.parametrize('thing', ['Own', 'make'])
  def test_is_adapted(self, thing):
    environment = registry.make(f'own_gymnasium:{thing}?size=6', seed=5)
    assert environment.observation_spec().dtype == np.float32
    observation = environment.reset().observation
    expected = np.random.Generator(np.random.PCG64(5)).uniform(size=2)
    np.testing.assert_allclose(observation, expected, rtol=1e-6)
    length = 0
    while not environment.step(0).last():
      length += 1
    assert length == 5

  def test_rendering(self):
    factory = rendering.enable(registry.make_factory('own_gymnasium:Own'))
    with contextlib.closing(factory.make_batch([1, 2])) as environments:
      environments.reset()
      assert rendering.take(environments, [1])[0].shape == (1, 4, 3, 3)
      assert rendering.rate(environments) == 7

  @pytest.mark.parametrize('size', [1, 8])
  def test_registered_by_its_module(self, size):
    factory = registry.make_factory('gym:own_gymnasium:OwnByModule-v0')
    assert 'own_gymnasium' not in sys.modules  # Until one is made.
    assert factory(0).observation_spec().shape == (2,)
    assert _length(factory.make_batch([0] * size)) == 4

  @pytest.mark.parametrize(
    'name', ['own_gymnasium:Screen', 'gym:own_gymnasium:OwnScreen-v0']
  )
  def test_channels_that_are_first(self, name):
    factory = registry.make_factory(f'{name}?channels_first=true')
    assert factory(0).reset().observation.shape == (36, 40, 3)
    environments = factory.make_batch([0, 1])
    assert environments.observation_spec().shape == (36, 40, 3)
    timestep = environments.reset()
    for _ in range(2):
      np.testing.assert_array_equal(
        timestep.observation[:, 5, 7], [[1, 2, 3]] * 2
      )
      timestep = environments.step(np.zeros(2, np.int32))
    assert registry.make(name, 0).observation_spec().shape == (3, 36, 40)

  def test_module_that_registers_something_else(self):
    with pytest.raises(ValueError, match="mean 'OwnByModule-v0'"):
      registry.make('gym:own_gymnasium:OwnByModul-v0', 0)
    for make in (
      lambda factory: factory(0),
      lambda factory: factory.make_batch([0] * 8),
    ):
      with pytest.raises(
        argument_checks.ArgumentError, match="no module 'own_gymnasiun'"
      ):
        make(registry.make_factory('gym:own_gymnasiun:OwnByModule-v0'))


_FACTORIES = """
  from repertory.environments.batches import batch
  from repertory.environments.games import catch
  from repertory.environments import tensor
  from repertory.environments.tensor import catch as tensor_catch

  class Factory:
    def __init__(self, rows: int = 4):
      self.rows = rows

    def __call__(self, seed):
      return catch.Catch(rows=self.rows, seed=seed)

    def make_batch(self, seeds):
      environments = batch.EnvironmentBatch([self(seed) for seed in seeds])
      environments.is_own = True
      return environments

  FACTORY = Factory(rows=6)

  class Board(tensor_catch.TensorCatch):
    def __init__(self, rows: int = 4):
      super().__init__(rows=rows, columns=3)

  BOARD = tensor.Factory(Board)
"""


class TestOfFactories:
  @pytest.mark.parametrize(
    ('thing', 'rows'), [('Factory', 4), ('Factory?rows=8', 8), ('FACTORY', 6)]
  )
  def test_batch_is_its_own(self, write_module, thing, rows):
    write_module('own_factories', _FACTORIES)
    factory = registry.make_factory(f'own_factories:{thing}')
    assert factory(0).observation_spec().shape == (rows, 5)
    environments = factory.make_batch([0, 1])
    assert environments.is_own
    assert environments.reset().observation.shape == (2, rows, 5)
    with pytest.raises(ValueError, match='can be compiled with the agent'):
      registry.make_tensor_environment(factory)

  @pytest.mark.parametrize(
    ('thing', 'rows'), [('Board', 4), ('Board?rows=7', 7), ('BOARD', 4)]
  )
  def test_tensor_environment(self, write_module, thing, rows):
    write_module('own_factories', _FACTORIES)
    factory = registry.make_factory(f'own_factories:{thing}')
    tensor_environment = registry.make_tensor_environment(factory)
    assert tensor_environment.observation_spec().shape == (rows, 3)
    assert factory(0).observation_spec().shape == (rows, 3)
    environments = factory.make_batch([0, 1])
    assert isinstance(environments, vector_batch.VectorBatch)
    assert environments.reset().observation.shape == (2, rows, 3)


_WRONG = """
  from repertory.environments.games import catch
  number = 5
  def needs(seed, size: int, *, speed): pass
  def gives_number(seed): return 5
  def takes_no_seed(): return catch.Catch(seed=0)
  def raises(seed): raise ValueError('my own words')
  def refused(seed): return catch.Catch(rows=1, seed=seed)
  class Batches:
    def __init__(self): raise OSError('no disk')
    def make_batch(self, seeds): pass
"""


class TestWrong:
  @pytest.mark.parametrize(
    ('thing', 'parts'),
    [
      ('number', ['a callable that takes a seed', 'is of type int']),
      ('neds', ["has no 'neds'", "'needs'"]),
      ('needs', [':needs?size=...&speed=...; got']),
      ('needs?size=x&speed=1', ["size must be of type int, got 'x'"]),
      ('needs?sise=3', ["'sise'. Did you mean 'size'", 'size=..., speed=...']),
      ('needs?seed=3', ["got 'seed'"]),
      ('Batches', ['it failed', 'line 10, in __init__', 'OSError: no disk']),
    ],
  )
  def test_factory_is_refused(self, write_module, thing, parts):
    write_module('own_wrong', _WRONG)
    with pytest.raises(argument_checks.ArgumentError) as raised:
      registry.make_factory(f'own_wrong:{thing}')
    assert raised.value.argument == 'name'
    for part in parts:
      assert part in str(raised.value)

  @pytest.mark.parametrize(
    ('thing', 'parts'),
    [
      ('gives_number', ['dm_env.Environment or a gymn', 'd builtins.int.']),
      ('takes_no_seed', ['it has no argument `seed`']),
      ('raises', ['it failed:', 'line 7, in raises', 'ValueError: my own wo']),
      ('refused', ['`rows`: expected an integer of at least 2, got 1.']),
    ],
  )
  def test_result_is_refused(self, write_module, thing, parts):
    write_module('own_wrong', _WRONG)
    factory = registry.make_factory(f'own_wrong:{thing}')
    for make in (lambda: factory(0), lambda: factory.make_batch([0, 1])):
      with pytest.raises(argument_checks.ArgumentError) as raised:
        make()
      for part in parts:
        assert part in str(raised.value)

  def test_seeds(self, write_module):
    write_module('own_module', _OWN)
    factory = registry.make_factory('own_module:Own')
    with pytest.raises(ValueError, match=r'`seed`.*at least 0, got -1'):
      factory(-1)
    with pytest.raises(ValueError, match='`seeds`'):
      factory.make_batch([])

  def test_module_raises(self, write_module):
    write_module('own_broken', 'import unheard_of')
    with pytest.raises(ValueError, match=r'line 1, in <module>(?s:.)*unheard'):
      registry.make_factory('own_broken:make')


class TestNames:
  def test_family_wins(self, write_module):
    for family, message in (
      ('catch', 'expected catch'),
      ('gym', "a registered Gymnasium environment, got 'Own'"),
    ):
      write_module(family, _OWN)
      with pytest.raises(ValueError, match=message):
        registry.make(f'{family}:Own', 0)
    # Within a package, the name is different.
    write_module('own_package.catch', _OWN)
    assert registry.make('own_package.catch:Own', 0).reset().first()

  @pytest.mark.parametrize(
    ('name', 'suggestion'),
    [
      ('atary:Pong', "'atari'"),
      ('own_nam:make', "'own_name'"),
      ('tensr_own:make', "'tensor_own'"),  # Near a family, too.
      ('own_name.py:make', "'own_name'"),
      ('own_name.make', "'own_name:make'"),
      ('./own_name.py:make', "'own_name:make'"),
    ],
  )
  def test_suggestion(self, write_module, name, suggestion):
    write_module('own_name', _OWN)
    write_module('tensor_own', _OWN)
    with pytest.raises(ValueError) as raised:
      registry.make_factory(name)
    text = str(raised.value)
    assert f'Did you mean {suggestion}?' in text
    assert text.count('Did you mean') == 1

  def test_nothing_is_imported_for_other_names(self, write_module):
    for name in ('gym', 'memory_chain', 'pyglet', 'dqn'):
      write_module(name, 'raise RuntimeError')
    before = list(sys.path)
    registry.make_factory('memory_chain:30')(0).close()
    registry.make_factory('gym:CartPole-v1')(0).close()
    with pytest.raises(ValueError, match='expected a known name'):
      registry.make_factory('dqm')
    assert sys.path == before
