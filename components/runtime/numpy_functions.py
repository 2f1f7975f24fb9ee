"""Small TensorFlow functions, run by NumPy.

TensorFlow takes more than a microsecond for each operation of a graph, however
small, and NumPy half of that. So the policy of a small network, some forty
operations on a few rows, runs faster in NumPy. Its graph is translated,
operation by operation, to the source of a Python function.

Results are the same up to rounding.
"""

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow.python.framework import tensor_util

from repertory.components.runtime import compilation

# Maximum time of NumPy relative to TensorFlow, whose time grows more within a
# run, where other parts use the caches. Policies of small networks are at 0.6
# to 1.0, or from 1.15 on, so the choice is stable between runs.
_SHARE_OF_TIME = 1.08
_NUM_MEASUREMENTS = 20
# Per update, as in the DQN paper. Reading the variables costs NumPy half of
# what it saves in a call.
_CALLS_BETWEEN_UPDATES = 4
_NUM_COMPARISONS = 3

# Maximum number of multiplications in all matrix products of a call. Above it
# NumPy has no advantage, and would use threads.
_MAX_PRODUCTS = 100_000
# Above this number BLAS uses threads for matrix–vector products, which costs
# more than the product.
_MAX_PRODUCTS_OF_VECTOR = 9_000


class CannotTranslateError(Exception):
  """NumPy cannot run a function."""


class NumpyFunction:
  """A NumPy version of a compiled function, with the same interface."""

  def __init__(
    self, compiled: compilation.CompiledFunction, version: Callable[[], int]
  ):
    """Translates a compiled function.

    Args:
      compiled: The function; it may read variables, but have no side effects.
      version: Returns a new number after variables have changed.

    Raises:
      CannotTranslateError: If NumPy cannot run it, with the reason.
    """
    self._version = version
    self._read_at: int | None = None
    self._variables: Sequence[np.ndarray] = ()
    translation = _Translation(compiled.function)
    self._read = compilation.compile_variable_reads(translation.handles)
    self._compute = translation.compute
    self._absent = compiled.absent

  def forget(self) -> None:
    """Invalidates the cached variables."""
    self._read_at = None

  def __call__(self, *leaves: np.ndarray) -> list[Any]:
    """Maps the leaves of all arguments to the leaves of the output."""
    version = self._version()
    if version != self._read_at:
      self._read_at = version
      self._variables = [one.numpy() for one in self._read()]
    outputs = self._compute(*leaves, *self._variables)
    for place in self._absent:
      outputs.insert(place, None)
    return outputs


def find_faster(
  compiled: compilation.CompiledFunction, version: Callable[[], int]
) -> NumpyFunction | None:
  """Returns a NumPy version of a function, if that is faster.

  Args:
    compiled: See `NumpyFunction`.
    version: Likewise.

  Returns:
    None if TensorFlow is faster, if NumPy cannot run the function or gives
    other results for random arguments, or if the function is eager.
  """
  # Without wrapped operations there is an accelerator.
  if compiled.is_eager or not compilation.WRAPS_OPERATIONS:
    return None
  try:
    translated = NumpyFunction(compiled, version)
    random = np.random.default_rng(0)
    for _ in range(_NUM_COMPARISONS):
      leaves = [_draw(random, spec) for spec in compiled.argument_specs]
      if not all(map(_are_alike, translated(*leaves), compiled(*leaves))):
        return None
  except Exception:  # TensorFlow acts, whatever the reason.
    return None
  zeros = [
    np.zeros(spec.shape, spec.dtype.as_numpy_dtype)
    for spec in compiled.argument_specs
  ]
  ours, theirs = [], []
  for _ in range(_NUM_MEASUREMENTS):
    translated.forget()
    for function, seconds in ((translated, ours), (compiled, theirs)):
      start = time.perf_counter()
      for _ in range(_CALLS_BETWEEN_UPDATES):
        function(*zeros)
      seconds.append(time.perf_counter() - start)
  return translated if min(ours) < _SHARE_OF_TIME * min(theirs) else None


def _draw(random: np.random.Generator, spec: tf.TensorSpec) -> np.ndarray:
  """Draws an argument: normal floats, bits, or integers that are 0 or 1."""
  dtype, shape = spec.dtype.as_numpy_dtype, spec.shape.as_list()
  if spec.dtype.is_floating:
    return random.normal(size=shape).astype(dtype)
  if dtype == np.uint64:  # Seeds of random streams, which use all bits.
    return random.integers(2**64, size=shape, dtype=dtype)
  return random.integers(2, size=shape).astype(dtype)


def _are_alike(ours: Any, theirs: Any) -> bool:
  """Returns whether two leaves are equal, floats up to rounding."""
  if ours is None or theirs is None:
    return ours is theirs
  theirs = theirs.numpy()
  if (ours.dtype, ours.shape) != (theirs.dtype, theirs.shape):
    return False
  if not np.issubdtype(ours.dtype, np.floating):
    return np.array_equal(ours, theirs)
  size = np.max(np.abs(theirs[np.isfinite(theirs)]), initial=0.0)
  return np.allclose(ours, theirs, rtol=0, atol=1e-3 * size, equal_nan=True)


def _softmax(logits: np.ndarray) -> np.ndarray:
  exponentials = np.exp(logits - logits.max(-1, keepdims=True))
  return exponentials / exponentials.sum(-1, keepdims=True)


def _log_softmax(logits: np.ndarray) -> np.ndarray:
  shifted = logits - logits.max(-1, keepdims=True)
  return shifted - np.log(np.exp(shifted).sum(-1, keepdims=True))


def _cross_entropy(logits: np.ndarray, labels: np.ndarray) -> np.ndarray:
  """Returns −log softmax(logits)[label], `[B]`."""
  return -_log_softmax(logits)[np.arange(len(labels)), labels]


_NAMESPACE = {
  'np': np,
  'softmax': _softmax,
  'log_softmax': _log_softmax,
  'cross_entropy': _cross_entropy,
}

# NumPy expressions for operands {i}, by operation: first those that compute
# each number separately.
ELEMENTWISE = {
  'Abs': 'abs({0})',
  'Add': '{0} + {1}',
  'AddV2': '{0} + {1}',
  'BiasAdd': '{0} + {1}',
  'BitwiseAnd': '{0} & {1}',
  'BitwiseXor': '{0} ^ {1}',
  'Cos': 'np.cos({0})',
  'Elu': 'np.where({0} > 0, {0}, np.expm1({0}))',
  'Equal': '{0} == {1}',
  'Exp': 'np.exp({0})',
  'Floor': 'np.floor({0})',
  'Greater': '{0} > {1}',
  'GreaterEqual': '{0} >= {1}',
  'Identity': '{0}',
  'Less': '{0} < {1}',
  'LessEqual': '{0} <= {1}',
  'Log': 'np.log({0})',
  'Log1p': 'np.log1p({0})',
  'LogicalAnd': '{0} & {1}',
  'LogicalNot': '~{0}',
  'LogicalOr': '{0} | {1}',
  'Maximum': 'np.maximum({0}, {1})',
  'Minimum': 'np.minimum({0}, {1})',
  'Mul': '{0} * {1}',
  'Neg': '-{0}',
  'NotEqual': '{0} != {1}',
  'Pow': '{0} ** {1}',
  'RealDiv': '{0} / {1}',
  'RightShift': '{0} >> {1}',
  'Rsqrt': 'np.reciprocal(np.sqrt({0}))',
  'SelectV2': 'np.where({0}, {1}, {2})',
  'Sign': 'np.sign({0})',
  'Sin': 'np.sin({0})',
  'Sqrt': 'np.sqrt({0})',
  'Square': 'np.square({0})',
  'SquaredDifference': 'np.square({0} - {1})',
  'StopGradient': '{0}',
  'Sub': '{0} - {1}',
  'Tanh': 'np.tanh({0})',
  'ZerosLike': 'np.zeros_like({0})',
}
# Others also have [i] for constant operands, and names of attributes.
_TEMPLATES = {
  'ArgMax': '{0}.argmax([1]).astype([output_type])',
  'Cast': '{0}.astype([DstT])',
  'Cumsum': '{0}.cumsum([1], dtype=[T])',
  'ExpandDims': 'np.expand_dims({0}, [1])',
  'Fill': 'np.full([0], {1})',
  'GatherV2': '{0}.take({1}, [2])',
  'LogSoftmax': 'log_softmax({0})',
  'Max': '{0}.max([1], keepdims=[keep_dims])',
  'Mean': '{0}.mean([1], keepdims=[keep_dims])',
  'Min': '{0}.min([1], keepdims=[keep_dims])',
  'Pad': 'np.pad({0}, [1])',
  'PadV2': 'np.pad({0}, [1], constant_values={2})',
  'Relu': 'np.maximum({0}, [zero])',
  'Softmax': 'softmax({0})',
  'Softplus': 'np.logaddexp({0}, [zero])',
  # Its second output, a gradient, is never used.
  'SparseSoftmaxCrossEntropyWithLogits': 'cross_entropy({0}, {1})',
  'Split': 'np.split({1}, [num_split], [0])',
  # NumPy would sum integers as larger ones.
  'Sum': '{0}.sum([1], keepdims=[keep_dims], dtype=[T])',
}
# Their results share memory with an operand, or with other results.
_VIEWS = {
  *('ExpandDims', 'Reshape', 'Split', 'SplitV', 'Squeeze', 'StridedSlice'),
}
# The only values of attributes that the templates are right for.
_REQUIRED = {
  'BiasAdd': {'data_format': b'NHWC'},
  'Cumsum': {'exclusive': False, 'reverse': False},
  'GatherV2': {'batch_dims': 0},
}
_HARMLESS = {'Placeholder', 'ReadVariableOp'}  # Harmless stateful operations.


class _Translation:
  """A graph as a Python function of its arguments and variables.

  Attributes:
    handles: The variables that are read, with their dtypes.
    compute: The function of arrays, those of the variables last.
  """

  def __init__(self, function: Any):
    """Translates a concrete function; may raise CannotTranslateError."""
    self.handles: list[tuple[Any, tf.DType]] = []
    self._lines: list[str] = []
    self._namespace: dict[str, Any] = dict(_NAMESPACE)
    self._num_products = 0
    self._owned: set[str] = set()  # Arrays that share memory with no other.
    num_arguments = len(function.inputs) - len(function.captured_inputs)
    arguments = [f'x{i}' for i in range(num_arguments)]
    # Names in the source, and known values, by the names of tensors.
    self._names = dict(zip((x.name for x in function.inputs), arguments))
    self._values: dict[str, np.ndarray] = {}
    self._captured: dict[str, Any] = {}
    for tensor, value in zip(
      function.inputs[num_arguments:], function.captured_inputs, strict=True
    ):
      if value.dtype == tf.resource:
        self._captured[tensor.name] = value
      else:
        self._values[tensor.name] = value.numpy()
    for operation in _needed(function):
      self._translate(operation)
    results: list[str] = []
    for output in function.outputs:
      result = self._use(output)
      if result not in self._owned or result in results:
        result = f'{result}.copy()'
      results.append(result if output.shape.rank else f'np.asarray({result})')
    body = [
      "with np.errstate(all='ignore'):",  # TensorFlow does not warn.
      *(f'  {line}' for line in self._lines),
      f'  return [{", ".join(results)}]',
    ]
    arguments += [f'v{i}' for i in range(len(self.handles))]
    source = '\n  '.join([f'def compute({", ".join(arguments)}):', *body])
    exec(compile(source, '<translated to NumPy>', 'exec'), self._namespace)
    self.compute: Callable[..., list] = self._namespace['compute']

  def _translate(self, operation: tf.Operation) -> None:
    """Appends an operation to the source, or folds a constant."""
    kind, output = operation.type, operation.outputs[0]
    if kind == 'Const':
      value = tensor_util.MakeNdarray(operation.get_attr('value'))
      self._values[output.name] = value
    elif kind == 'ReadVariableOp':
      self._names[output.name] = self._read(operation.inputs[0], output)
    elif kind == 'Shape':
      shape = _shape_of(operation.inputs[0])
      dtype = output.dtype.as_numpy_dtype
      self._values[output.name] = np.array(shape, dtype)
    elif kind != 'Placeholder':
      self._append(operation)

  def _read(self, handle: tf.Tensor, output: tf.Tensor) -> str:
    """Makes a variable an argument, once; returns its name."""
    if handle.name not in self._captured:
      raise CannotTranslateError(f'the variable of {output.name} is not known.')
    captured = self._captured[handle.name]
    for i, (other, _) in enumerate(self.handles):
      if other is captured:
        return f'v{i}'
    self.handles.append((captured, output.dtype))
    return f'v{len(self.handles) - 1}'

  def _append(self, operation: tf.Operation) -> None:
    kind, (output, *others) = operation.type, operation.outputs
    has_axes = kind in ELEMENTWISE and bool(output.shape.rank)
    template = self._express(operation)
    operands = [self._use(one, has_axes) for one in operation.inputs]
    expression = template.format(*operands)
    is_known = all(one.name in self._values for one in operation.inputs)
    if is_known and not others:
      value = eval(expression, self._namespace)
      self._values[output.name] = np.asarray(value)
    elif expression.isidentifier():
      self._names[output.name] = expression
    else:
      name = self._names[output.name] = f't{len(self._names)}'
      self._lines.append(f'{name} = {expression}')
      if kind in ('Split', 'SplitV'):
        for i, part in enumerate(operation.outputs):
          self._names[part.name] = f'{name}[{i}]'
      if kind not in _VIEWS and expression not in self._names.values():
        self._owned.add(name)

  def _use(self, tensor: tf.Tensor, has_axes: bool = False) -> str:
    """Returns the name of a tensor in the source.

    Args:
      has_axes: Whether a scalar constant may get an axis: NumPy resolves the
        dtype of two arrays faster than that of an array and a number.
    """
    if tensor.name in self._names:
      return self._names[tensor.name]
    if tensor.name not in self._values:
      raise CannotTranslateError(f'{tensor.name} is not computed.')
    value = self._values[tensor.name]
    return self._add(value[None] if has_axes and not value.ndim else value)

  def _add(self, value: Any) -> str:
    """Adds a constant to the source; returns its name there."""
    name = f'c{len(self._namespace)}'
    self._namespace[name] = value
    return name

  def _constant(self, operation: tf.Operation, place: int) -> Any:
    """Returns a constant operand as Python numbers; lists become tuples."""
    tensor = operation.inputs[place]
    if tensor.name not in self._values:
      raise CannotTranslateError(f'{tensor.name} is no constant.')
    value = self._values[tensor.name].tolist()
    return tuple(value) if isinstance(value, list) else value

  def _express(self, operation: tf.Operation) -> str:
    """Returns the NumPy expression of an operation, with {i} for operands."""
    kind, count = operation.type, len(operation.inputs)
    for name, value in _REQUIRED.get(kind, {}).items():
      if operation.get_attr(name) != value:
        raise CannotTranslateError(f'{name} of {kind} is not {value}.')
    if kind in ELEMENTWISE:
      return ELEMENTWISE[kind]
    if kind in _TEMPLATES:
      return self._fill(operation, _TEMPLATES[kind])
    if kind == 'MatMul':
      return self._express_product(operation)
    if kind == 'StridedSlice':
      return self._express_slice(operation)
    shape = _shape_of(operation.outputs[0])
    if kind in ('Reshape', 'Squeeze'):
      is_same = _shape_of(operation.inputs[0]) == shape
      return '{0}' if is_same else f'{{0}}.reshape({shape})'
    if kind == 'Pack':
      return f'np.stack(({_operands(count)},), {operation.get_attr("axis")})'
    if kind == 'ConcatV2':
      axis = self._constant(operation, count - 1)
      return f'np.concatenate(({_operands(count - 1)},), {axis})'
    if kind == 'SplitV':
      axis = self._constant(operation, 2)
      # Sizes of the outputs: one requested size may be −1, for the rest.
      sizes = [_shape_of(part)[axis] for part in operation.outputs]
      return f'np.split({{0}}, {np.cumsum(sizes)[:-1].tolist()}, {axis})'
    raise CannotTranslateError(f'the operation {kind} is not known.')

  def _fill(self, operation: tf.Operation, template: str) -> str:
    """Replaces the parts of a template in brackets."""
    parts = template.split('[')
    filled = [parts[0]]
    for part in parts[1:]:
      name, _, rest = part.partition(']')
      if name == 'zero':
        dtype = operation.outputs[0].dtype.as_numpy_dtype
        size = [1] if operation.outputs[0].shape.rank else []
        value = self._add(np.zeros(size, dtype))
      elif name.isdigit():
        value = str(self._constant(operation, int(name)))
      else:
        value = operation.get_attr(name)
        if isinstance(value, tf.DType):
          value = self._add(np.dtype(value.as_numpy_dtype))
      filled.append(f'{value}{rest}')
    return ''.join(filled)

  def _express_product(self, operation: tf.Operation) -> str:
    parts, shapes = [], []
    for i, name in enumerate(('transpose_a', 'transpose_b')):
      is_transposed = operation.get_attr(name)
      parts.append(f'{{{i}}}.T' if is_transposed else f'{{{i}}}')
      shapes.append(
        _shape_of(operation.inputs[i])[:: -1 if is_transposed else 1]
      )
    (num_rows, depth), (_, width) = shapes
    num_products = num_rows * depth * width
    self._num_products += num_products
    if self._num_products > _MAX_PRODUCTS:
      raise CannotTranslateError('there is too much to compute.')
    if 1 in (num_rows, width) and num_products > _MAX_PRODUCTS_OF_VECTOR:
      return f"np.einsum('bi,ij->bj', {parts[0]}, {parts[1]})"
    return f'{parts[0]}.dot({parts[1]})'

  def _express_slice(self, operation: tf.Operation) -> str:
    places = []
    bounds = [self._constant(operation, i) for i in (1, 2, 3)]
    for i, (begin, end, stride) in enumerate(zip(*bounds)):
      has = {
        name
        for name in ('begin', 'end', 'ellipsis', 'new_axis', 'shrink_axis')
        if operation.get_attr(f'{name}_mask') >> i & 1
      }
      if 'ellipsis' in has:
        places.append('...')
      elif 'new_axis' in has:
        places.append('None')
      elif 'shrink_axis' in has:
        places.append(str(begin))
      else:
        first = '' if 'begin' in has else begin
        last = '' if 'end' in has else end
        places.append(f'{first}:{last}:{stride}')
    return f'{{0}}[{", ".join(places) or "..."}]'


def _needed(function: Any) -> list[tf.Operation]:
  """Returns the operations that the outputs depend on, in graph order.

  Raises:
    CannotTranslateError: If an operation has side effects.
  """
  needed, following = set(), [one.op for one in function.outputs]
  while following:
    operation = following.pop()
    if operation.name not in needed:
      needed.add(operation.name)
      following += [one.op for one in operation.inputs]
  operations = function.graph.get_operations()
  for one in operations:
    if one.op_def.is_stateful and one.type not in _HARMLESS:
      raise CannotTranslateError(f'{one.name} has effects.')
  return [one for one in operations if one.name in needed]


def _shape_of(tensor: tf.Tensor) -> list[int]:
  """Returns a static shape."""
  if not tensor.shape.is_fully_defined():
    raise CannotTranslateError(f'the shape of {tensor.name} is not known.')
  return tensor.shape.as_list()


def _operands(count: int) -> str:
  """Returns placeholders for `count` operands of a template."""
  return ', '.join(f'{{{i}}}' for i in range(count))
