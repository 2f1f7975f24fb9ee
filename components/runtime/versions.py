"""Installed versions; compatibility layer for supported stacks and platforms.

The first stack is Python 3.10 with TensorFlow 2.8, Reverb and Launchpad, the
second Python 3.11 with TensorFlow 2.15 and Reverb, the third Python 3.12 or
3.13 with TensorFlow 2.21. All calls that differ between them are here.
"""

import functools
import importlib
import importlib.metadata
import os
import sys
from collections.abc import Mapping
from typing import Any

# Names of each package on which stacks differ, as it is installed.
_DISTRIBUTIONS = {
  'TensorFlow': ('tensorflow-cpu', 'tensorflow'),
  'Reverb': ('dm-reverb', 'dm-reverb-nightly'),
  'Launchpad': ('dm-launchpad',),
}


@functools.cache
def installed() -> Mapping[str, str | None]:
  """Returns versions of packages; None for those that are not installed.

  Does not import them.
  """
  return {
    name: next(filter(None, map(_find_version, distributions)), None)
    for name, distributions in _DISTRIBUTIONS.items()
  }


def has_reverb() -> bool:
  """Returns whether Reverb is installed, without importing it."""
  return installed()['Reverb'] is not None


def versions() -> Mapping[str, str | None]:
  """Returns the versions that checkpoints name; None for what is missing."""
  return {
    'Python': '{}.{}'.format(*sys.version_info[:2]),
    'TensorFlow': importlib.import_module('tensorflow').__version__,
    'Reverb': installed()['Reverb'],
  }


def describe(found: Mapping[str, str | None]) -> str:
  """Describes versions by name, such as 'TensorFlow 2.21.0, no Reverb'."""
  return ', '.join(
    f'no {name}' if version is None else f'{name} {version}'
    for name, version in found.items()
  )


def num_cpus() -> int:
  """Returns the number of CPUs for this process, or else of the machine."""
  if hasattr(os, 'sched_getaffinity'):
    return len(os.sched_getaffinity(0))
  return os.cpu_count() or 1


def _find_version(distribution: str) -> str | None:
  try:
    return importlib.metadata.version(distribution)
  except importlib.metadata.PackageNotFoundError:
    return None


def always_wraps_operations() -> bool:
  """Returns whether TensorFlow always wraps single operations in functions.

  From 2.15 on it does, and ignores `TF_RUN_EAGER_OP_AS_FUNCTION`.
  """
  return not hasattr(_eager_context(), 'enable_run_eager_op_as_function')


def has_xla_cache() -> bool:
  """Returns whether TensorFlow can keep programs of XLA for CPUs.

  TensorFlow 2.15 cannot load them again.
  """
  major, minor, *_ = (installed()['TensorFlow'] or '0.0').split('.')
  return (int(major), int(minor)) >= (2, 21)


def wrap_operations() -> None:
  """Makes TensorFlow wrap single operations in functions."""
  if not always_wraps_operations():
    _eager_context().enable_run_eager_op_as_function()


def let_functions_take_wrappers() -> None:
  """Lets functions of TensorFlow 2.15 take its wrappers of dictionaries.

  Before they unwrap them, they perform a check that fails with
  typing_extensions 4.6 or later.
  """
  if not always_wraps_operations():
    return
  package: Any = importlib.import_module('tensorflow.core.function.trace_type')
  builder: Any = importlib.import_module(
    f'{package.__name__}.trace_type_builder'
  )
  proxy: Any = importlib.import_module('wrapt').ObjectProxy
  original = builder.from_value

  def from_value(value, context=None):
    if isinstance(value, proxy):
      value = value.__wrapped__
    return original(value, context)

  package.from_value = builder.from_value = from_value


# Imported here, as this module is read before TensorFlow is needed.
def _eager_context() -> Any:
  return importlib.import_module('tensorflow.python.eager.context')
