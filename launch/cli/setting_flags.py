"""Definitions of flags, by hand or from the settings of classes."""

import dataclasses
import typing
from collections.abc import Mapping
from typing import Any

from absl import flags

from repertory.components.config import settings
from repertory.launch.experiments import experiment as experiment_lib

# absl's functions that define flags, by type of the value.
DEFINE = {
  int: flags.DEFINE_integer,
  float: flags.DEFINE_float,
  bool: flags.DEFINE_bool,
  str: flags.DEFINE_string,
  tuple: flags.DEFINE_list,
}


# Fields of an experiment, which flags of the same name set.
FIELDS = {
  field.name: field for field in dataclasses.fields(experiment_lib.Experiment)
}


def flag(
  name: str, text: str, default: Any = None, kind: type | None = None
) -> tuple:
  """Returns name, absl's function, default and help text of a flag.

  Args:
    name: Name of the flag.
    text: Help text.
    default: Default; None for that of the experiment's field, if it has one.
    kind: Type of the value; None for that of the default or field, or else str.
  """
  field = FIELDS.get(name)
  if kind is None and default is not None:
    kind = type(default)
  elif kind is None:
    kind = settings.kind_of(field.type) if field is not None else str
    default = field.default if field is not None else None
  return name, DEFINE[kind], default, text


def make(kinds: Mapping[str, Any]) -> tuple[tuple, ...]:
  """Returns a flag for each setting of topologies or launchers, by name.

  Settings of one name share a flag, so they must have one type.
  """
  found: dict[str, tuple] = {}  # Kind and default, by flag.
  helps: dict[str, dict[str, list[str]]] = {}  # Classes by flag and text.
  for name, kind in kinds.items():
    for field in dataclasses.fields(kind):
      own_type = type(field.default)
      if field.default is None:  # Then the annotation is '<type> | None'.
        own_type = next(iter(typing.get_args(field.type)), own_type)
      default = None if field.default in ((), '') else field.default
      found[field.name] = (DEFINE[own_type], default)
      texts = helps.setdefault(field.name, {})
      texts.setdefault(field.metadata['help'], []).append(name)
  return tuple(
    (
      flag,
      *found[flag],
      ' '.join(
        f'With {" or ".join(names)}: {text}' for text, names in texts.items()
      ),
    )
    for flag, texts in helps.items()
  )
