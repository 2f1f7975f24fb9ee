"""Custom agents: builders by import path.

A builder declares its config class by the type of its constructor's argument,
or in the body of the class:

    class MyBuilder(builder.Builder):
      config: MyConfig

The first declaration in the method resolution order counts; in a class, the
body precedes the constructor.
"""

import importlib
import inspect
import itertools
import sys
import typing
from collections.abc import Mapping
from typing import Any

from repertory.agents.interface import agent_config
from repertory.agents.interface.agent import Agent
from repertory.components.config import import_paths
from repertory.components.config.settings import SettingError


def find(name: str) -> Agent:
  """Returns the agent of an import path, such as 'package.module:Builder'.

  Raises:
    SettingError: If the builder is not found or invalid.
  """
  try:
    found = import_paths.find(name)
  except import_paths.ImportPathError as error:
    raise SettingError('agent', f"got '{name}', but {error}") from error
  # A module with a subclass has already imported TensorFlow.
  base = importlib.import_module('repertory.agents.interface.builder').Builder
  if not (isinstance(found, type) and issubclass(found, base)):
    raise _refuse(
      name,
      f'a subclass of {base.__module__}.Builder',
      f'a {type(found).__name__}, {getattr(found, "__name__", found)}',
    )
  if missing := ', '.join(sorted(found.__abstractmethods__)):
    raise _refuse(name, f'a builder that implements {missing}', 'none of these')
  config_class = _find_config_class(name, found)
  signature = inspect.signature(found)
  try:
    signature.bind(config_class)
  except TypeError as error:
    own = found.__name__
    raise _refuse(
      name, f'{own}(config) to create it', f'{own}{signature}: {error}'
    ) from error
  presets = getattr(sys.modules[name.partition(':')[0]], 'PRESETS', {})
  is_nested = isinstance(presets, Mapping) and all(
    isinstance(one, Mapping) for one in presets.values()
  )
  if not is_nested:
    raise _refuse(
      name, 'PRESETS to be a dictionary of settings by preset', presets
    )
  description = (found.__doc__ or '').strip().partition('\n')[0]
  return Agent(name, description, config_class, presets, builder=name)


def _refuse(name: str, expected: str, found: Any) -> SettingError:
  return SettingError(
    'agent', f"got '{name}', but expected {expected}; found {found}."
  )


def _find_config_class(name: str, found: type) -> type:
  """Returns the config class that a builder declares."""
  try:
    kinds = (_declared_config(one) for one in found.__mro__)
    config_class: Any = next((kind for kind in kinds if kind is not None), None)
    if _is_config(config_class):
      typing.get_type_hints(config_class)  # Checks that all types resolve.
  except Exception as error:
    raise _refuse(
      name,
      f'{found.__name__} to have annotations that resolve at run time',
      f'{type(error).__name__}: {error}',
    ) from error
  # Only a decorated class has its own parameters.
  is_dataclass = '__dataclass_params__' in getattr(config_class, '__dict__', {})
  if not (_is_config(config_class) and is_dataclass):
    raise _refuse(
      name,
      f'{found.__name__} to declare its config, by `config: MyConfig` in its '
      'body or its constructor, as a frozen dataclass derived from '
      'repertory.agents.interface.agent_config.AgentConfig',
      config_class or 'no declaration',
    )
  return config_class


def _declared_config(one: type) -> Any:
  """Returns the config class that a class itself declares, or None."""
  if 'config' in vars(one).get('__annotations__', {}):
    return typing.get_type_hints(one)['config']
  constructor = vars(one).get('__init__')
  hints = typing.get_type_hints(constructor) if constructor else {}
  kinds = [(hint, *typing.get_args(hint)) for hint in hints.values()]
  # Such as `MyConfig | None`.
  return next(filter(_is_config, itertools.chain(*kinds)), None)


def _is_config(kind: Any) -> bool:
  base = agent_config.AgentConfig
  return isinstance(kind, type) and issubclass(kind, base) and kind is not base
