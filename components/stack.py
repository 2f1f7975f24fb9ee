"""What differs between the two sets of versions that are supported.

The first is Python 3.10 with TensorFlow 2.8 and Launchpad, the second Python
3.11 with TensorFlow 2.15 and without Launchpad. All calls of the one that the
other has not, or has otherwise, are here.
"""

from collections.abc import Mapping

import wrapt
from tensorflow.python.eager import context

from repertory.components import types

# TensorFlow 2.15 wraps single operations in functions, come what may, and no
# longer heeds `TF_RUN_EAGER_OP_AS_FUNCTION`.
ALWAYS_WRAPS_OPERATIONS = not hasattr(
  context, 'enable_run_eager_op_as_function'
)


def wrap_operations() -> None:
  """Tells TensorFlow to wrap single operations in functions."""
  if not ALWAYS_WRAPS_OPERATIONS:
    context.enable_run_eager_op_as_function()


def unwrap(nest: types.Nest) -> types.Nest:
  """Returns a nest of plain dictionaries and tuples, with the same leaves.

  TensorFlow keeps wrappers of those that are attributes of a `tf.Module`, and
  what is made like them has wrappers, too. TensorFlow 2.15 fails where a
  function takes or returns one.
  """
  if isinstance(nest, wrapt.ObjectProxy):
    nest = nest.__wrapped__
  if isinstance(nest, Mapping):
    return type(nest)((name, unwrap(part)) for name, part in nest.items())
  if isinstance(nest, tuple):
    parts = [unwrap(part) for part in nest]
    return type(nest)(*parts) if hasattr(nest, '_fields') else tuple(parts)
  return [unwrap(part) for part in nest] if isinstance(nest, list) else nest
