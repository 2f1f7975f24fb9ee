"""What differs between the two sets of versions that are supported.

The first is Python 3.10 with TensorFlow 2.8 and Launchpad, the second Python
3.11 with TensorFlow 2.15 and without Launchpad. All calls of the one that the
other has not, or has otherwise, are here.
"""

from tensorflow.python.eager import context

# TensorFlow 2.15 wraps single operations in functions, come what may, and no
# longer heeds `TF_RUN_EAGER_OP_AS_FUNCTION`.
ALWAYS_WRAPS_OPERATIONS = not hasattr(
  context, 'enable_run_eager_op_as_function'
)


def wrap_operations() -> None:
  """Tells TensorFlow to wrap single operations in functions."""
  if not ALWAYS_WRAPS_OPERATIONS:
    context.enable_run_eager_op_as_function()
