"""User-defined environments by import path: 'package.module:factory'."""

import dataclasses
import functools
import inspect
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import dm_env

from repertory.components.config import import_paths, settings
from repertory.environments import tensor
from repertory.environments.adapters import gymnasium_adapter
from repertory.environments.batches import batch, vector_batch
from repertory.environments.registry import name_options
from repertory.environments.rendering import rendering
from repertory.environments.values import argument_checks
from repertory.environments.wrappers import channels_last, single_precision

if TYPE_CHECKING:
  from repertory.environments.tensor import environment as tensor_environment

# Methods of a user's object that make it a factory like ours.
_BATCH, _TENSOR = 'make_batch', 'make_tensor_environment'
# Arguments of a user's function: one takes the seed, the other enables the
# rendering of Gymnasium environments.
_SEED, _RENDER_MODE = 'seed', 'render_mode'
# An option of all single environments: whether images are `[C, H, W]`.
_CHANNELS_FIRST = 'channels_first'

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
    renders: Whether rendering is enabled, see `with_rendering`.

  Raises:
    ArgumentError: If the name cannot be imported, or cannot be called so.
  """

  name: str
  renders: bool = False

  def __post_init__(self):
    self._find()

  def __call__(self, seed: int) -> dm_env.Environment:
    """Makes an environment of single precision: see `EnvironmentFactory`."""
    call = self._find()
    seed = argument_checks.check_integer('seed', seed, 0)
    made = self._run(call, seed)
    # A Gymnasium environment cannot exist before Gymnasium is imported.
    gymnasium = sys.modules.get('gymnasium')
    if gymnasium is not None and isinstance(made, gymnasium.Env):
      made = gymnasium_adapter.GymnasiumAdapter(made, seed)
    elif not all(callable(getattr(made, name, None)) for name in _METHODS):
      hint = ''
      if hasattr(made, 'observation_space'):
        hint = ' Derive it from gymnasium.Env.'
      raise self._refuse(
        'it to return a dm_env.Environment or a gymnasium.Env',
        f'it returned {type(made).__module__}.{type(made).__qualname__}.{hint}',
      )
    elif isinstance(call, _Call) and not call.takes_seed:
      raise self._refuse(
        'a function that makes a dm_env.Environment of a seed',
        f'it has no argument `{_SEED}`.',
      )
    if isinstance(call, _Call) and call.is_channels_first:
      made = channels_last.ChannelsLast(made)
    return single_precision.SinglePrecision(made)

  def make_batch(
    self, seeds: Sequence[int]
  ) -> batch.EnvironmentBatch | vector_batch.VectorBatch:
    """Makes a batch, by the user's factory or of single environments."""
    if not len(seeds):
      problem = 'expected one for each slot, got none.'
      raise argument_checks.ArgumentError('seeds', problem)
    make_own = getattr(self._find(), _BATCH, None)
    if make_own is not None:
      return self._run(make_own, seeds)
    return batch.EnvironmentBatch([self(seed) for seed in seeds])

  def make_tensor_environment(self) -> 'tensor_environment.TensorEnvironment':
    """Makes a tensor environment: see `environments.tensor`."""
    make = getattr(self._find(), _TENSOR, None)
    if make is None:
      raise self._refuse(
        'an environment that can be compiled with the agent, a '
        '`tensor.TensorEnvironment` or a `tensor.Factory`',
        'that is none.',
      )
    return self._run(make)

  def with_rendering(self) -> 'OwnFactory':
    """Returns a factory of the same environments with rendering enabled.

    An argument `render_mode` is then 'rgb_array', unless the options set it. A
    factory of the user's is passed to `rendering.enable`.
    """
    return dataclasses.replace(self, renders=True)

  def _find(self) -> Callable[[int], Any]:
    """Imports the module; returns a `_Call`, or the user's own factory."""
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
    # A tensor environment cannot exist before this module is imported.
    module = sys.modules.get(f'{tensor.__name__}.environment')
    is_tensor = (
      is_class
      and module is not None
      and issubclass(found, module.TensorEnvironment)
    )
    if not is_factory and not is_tensor:
      return self._make_call(found)
    parameters = _parameters_of(found) if is_class else {}
    make = functools.partial(found, **_read_options(self.name, parameters))
    if is_tensor:
      return tensor.Factory(make)
    factory = self._run(make) if is_class else found
    return rendering.enable(factory) if self.renders else factory

  def _make_call(self, function: Callable[..., Any]) -> '_Call':
    parameters = _parameters_of(function)
    first = inspect.Parameter(
      _CHANNELS_FIRST, inspect.Parameter.KEYWORD_ONLY, default=False
    )
    allowed = {_CHANNELS_FIRST: first, **parameters}
    takes_seed = allowed.pop(_SEED, None) is not None
    options = _read_options(
      self.name, allowed, f' The argument `{_SEED}` takes the seed.'
    )
    is_first = _CHANNELS_FIRST not in parameters and options.pop(
      _CHANNELS_FIRST, False
    )
    if self.renders and _RENDER_MODE in parameters:
      options.setdefault(_RENDER_MODE, 'rgb_array')
    return _Call(function, options, takes_seed, is_first)

  def _run(self, function: Callable[..., Any], *arguments: Any) -> Any:
    """Calls the user's code; shows the traceback of its errors.

    Errors of this package's environments are raised unchanged.
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
    seeds = {_SEED: seed} if self.takes_seed else {}
    return self.function(**self.options, **seeds)


def _read_options(
  name: str, parameters: Mapping[str, inspect.Parameter], advice: str = ''
) -> dict[str, Any]:
  """Parses the options of a name, which are arguments of a function.

  A value has the annotated type, or else that of the default, or else stays a
  string. Errors for missing options end with the advice.
  """
  bare, mark, query = name.partition('?')
  try:
    given = name_options.split(
      query if mark else None, {k: _describe(p) for k, p in parameters.items()}
    )
    values = {
      option: settings.parse(option, text, _type_of(parameters[option]))
      for option, text in given.items()
    }
  except ValueError as error:
    raise argument_checks.ArgumentError(
      'name', f'in {name!r}, {error}'
    ) from error
  missing = [
    f'{option}=...'
    for option, parameter in parameters.items()
    if parameter.default is parameter.empty and option not in values
  ]
  if missing:
    raise argument_checks.ArgumentError(
      'name',
      f'expected a value for each argument without default, {bare}?'
      f'{"&".join(missing)}; got {name!r}.{advice}',
    )
  return values


def _parameters_of(
  function: Callable[..., Any],
) -> dict[str, inspect.Parameter]:
  """Returns the arguments that can be given by name."""
  try:
    signature = inspect.signature(function, eval_str=True)
  except ValueError:
    return {}  # Such as functions written in C.
  except Exception:  # Annotations that only a type checker can evaluate.
    signature = inspect.signature(function)
  return {
    name: parameter
    for name, parameter in signature.parameters.items()
    if parameter.kind
    in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY)
  }


def _describe(parameter: inspect.Parameter) -> str:
  """Returns the option with its default, as written in a name."""
  default = parameter.default
  if default is parameter.empty:
    return f'{parameter.name}=...'
  shown = str(default).lower() if isinstance(default, bool) else str(default)
  return f'{parameter.name}={shown}'


def _type_of(parameter: inspect.Parameter) -> Any:
  default, annotation = parameter.default, parameter.annotation
  if annotation is not parameter.empty and not isinstance(annotation, str):
    return annotation
  if isinstance(default, tuple) and default:
    return tuple[type(default[0]), ...]
  if default is parameter.empty or default is None:
    return str | None
  return type(default)
