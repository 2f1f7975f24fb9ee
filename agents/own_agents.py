"""Agents of the user's own: builders found by name, and what they take.

A builder tells its config by the type of its constructor's argument, or in the
body of its class:

    class MyBuilder(builder.Builder):
      config: MyConfig

The first class that does so counts, from the builder up to what it derives
from; and in a class the body before the constructor.
"""

import importlib
import inspect
import typing
from collections.abc import Mapping
from typing import Any

from repertory.agents import agent_config
from repertory.agents.agent import Agent
from repertory.components import named_objects, settings
from repertory.components.settings import SettingError

# What a module may call its presets.
_PRESETS = 'PRESETS'


def find(name: str) -> Agent:
  """Imports a module, and returns the agent that it has.

  Args:
    name: Such as 'package.module:Builder'.

  Raises:
    SettingError: If there is none, or what there is could make no agent.
  """
  try:
    found = named_objects.find(name, _is_complete)
    module = named_objects.import_module(name.partition(':')[0])
  except named_objects.NamedObjectError as error:
    raise SettingError('agent', f"got '{name}', but {error}") from error
  _check_builder(name, found)
  config_class = _find_config_class(name, found)
  _check_constructor(name, found, config_class)
  presets = getattr(module, _PRESETS, {})
  if not isinstance(presets, Mapping) or not all(
    isinstance(preset, Mapping) for preset in presets.values()
  ):
    raise _refuse(
      name,
      f'{_PRESETS} in its module to be a dictionary of settings by name of '
      'preset',
      presets,
    )
  return Agent(name, _describe(found), config_class, presets, builder=name)


def _describe(builder_class: type) -> str:
  """Returns the first line of what a class tells of itself."""
  return (builder_class.__doc__ or '').strip().partition('\n')[0]


def _refuse(name: str, expected: str, found: Any) -> SettingError:
  return SettingError(
    'agent', f"got '{name}', but expected {expected}; found {found}."
  )


def _is_builder(found: Any) -> bool:
  # Whoever has a subclass of it has imported TensorFlow already.
  base = importlib.import_module('repertory.agents.builder').Builder
  return isinstance(found, type) and issubclass(found, base)


def _is_complete(found: Any) -> bool:
  return _is_builder(found) and not inspect.isabstract(found)


def _check_builder(name: str, found: Any) -> None:
  """Refuses what is no class of builders."""
  if not _is_builder(found):
    raise _refuse(
      name,
      'a subclass of repertory.agents.builder.Builder',
      f'a {type(found).__name__}, {getattr(found, "__name__", found)}',
    )
  if inspect.isabstract(found):
    missing = ', '.join(sorted(found.__abstractmethods__))
    raise _refuse(name, f'a builder that has {missing}', 'none of that')


def _find_config_class(name: str, found: type) -> type:
  """Returns the type of the config that a builder tells."""
  try:
    told = (_told_by(one) for one in found.__mro__)
    config_class: Any = next((kind for kind in told if kind is not None), None)
    if _is_config(config_class):
      settings.types_of(config_class)  # They will be asked for.
  except Exception as error:
    raise _refuse(
      name,
      f'{found.__name__} to have types that its module knows when it runs',
      f'{type(error).__name__}: {error}',
    ) from error
  if not _is_config(config_class) or (
    '__dataclass_params__' not in vars(config_class)
  ):
    raise _refuse(
      name,
      f'{found.__name__} to tell its config, by `config: MyConfig` in its body '
      'or in its constructor, a frozen dataclass derived from '
      'repertory.agents.agent_config.AgentConfig',
      config_class or 'nothing of it',
    )
  return config_class


def _told_by(one: type) -> Any:
  """Returns the type of config that a class itself tells; None if none."""
  if 'config' in vars(one).get('__annotations__', {}):
    return settings.types_of(one)['config']
  constructor = vars(one).get('__init__')
  hints = typing.get_type_hints(constructor) if constructor else {}
  for hint in hints.values():
    for kind in (hint, *typing.get_args(hint)):  # It may be one or None.
      if _is_config(kind):
        return kind
  return None


def _is_config(kind: Any) -> bool:
  base = agent_config.AgentConfig
  return isinstance(kind, type) and issubclass(kind, base) and kind is not base


def _check_constructor(name: str, found: type, config_class: type) -> None:
  """Refuses a builder that is not made of its config alone."""
  signature = inspect.signature(found)
  try:
    signature.bind(config_class)
  except TypeError as error:
    raise _refuse(
      name,
      f'{found.__name__}(config) to make a builder',
      f'{found.__name__}{signature}: {error}',
    ) from error
