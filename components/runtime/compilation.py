"""TensorFlow functions that are called often."""

import contextlib
import itertools
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import tensorflow as tf
import tree
from tensorflow.python.eager import context, execute
from tensorflow.python.framework import ops

from repertory.components import types
from repertory.components.config.settings import SettingError
from repertory.components.runtime import devices, nests, versions, xla_cache

# Most of XLA's compile time goes to LLVM passes that do not help here: without
# them an update compiles 2.5 times as fast, and runs as fast.
_FAST_COMPILATION = '--xla_llvm_disable_expensive_passes'
# With several threads for matrix products and convolutions, updates on two
# cores are no faster and take up to a third more CPU time, which acting and
# replay need.
_SEVERAL_THREADS = '--xla_cpu_multi_thread_eigen'
_FEW_CORES = 2

# The full name: resolving a shorter one takes as long as the copy.
_HOST = '/job:localhost/replica:0/task:0/device:CPU:0'

# The operation that calls a function.
_CALL = b'StatefulPartitionedCall'

_scope = threading.local()

xla_cache.enable([_FAST_COMPILATION, _SEVERAL_THREADS])

# Whether TensorFlow wraps single operations in functions, which then can run in
# the calling thread. This affects the whole process and must be decided before
# there are other threads, because an operation that is starting meanwhile
# fails. On slow cores each operation takes 10 to 50 µs longer.
WRAPS_OPERATIONS = (
  os.environ.get('TF_RUN_EAGER_OP_AS_FUNCTION') != '0'
  and not devices.has_accelerator()
)
if WRAPS_OPERATIONS:
  versions.wrap_operations()
versions.let_functions_take_wrappers()


@contextlib.contextmanager
def on_device(name: str | None) -> Iterator[None]:
  """Places variables and `CompiledFunction`s made inside on a device.

  Args:
    name: The device, such as 'CPU:0' or 'GPU:1'; None for TensorFlow's choice.
  """
  before = getattr(_scope, 'device', None)
  _scope.device = name
  try:
    with tf.device(name):
      yield
  finally:
    _scope.device = before


@contextlib.contextmanager
def eagerly(is_eager: bool) -> Iterator[None]:
  """Makes all `CompiledFunction`s of the context eager.

  It sets `tf.config.run_functions_eagerly`, and restores it at the end.

  Args:
    is_eager: If false, nothing changes: eager mode stays on if it already is.
  """
  before = tf.config.functions_run_eagerly()
  tf.config.run_functions_eagerly(is_eager or before)
  try:
    yield
  finally:
    tf.config.run_functions_eagerly(before)


class CompiledFunction:
  """A function compiled for one signature, called with flat lists.

  Calls skip the argument binding and checking and the search for gradient tapes
  of TensorFlow's own concrete functions, which take half the time of a small
  call.

  While `tf.config.run_functions_eagerly` is on, it is not traced: each call
  runs the Python function on the tensors themselves.

  Attributes:
    argument_specs: `tf.TensorSpec`s of the leaves of all arguments.
    is_eager: Whether it is not traced.
    output_structure: The structure of the output, with None for each leaf; of
      an eager function that of the last call.
    unflatten: Packs leaves into the structure of the output.
  """

  unflatten: nests.Unflattener

  def __init__(
    self,
    function: Callable[..., types.Nest],
    signature: Sequence[types.Nest],
    jit_compile: bool,
    *,
    in_caller: bool = False,
  ):
    """Traces the function, which may create its variables.

    Args:
      function: Maps nests of tensors to a nest of tensors. It is traced without
        AutoGraph: where control flow depends on tensors, it uses `tf.cond`,
        `tf.while_loop` or a `tf.function` of its own.
      signature: One nest of `tf.TensorSpec` per argument.
      jit_compile: Whether to compile with XLA: faster for small networks. It
        requests fast compilation, and a single thread on two cores, unless
        `XLA_FLAGS` are already set.
      in_caller: Whether to run it in the calling thread, if possible: without
        XLA and with `WRAPS_OPERATIONS`. TensorFlow's threads take longer to
        wake up than small functions take.
    """
    self.is_eager = tf.config.functions_run_eagerly()
    self._is_for_xla = jit_compile and not self.is_eager
    self._device = getattr(_scope, 'device', None)
    self._place = _place_of(self._device)
    self.argument_specs = tree.flatten(signature)
    self.output_structure: types.Nest = None

    def call(*leaves):
      return nests.plain(function(*tree.unflatten_as(tuple(signature), leaves)))

    if self.is_eager:
      self._call = call
      self._run = self._execute_eagerly
      return
    self._run = self._compile if jit_compile else self._execute
    # AutoGraph would take five seconds to rewrite all functions.
    compiled = tf.function(call, autograph=False, jit_compile=jit_compile)
    specs = specs_of(self.argument_specs)
    # A reference is kept because the runtime drops unreferenced functions.
    self._function = compiled.get_concrete_function(*specs)
    if jit_compile:
      set_xla_flags()
      _check_calls_no_python(self._function)
    self._captured = list(self._function.captured_inputs)
    self._num_outputs = len(self._function.outputs)
    outputs: Any = self._function.structured_outputs
    leaves = tree.flatten(outputs)
    self._absent = [i for i, leaf in enumerate(leaves) if leaf is None]
    self.output_structure = tree.map_structure(lambda leaf: None, outputs)
    self.unflatten = nests.Unflattener(outputs)
    self._context: Any = context.context()
    in_caller = in_caller and WRAPS_OPERATIONS and not jit_compile
    self._operation = _CALL if in_caller else self._function.name
    self._attributes = _attributes_of(self._function, in_caller)

  def __call__(self, *leaves: tf.Tensor | np.ndarray) -> list[tf.Tensor]:
    """Maps leaves, in the signature's order, to the leaves of the output.

    Gradient tapes do not record the call. Arrays must not change before the
    outputs are there.
    """
    if self._device is None:
      return self._run(leaves)
    with tf.device(self._device):
      return self._run(leaves)

  def _execute_eagerly(self, leaves: Sequence[Any]) -> list[Any]:
    inputs = [
      tf.convert_to_tensor(leaf, spec.dtype)
      for leaf, spec in zip(leaves, self.argument_specs, strict=True)
    ]
    output = self._call(*inputs)
    self.output_structure = tree.map_structure(lambda leaf: None, output)
    self.unflatten = nests.Unflattener(output)
    return [
      None if leaf is None else tf.convert_to_tensor(leaf)
      for leaf in tree.flatten(output)
    ]

  def _compile(self, leaves: Sequence[Any]) -> list[Any]:
    """Executes it for the first time, for which XLA compiles it."""
    self._run = self._execute
    with xla_cache.quiet():
      return self._execute(leaves)

  def _execute(self, leaves: Sequence[Any]) -> list[Any]:
    inputs = [
      ops.EagerTensor(leaf, self._place, None)
      if isinstance(leaf, np.ndarray)
      else leaf
      for leaf in leaves
    ]
    outputs = execute.execute(
      self._operation,
      self._num_outputs,
      inputs + self._captured,
      self._attributes,
      self._context,
    )
    for place in self._absent:
      outputs.insert(place, None)
    return outputs

  @property
  def open_slices(self) -> list[str]:
    """See `find_open_slices`; none without XLA."""
    if not self._is_for_xla:
      return []
    return find_open_slices(self._function)


def compile_variable_reads(
  variables: Sequence[tuple[tf.Tensor, tf.DType]],
) -> Callable[[], list[tf.Tensor]]:
  """Returns a function that reads variables, in a single call if possible.

  They are given by handle and dtype, because the overhead of `tf.Variable`
  exceeds the time of the read itself.
  """

  def read():
    return [
      tf.raw_ops.ReadVariableOp(resource=handle, dtype=dtype)
      for handle, dtype in variables
    ]

  if WRAPS_OPERATIONS and variables:
    return CompiledFunction(read, (), False, in_caller=True)
  return read


def specs_of(nest: types.Nest) -> types.Nest:
  """Returns the `tf.TensorSpec`s of a nest of tensors, arrays or None."""
  return tree.map_structure(
    lambda x: None if x is None else tf.TensorSpec(x.shape, x.dtype), nest
  )


def trace(
  function: Callable[..., types.Nest], signature: Sequence[types.Nest]
) -> types.Nest:
  """Traces a function; returns output specs, with None for absent leaves.

  Loops need it, as their bodies cannot create variables.
  """

  def call(*leaves):
    return nests.plain(function(*tree.unflatten_as(tuple(signature), leaves)))

  traced = tf.function(call, autograph=False)
  specs = specs_of(tree.flatten(signature))
  return specs_of(traced.get_concrete_function(*specs).structured_outputs)


def compile_policy(
  step: Callable[..., types.Nest],
  signature: Sequence[types.Nest],
  state: types.Nest,
  jit_compile: bool,
) -> CompiledFunction:
  """Compiles a policy step; for the arguments see `CompiledFunction`.

  Without accelerators, XLA is faster for recurrent policies only, whose `state`
  has a leaf of shape `[B, D, ...]`. It uses another thread for each call, and
  waking a core takes longer than the few operations of other policies.
  """
  is_recurrent = any(len(leaf.shape) > 1 for leaf in tree.flatten(state))
  return CompiledFunction(
    step,
    signature,
    jit_compile and (is_recurrent or not WRAPS_OPERATIONS),
    in_caller=True,
  )


def _place_of(device: str | None) -> str:
  """Returns the device on which to put the arrays passed to a function.

  That is the host, from which TensorFlow copies them; but while it wraps
  operations in functions, it confuses concurrent copies between devices.
  """
  wraps = WRAPS_OPERATIONS or versions.always_wraps_operations()
  if device is None or not wraps:
    return _HOST
  spec = tf.DeviceSpec.from_string(f'/{device.lstrip("/")}')
  return spec.replace(job='localhost', replica=0, task=0).to_string()


def _attributes_of(function: Any, in_caller: bool) -> tuple[Any, ...]:
  """Returns alternating names and values of attributes for the call."""
  # TensorFlow's annotations declare the context as None.
  current: Any = context.context()
  options = current.function_call_options
  attributes = {
    'executor_type': options.executor_type or '',
    'config_proto': options.config_proto_serialized,
  }
  if in_caller:
    attributes |= {
      'Tin': [one.dtype.as_datatype_enum for one in function.inputs],
      'Tout': [one.dtype.as_datatype_enum for one in function.outputs],
      'f': function,
      'config': '',
    }
  return tuple(itertools.chain(*attributes.items()))


def set_xla_flags() -> None:
  """Adds flags to `XLA_FLAGS`, whose own flags stay as they are."""
  flags = os.environ.get('XLA_FLAGS', '')
  wanted = {_FAST_COMPILATION: 'true'}
  if versions.num_cpus() <= _FEW_CORES:
    wanted[_SEVERAL_THREADS] = 'false'
  missing = [f'{k}={v}' for k, v in wanted.items() if k not in flags]
  os.environ['XLA_FLAGS'] = ' '.join(part for part in (flags, *missing) if part)


# Functions that call Python or print, by operation.
_OF_PYTHON = {
  'PrintV2': 'tf.print',
  'EagerPyFunc': 'tf.py_function',
  'PyFunc': 'tf.numpy_function',
  'PyFuncStateless': 'tf.numpy_function',
}


def _check_calls_no_python(function: Any) -> None:
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
