"""User-defined environments by import path: 'package.module:factory'."""

import functools
import inspect
import math
import sys
from collections.abc import Callable
from typing import Any

import dm_env

from repertory.components.config import import_paths
from repertory.environments import adapters, tensor, wrappers
from repertory.environments.batches import batch
from repertory.environments.registry import (
  families,
  name_options,
  wrapping,
)
from repertory.environments.rendering import rendering
from repertory.environments.values import argument_checks

# Methods of a user's object that make it a factory like ours.
_BATCH, _TENSOR = 'make_batch', 'make_tensor_environment'
# Arguments of a user's function: one takes the seed, the other enables the
# rendering of Gymnasium environments.
_SEED, _RENDER_MODE = 'seed', 'render_mode'

# Of dm_env's interface, which need not be its base class.
_METHODS = (
  'reset', 'step', 'observation_spec', 'action_spec', 'reward_spec',
  'discount_spec', 'close',
)  # fmt: skip


def find_makers(name: str, renders: bool) -> families.Makers:
  """Imports what a name refers to, see `registry.EnvironmentFactory`.

  Raises:
    ArgumentError: If the name cannot be imported, or cannot be called so.
  """
  try:
    found = import_paths.find(name.partition('?')[0], families.PREFIXES)
  except import_paths.ImportPathError as error:
    raise argument_checks.ArgumentError(
      'name', f'got {name!r}, but {error}'
    ) from error
  if not callable(found):
    what = f'that is of type {type(found).__name__}.'
    raise _error(name, 'a callable that takes a seed', what)
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
    make, wrapped = _maker_of_function(name, found, renders)
    return wrapping.wrap(families.Makers(make), wrapped)
  known = [*_options_of(found).values()] if is_class else []
  options, wrapped = wrapping.parse(name, known)
  factory: Any = functools.partial(found, **options)
  if is_tensor:
    factory = tensor.Factory(factory)
  else:
    factory = _run(name, factory) if is_class else found
    factory = rendering.enable(factory) if renders else factory
  methods = (getattr(factory, method, None) for method in (_BATCH, _TENSOR))
  makers = families.Makers(
    lambda seed: wrappers.SinglePrecision(_make(name, factory, seed)),
    *(method and functools.partial(_run, name, method) for method in methods),
  )
  return wrapping.wrap(makers, wrapped)


def _maker_of_function(
  name: str, function: Callable[..., Any], renders: bool
) -> tuple[Callable[[int], dm_env.Environment], Any]:
  known = _options_of(function)
  takes_seed = known.pop(_SEED, None) is not None
  options, wrapped = wrapping.parse(name, [*known.values()])
  if renders and _RENDER_MODE in known:
    options.setdefault(_RENDER_MODE, 'rgb_array')

  def call(seed: int) -> Any:
    return function(**options, **({_SEED: seed} if takes_seed else {}))

  def make(seed: int) -> dm_env.Environment:
    made = _make(name, call, seed)
    is_adapted = isinstance(made, adapters.gymnasium_adapter.GymnasiumAdapter)
    if not takes_seed and not is_adapted:
      raise _error(
        name,
        'a function that makes a dm_env.Environment of a seed',
        f'it has no argument `{_SEED}`.',
      )
    return wrappers.SinglePrecision(made)

  return make, wrapped


def _make(
  name: str, call: Callable[[int], Any], seed: int
) -> dm_env.Environment:
  """Calls the user's code; adapts an environment of Gymnasium."""
  seed = argument_checks.check_integer('seed', seed, 0)
  made = _run(name, call, seed)
  # A Gymnasium environment cannot exist before Gymnasium is imported.
  gymnasium = sys.modules.get('gymnasium')
  if gymnasium is not None and isinstance(made, gymnasium.Env):
    return adapters.gymnasium_adapter.GymnasiumAdapter(made, seed)
  if all(callable(getattr(made, method, None)) for method in _METHODS):
    return made
  raise _error(
    name,
    'it to return a dm_env.Environment or a gymnasium.Env',
    f'it returned {type(made).__module__}.{type(made).__qualname__}.',
  )


def _run(name: str, function: Callable[..., Any], *arguments: Any) -> Any:
  """Calls the user's code; shows the traceback of its errors.

  Errors of this package's environments are raised unchanged.
  """
  try:
    return function(*arguments)
  except (argument_checks.ArgumentError, batch.EnvironmentContractError):
    raise
  except Exception as error:
    trace = import_paths.trace(error, __file__)
    raise _error(
      name, 'it to return an environment', f'it failed:\n\n{trace}'
    ) from error


def _error(
  name: str, expected: str, problem: str
) -> argument_checks.ArgumentError:
  return argument_checks.ArgumentError(
    'name', f'expected {expected}, got {name!r}, but {problem}'
  )


def _options_of(function: Callable[..., Any]) -> dict[str, name_options.Option]:
  """Returns the arguments that can be given by name.

  A value has the annotated type, or else that of the default, or else stays a
  string.
  """
  try:
    signature = inspect.signature(function, eval_str=True)
  except ValueError:
    return {}  # Such as functions written in C.
  except Exception:  # Annotations that only a type checker can evaluate.
    signature = inspect.signature(function)
  options = {}
  for name, one in signature.parameters.items():
    default, kind = one.default, one.annotation
    if default is one.empty:
      default = name_options.REQUIRED
    if kind is one.empty or isinstance(kind, str):
      kind = str | None
      if isinstance(default, tuple) and default:
        kind = tuple[type(default[0]), ...]
      elif default is not None and default is not name_options.REQUIRED:
        kind = type(default)
    if one.kind in (one.POSITIONAL_OR_KEYWORD, one.KEYWORD_ONLY):
      options[name] = name_options.Option(
        name, default, minimum=-math.inf, maximum=math.inf, kind=kind
      )
  return options
