"""User-defined environments by import path: 'package.module:factory'."""

import dataclasses
import functools
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import dm_env

from repertory.components.config import import_paths
from repertory.environments import tensor
from repertory.environments.adapters import gymnasium_adapter
from repertory.environments.batches import batch, vector_batch
from repertory.environments.registry import user_options
from repertory.environments.rendering import rendering
from repertory.environments.values import argument_checks
from repertory.environments.wrappers import channels_last, single_precision

if TYPE_CHECKING:
  from repertory.environments.tensor import environment as tensor_environment

# Methods of a user's object that make it a factory like ours.
_BATCH, _TENSOR = 'make_batch', 'make_tensor_environment'

# The argument of Gymnasium environments that enables rendering.
_RENDER_MODE = 'render_mode'

_METHODS = (
  'reset', 'step', 'observation_spec', 'action_spec', 'reward_spec',
  'discount_spec', 'close',
)  # fmt: skip


@dataclasses.dataclass(frozen=True)
class OwnFactory:
  """Factory of the environments of a name such as 'my_module:make?size=5'.

  It can be pickled; unpickling imports the module. The name refers to one of

  - a function, a class of environments, or another callable. It is called with
    the options as keywords, and with the seed if it has an argument `seed`. It
    returns a `dm_env.Environment`, or a `gymnasium.Env`, which is seeded when
    it is first reset;
  - a factory: an object with `make_batch` or `make_tensor_environment`, such as
    a `tensor.Factory`, or a class of such, which is created with the options;
  - a subclass of `tensor.TensorEnvironment`, which is created with the options.

  Attributes:
    name: The name. It is imported and its options are checked at once.
    is_filmed: Whether rendering is enabled, see `filmed`.

  Raises:
    ArgumentError: If the name cannot be imported, or cannot be called so.
  """

  name: str
  is_filmed: bool = False

  def __post_init__(self):
    self._find()

  def __call__(self, seed: int) -> dm_env.Environment:
    """Makes an environment of single precision.

    Args:
      seed: At least 0.

    Raises:
      ArgumentError: If the seed is not valid, or the result is no environment.
    """
    call = self._find()
    return self._adapt(call, self._make(call, seed), seed)

  def make_batch(
    self, seeds: Sequence[int]
  ) -> batch.EnvironmentBatch | vector_batch.VectorBatch:
    """Makes a batch, by the user's factory or of single environments.

    Args:
      seeds: One per slot, at least one.

    Raises:
      ArgumentError: If a seed is not valid, or the result is no environment.
    """
    if not len(seeds):
      problem = 'expected one for each slot, got none.'
      raise argument_checks.ArgumentError('seeds', problem)
    call = self._find()
    make_own = getattr(call, _BATCH, None)
    if make_own is not None:
      return self._run(make_own, seeds)
    return batch.EnvironmentBatch([self(seed) for seed in seeds])

  def make_tensor_environment(self) -> 'tensor_environment.TensorEnvironment':
    """Makes a tensor environment: see `environments.tensor`.

    Raises:
      ArgumentError: If the result is no tensor environment.
    """
    make = getattr(self._find(), _TENSOR, None)
    if make is None:
      raise self._refuse(
        'an environment that can be compiled with the agent, a '
        '`tensor.TensorEnvironment` or a `tensor.Factory`',
        'that is none.',
      )
    return self._run(make)

  def filmed(self) -> 'OwnFactory':
    """Returns a factory of the same environments with rendering enabled.

    An argument `render_mode` is then 'rgb_array', unless the options set it. A
    factory of the user's is passed to `rendering.film`.
    """
    return dataclasses.replace(self, is_filmed=True)

  def _find(self) -> Callable[[int], Any]:
    """Imports the module; returns a function from seed to environment."""
    try:
      found = import_paths.find(self.name.partition('?')[0])
    except import_paths.ImportPathError as error:
      raise argument_checks.ArgumentError(
        'name', f'got {self.name!r}, but {error}'
      ) from error
    if not callable(found):
      what = f'that is of type {type(found).__name__}.'
      raise self._refuse('a callable that takes a seed', what)
    is_class = isinstance(found, type)
    is_factory = hasattr(found, _BATCH) or hasattr(found, _TENSOR)
    if is_factory and not is_class:
      user_options.read(self.name, lambda: None, False)
      return self._film(found)
    is_tensor = is_class and _is_tensor(found)
    is_seeded = not is_factory and not is_tensor
    options = user_options.read(self.name, found, is_seeded)
    if is_tensor:
      return tensor.Factory(functools.partial(found, **options))
    if is_factory:
      return self._film(self._run(functools.partial(found, **options)))
    parameters = user_options.parameters_of(found)
    is_channels_first = False
    if user_options.CHANNELS_FIRST not in parameters:
      is_channels_first = options.pop(user_options.CHANNELS_FIRST, False)
    if self.is_filmed and _RENDER_MODE in parameters:
      options.setdefault(_RENDER_MODE, 'rgb_array')
    takes_seed = user_options.SEED in parameters
    return _Call(found, options, takes_seed, is_channels_first)

  def _film(self, factory: Any) -> Any:
    return rendering.film(factory) if self.is_filmed else factory

  def _make(self, call: Callable[[int], Any], seed: int) -> Any:
    return self._run(call, argument_checks.check_integer('seed', seed, 0))

  def _run(self, function: Callable[..., Any], *arguments: Any) -> Any:
    """Calls the user's code.

    Raises:
      ArgumentError: If it raises, with the traceback. Errors of this package's
        environments are reported without one.
    """
    try:
      return function(*arguments)
    except (argument_checks.ArgumentError, batch.EnvironmentContractError):
      raise
    except Exception as error:
      trace = import_paths.trace(error, __file__)
      raise self._refuse(
        'it to return an environment', f'it failed:\n\n{trace}'
      ) from error

  def _adapt(
    self, call: Callable[[int], Any], made: Any, seed: int
  ) -> dm_env.Environment:
    """Returns a result as a dm_env environment of single precision."""
    if _is_gymnasium(made):
      made = gymnasium_adapter.GymnasiumAdapter(made, seed)
    elif not all(callable(getattr(made, name, None)) for name in _METHODS):
      hint = ''
      if hasattr(made, 'observation_space'):
        hint = ' Derive it from gymnasium.Env.'
      raise self._refuse(
        'it to return a dm_env.Environment or a gymnasium.Env',
        f'it returned {type(made).__module__}.{type(made).__qualname__}.{hint}',
      )
    elif not getattr(call, 'takes_seed', True):
      raise self._refuse(
        'a function that makes a dm_env.Environment of a seed',
        f'it has no argument `{user_options.SEED}`.',
      )
    if _is_channels_first(call):
      made = channels_last.ChannelsLast(made)
    return single_precision.SinglePrecision(made)

  def _refuse(
    self, expected: str, problem: str
  ) -> argument_checks.ArgumentError:
    return argument_checks.ArgumentError(
      'name', f'expected {expected}, got {self.name!r}, but {problem}'
    )


@dataclasses.dataclass(frozen=True)
class _Call:
  """Call of the user's function, without its seed."""

  function: Callable[..., Any]
  options: Mapping[str, Any]
  takes_seed: bool
  is_channels_first: bool

  def __call__(self, seed: int) -> Any:
    seeds = {user_options.SEED: seed} if self.takes_seed else {}
    return self.function(**self.options, **seeds)


def _is_channels_first(call: Callable[[int], Any]) -> bool:
  """Whether images of its environments are to be transposed."""
  return getattr(call, 'is_channels_first', False)


def _is_gymnasium(made: Any) -> bool:
  # A Gymnasium environment cannot exist before Gymnasium is imported.
  gymnasium = sys.modules.get('gymnasium')
  return gymnasium is not None and isinstance(made, gymnasium.Env)


def _is_tensor(found: type) -> bool:
  # A tensor environment cannot exist before this module is imported.
  module = sys.modules.get(f'{tensor.__name__}.environment')
  return module is not None and issubclass(found, module.TensorEnvironment)
