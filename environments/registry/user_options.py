"""Options of user-defined environments: arguments of their factories."""

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from repertory.components.config import settings
from repertory.environments.registry import name_options
from repertory.environments.values.argument_checks import ArgumentError

# The argument that takes the seed of an environment.
SEED = 'seed'
# An option of all single environments: whether images are `[C, H, W]`.
CHANNELS_FIRST = 'channels_first'

_EMPTY = inspect.Parameter.empty
_NAMED = (
  inspect.Parameter.POSITIONAL_OR_KEYWORD,
  inspect.Parameter.KEYWORD_ONLY,
)
_CHANNELS_FIRST = inspect.Parameter(
  CHANNELS_FIRST, inspect.Parameter.KEYWORD_ONLY, default=False, annotation=bool
)


def read(
  name: str, function: Callable[..., Any], is_seeded: bool
) -> dict[str, Any]:
  """Parses the options of a name, after its question mark.

  Args:
    name: Such as 'my_module:make?size=5'.
    function: Function whose arguments are the options. A value has the
      annotated type, or else that of the default, or else stays a string.
    is_seeded: Whether the function makes a single environment: then the
      argument `seed` is not an option, and `CHANNELS_FIRST` is one.

  Returns:
    The values of the given options.

  Raises:
    ArgumentError: If an option is unknown, missing, or has a wrong value.
  """
  bare, mark, query = name.partition('?')
  parameters = dict(parameters_of(function))
  if is_seeded:
    parameters.pop(SEED, None)
    parameters.setdefault(CHANNELS_FIRST, _CHANNELS_FIRST)
  try:
    given = name_options.split(
      query if mark else None, {k: _describe(p) for k, p in parameters.items()}
    )
    values = {
      option: settings.parse(option, text, _type_of(parameters[option]))
      for option, text in given.items()
    }
  except ValueError as error:
    raise ArgumentError('name', f'in {name!r}, {error}') from error
  missing = [
    option
    for option, parameter in parameters.items()
    if parameter.default is _EMPTY and option not in values
  ]
  if missing:
    options = '&'.join(f'{option}=...' for option in missing)
    seed = f' The argument `{SEED}` takes the seed.' if is_seeded else ''
    raise ArgumentError(
      'name',
      f'expected a value for each argument without default, {bare}?{options}; '
      f'got {name!r}.{seed}',
    )
  return values


def parameters_of(
  function: Callable[..., Any],
) -> Mapping[str, inspect.Parameter]:
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
    if parameter.kind in _NAMED
  }


def _describe(parameter: inspect.Parameter) -> str:
  """Returns the option with its default, as written in a name."""
  default = parameter.default
  if default is _EMPTY:
    return f'{parameter.name}=...'
  shown = str(default).lower() if isinstance(default, bool) else str(default)
  return f'{parameter.name}={shown}'


def _type_of(parameter: inspect.Parameter) -> Any:
  default, annotation = parameter.default, parameter.annotation
  if annotation is not _EMPTY and not isinstance(annotation, str):
    return annotation
  if isinstance(default, tuple) and default:
    return tuple[type(default[0]), ...]
  if default is _EMPTY or default is None:
    return str | None
  return type(default)
