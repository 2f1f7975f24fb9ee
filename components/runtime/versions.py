"""Compatibility layer for the two supported sets of versions.

The first is Python 3.10 with TensorFlow 2.8 and Launchpad, the second Python
3.11 with TensorFlow 2.15 and without Launchpad. All calls that differ between
them are here.
"""

import functools
import importlib
import importlib.metadata
import importlib.util
import sys
from collections.abc import Mapping
from typing import Any

import tensorflow as tf
import wrapt
from tensorflow.python.eager import context

# TensorFlow 2.15 always wraps single operations in functions and ignores
# `TF_RUN_EAGER_OP_AS_FUNCTION`.
ALWAYS_WRAPS_OPERATIONS = not hasattr(
  context, 'enable_run_eager_op_as_function'
)


@functools.cache
def versions() -> Mapping[str, str]:
  """Returns the versions that identify the stack, by name."""
  return {
    'Python': '{}.{}'.format(*sys.version_info[:2]),
    'TensorFlow': tf.__version__,
    'Reverb': importlib.metadata.version('dm-reverb'),
  }


def has_reverb() -> bool:
  """Returns whether Reverb is installed, without importing it."""
  return importlib.util.find_spec('reverb') is not None


def wrap_operations() -> None:
  """Makes TensorFlow wrap single operations in functions."""
  if not ALWAYS_WRAPS_OPERATIONS:
    context.enable_run_eager_op_as_function()


def _let_functions_take_wrappers() -> None:
  """Lets functions of TensorFlow 2.15 take its wrappers of dictionaries.

  Before they unwrap them, they perform a check that fails with
  typing_extensions 4.6 or later.
  """
  package: Any = importlib.import_module('tensorflow.core.function.trace_type')
  builder: Any = importlib.import_module(
    f'{package.__name__}.trace_type_builder'
  )
  original = builder.from_value

  def from_value(value, context=None):
    if isinstance(value, wrapt.ObjectProxy):
      value = value.__wrapped__
    return original(value, context)

  package.from_value = builder.from_value = from_value


if ALWAYS_WRAPS_OPERATIONS:
  _let_functions_take_wrappers()
