"""Checks of traced functions that XLA is to compile."""

from collections.abc import Sequence
from typing import Any

from repertory.components.config.settings import SettingError

# Functions that call Python or print, by operation.
_OF_PYTHON = {
  'PrintV2': 'tf.print',
  'EagerPyFunc': 'tf.py_function',
  'PyFunc': 'tf.numpy_function',
  'PyFuncStateless': 'tf.numpy_function',
}


def check_calls_no_python(function: Any) -> None:
  """Refuses prints and calls to Python, which XLA cannot compile."""
  found = {
    _OF_PYTHON[node.op]
    for body in _bodies_of(function)
    for node in body
    if node.op in _OF_PYTHON
  }
  if found:
    raise SettingError(
      'jit_compile',
      f'must be false for a function that calls {" and ".join(sorted(found))}, '
      'which XLA cannot compile; got true, the default of long runs and of '
      'compiled programs.',
    )


def find_open_slices(function: Any) -> list[str]:
  """Finds slices, such as `x[i]`, with an index known only at run time.

  TensorFlow 2.8 may or may not pass the size of such a slice to XLA, depending
  on how busy the machine is. So two processes may compile programs that round
  differently. `tf.gather(x, i)` returns the same values, and XLA always
  compiles it in the same way. Returns the operations' names, sorted.
  """
  bodies = _bodies_of(function)
  return sorted({name for body in bodies for name in _open_slices_of(body)})


def _bodies_of(function: Any) -> list[Sequence[Any]]:
  """Returns the nodes of a concrete function and of its callees."""
  graph = function.graph.as_graph_def()
  return [graph.node, *(one.node_def for one in graph.library.function)]


# Operations whose output does not depend on the values of their inputs.
_KNOWN = ('Const', 'Rank', 'Shape', 'ShapeN', 'Size')


def _open_slices_of(nodes: Sequence[Any]) -> list[str]:
  """Returns the open slices of one graph; its arguments are not nodes."""
  known: set[str] = set()  # Constants, and values computed from them.
  size = -1
  while size < len(known):
    size = len(known)
    for node in nodes:
      inputs = set(map(_name_of, node.input))
      if node.op in _KNOWN or (inputs and inputs <= known):
        known.add(node.name)
  return [
    node.name
    for node in nodes
    if node.op == 'StridedSlice'
    and not known.issuperset(map(_name_of, node.input[1:]))
  ]


def _name_of(reference: str) -> str:
  """Returns the name of the node that an input refers to."""
  return reference.lstrip('^').partition(':')[0]
