"""Translates TensorFlow graphs to Python functions that compute with NumPy.

A graph is translated, operation by operation, to the source of a function.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow.python.framework import tensor_util

from repertory.components.runtime import numpy_operations

# Maximum number of multiplications in all matrix products of a call. Above it
# NumPy has no advantage, and would use threads.
_MAX_PRODUCTS = 100_000
# Above this number BLAS uses threads for matrix–vector products, which costs
# more than the product.
_MAX_PRODUCTS_OF_VECTOR = 9_000


class CannotTranslateError(Exception):
  """NumPy cannot run a function."""


_HARMLESS = {'Placeholder', 'ReadVariableOp'}  # Harmless stateful operations.


class Translation:
  """A graph as a Python function of its arguments and variables.

  Attributes:
    handles: The variables that are read, with their dtypes.
    compute: The function of arrays, those of the variables last.
  """

  def __init__(self, function: Any):
    """Translates a concrete function.

    Args:
      function: A concrete function.

    Raises:
      CannotTranslateError: If it cannot be translated, with the reason.
    """
    self._read_handles: list[tuple[str, Any, tf.DType]] = []
    self._lines: list[str] = []
    self._namespace: dict[str, Any] = {'np': np, **numpy_operations.FUNCTIONS}
    self._num_products = 0
    self._shared: set[str] = set()  # Names of possible views.
    num_arguments = len(function.inputs) - len(function.captured_inputs)
    arguments = [f'x{i}' for i in range(num_arguments)]
    # Names in the source, and known values, by the names of tensors.
    self._names = {
      tensor.name: name for tensor, name in zip(function.inputs, arguments)
    }
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
    results = self._results(function.outputs)
    self.handles = [(handle, dtype) for _, handle, dtype in self._read_handles]
    arguments += [f'v{i}' for i in range(len(self.handles))]
    self.compute = self._compile(arguments, results)

  def _results(self, outputs: Sequence[tf.Tensor]) -> list[str]:
    """Returns the outputs; arrays that are shared are copied."""
    results: list[str] = []
    for output in outputs:
      result = self._use(output)
      if result in self._shared or result in results or result[0] in 'xcv':
        result = f'{result}.copy()'
      results.append(result if output.shape.rank else f'np.asarray({result})')
    return results

  def _compile(
    self, arguments: Sequence[str], results: Sequence[str]
  ) -> Callable[..., list]:
    body = [*self._lines, f'return [{", ".join(results)}]']
    # TensorFlow does not warn of infinities and NaNs.
    body = ["with np.errstate(all='ignore'):", *(f'  {one}' for one in body)]
    source = '\n  '.join([f'def compute({", ".join(arguments)}):', *body])
    exec(compile(source, '<translated to NumPy>', 'exec'), self._namespace)
    return self._namespace['compute']

  def _translate(self, operation: tf.Operation) -> None:
    """Appends an operation to the source, or folds a constant."""
    kind, output = operation.type, operation.outputs[0]
    if kind == 'Const':
      value = tensor_util.MakeNdarray(operation.get_attr('value'))
      self._values[output.name] = value
    elif kind == 'ReadVariableOp':
      self._read(operation.inputs[0].name, output)
    elif kind == 'Shape':
      shape = _shape_of(operation.inputs[0])
      dtype = output.dtype.as_numpy_dtype
      self._values[output.name] = np.array(shape, dtype)
    elif kind != 'Placeholder':
      self._append(operation, self._express(operation))

  def _read(self, handle: str, output: tf.Tensor) -> None:
    """Makes a variable an argument, once."""
    if handle not in self._captured:
      raise CannotTranslateError(f'the variable of {output.name} is not known.')
    places = [place for place, _, _ in self._read_handles]
    if handle not in places:
      places.append(handle)
      self._read_handles.append((handle, self._captured[handle], output.dtype))
    self._names[output.name] = f'v{places.index(handle)}'

  def _append(self, operation: tf.Operation, template: str) -> None:
    output = operation.outputs[0]
    is_elementwise = operation.type in (
      *numpy_operations.EXPRESSIONS,
      'BiasAdd',
      'RightShift',
    )
    has_axes = bool(is_elementwise and output.shape.rank)
    operands = [self._use(one, has_axes) for one in operation.inputs]
    expression = template.format(*operands)
    is_known = all(one.name in self._values for one in operation.inputs)
    is_divided = operation.type in numpy_operations.DIVISIONS
    if is_known and not is_divided:
      value = eval(expression, self._namespace)
      self._values[output.name] = np.asarray(value)
    elif expression.isidentifier():
      self._names[output.name] = expression
    else:
      name = self._names[output.name] = f't{len(self._names)}'
      self._lines.append(f'{name} = {expression}')
      if operation.type in numpy_operations.VIEWS or expression in self._shared:
        self._shared.add(name)
      if is_divided:
        for i, part in enumerate(operation.outputs):
          self._names[part.name] = f'{name}[{i}]'
          self._shared.add(f'{name}[{i}]')

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

  def _dtype(self, operation: tf.Operation, attribute: str) -> str:
    """Returns the name of a dtype in the source."""
    dtype = tf.as_dtype(operation.get_attr(attribute))
    return self._add(np.dtype(dtype.as_numpy_dtype))

  def _zero(self, operation: tf.Operation) -> str:
    """Returns the name of a zero of an operation's dtype in the source."""
    dtype = tf.as_dtype(operation.get_attr('T')).as_numpy_dtype
    return self._add(
      np.zeros([1] if operation.outputs[0].shape.rank else [], dtype)
    )

  def _constant(self, operation: tf.Operation, place: int) -> Any:
    """Returns a constant operand as Python numbers.

    Raises:
      CannotTranslateError: If it is not constant.
    """
    tensor = operation.inputs[place]
    if tensor.name not in self._values:
      raise CannotTranslateError(f'{tensor.name} is no constant.')
    return self._values[tensor.name].tolist()

  def _express(self, operation: tf.Operation) -> str:
    """Returns the NumPy expression of an operation, with {i} for operands."""
    kind = operation.type
    if kind in numpy_operations.EXPRESSIONS:
      return numpy_operations.EXPRESSIONS[kind]
    if kind in numpy_operations.FUNCTIONS:
      return f'{kind}({_operands(len(operation.inputs))})'
    if kind in numpy_operations.REDUCTIONS:
      return self._express_reduction(operation)
    express = getattr(self, f'_express_{kind.lower()}', None)
    if express is None:
      raise CannotTranslateError(f'the operation {kind} is not known.')
    return express(operation)

  def _express_reduction(self, operation: tf.Operation) -> str:
    axes = tuple(np.atleast_1d(self._constant(operation, 1)).tolist())
    keeps = bool(operation.get_attr('keep_dims'))
    settings = f'axis={axes}, keepdims={keeps}'
    is_floating = tf.as_dtype(operation.get_attr('T')).is_floating
    if operation.type == 'Mean' and not is_floating:
      raise CannotTranslateError('a mean is of integers.')
    if operation.type == 'Sum':  # NumPy would sum integers as larger ones.
      settings += f', dtype={self._dtype(operation, "T")}'
    return f'{{0}}.{numpy_operations.REDUCTIONS[operation.type]}({settings})'

  def _express_biasadd(self, operation: tf.Operation) -> str:
    if operation.get_attr('data_format') != b'NHWC':
      raise CannotTranslateError('channels are not last.')
    return '{0} + {1}'

  def _express_rightshift(self, operation: tf.Operation) -> str:
    places = np.array(self._constant(operation, 1))
    num_bits = 8 * operation.inputs[0].dtype.size
    if np.any((places < 0) | (places >= num_bits)):
      raise CannotTranslateError('bits are shifted out.')
    return '{0} >> {1}'

  def _express_softplus(self, operation: tf.Operation) -> str:
    return f'np.logaddexp({{0}}, {self._zero(operation)})'

  def _express_argmax(self, operation: tf.Operation) -> str:
    axis = self._constant(operation, 1)
    dtype = self._dtype(operation, 'output_type')
    return f'{{0}}.argmax({axis}).astype({dtype})'

  def _express_cast(self, operation: tf.Operation) -> str:
    return f'{{0}}.astype({self._dtype(operation, "DstT")})'

  def _express_concatv2(self, operation: tf.Operation) -> str:
    num_parts = len(operation.inputs) - 1
    axis = self._constant(operation, num_parts)
    return f'np.concatenate(({_operands(num_parts)},), {axis})'

  def _express_cumsum(self, operation: tf.Operation) -> str:
    if operation.get_attr('exclusive') or operation.get_attr('reverse'):
      raise CannotTranslateError('a sum is exclusive or reverse.')
    axis, dtype = self._constant(operation, 1), self._dtype(operation, 'T')
    return f'{{0}}.cumsum({axis}, dtype={dtype})'

  def _express_expanddims(self, operation: tf.Operation) -> str:
    return f'np.expand_dims({{0}}, {self._constant(operation, 1)})'

  def _express_fill(self, operation: tf.Operation) -> str:
    return f'np.full({self._constant(operation, 0)}, {{1}})'

  def _express_gatherv2(self, operation: tf.Operation) -> str:
    axis = self._constant(operation, 2)
    if operation.get_attr('batch_dims'):
      raise CannotTranslateError('rows are looked up each in its own.')
    return f'{{0}}.take({{1}}, {axis})'

  def _express_matmul(self, operation: tf.Operation) -> str:
    parts, shapes = [], []
    for i, name in enumerate(('transpose_a', 'transpose_b')):
      shape, is_transposed = (
        _shape_of(operation.inputs[i]),
        operation.get_attr(name),
      )
      parts.append(f'{{{i}}}.T' if is_transposed else f'{{{i}}}')
      shapes.append(shape[::-1] if is_transposed else shape)
    (num_rows, depth), (_, width) = shapes
    self._num_products += num_rows * depth * width
    if self._num_products > _MAX_PRODUCTS:
      raise CannotTranslateError('there is too much to compute.')
    if (
      1 in (num_rows, width)
      and num_rows * depth * width > _MAX_PRODUCTS_OF_VECTOR
    ):
      return f"np.einsum('bi,ij->bj', {parts[0]}, {parts[1]})"
    return f'{parts[0]}.dot({parts[1]})'

  def _express_pack(self, operation: tf.Operation) -> str:
    parts = _operands(len(operation.inputs))
    return f'np.stack(({parts},), {operation.get_attr("axis")})'

  def _express_pad(self, operation: tf.Operation) -> str:
    return f'np.pad({{0}}, {self._constant(operation, 1)})'

  def _express_padv2(self, operation: tf.Operation) -> str:
    widths = self._constant(operation, 1)
    return f'np.pad({{0}}, {widths}, constant_values={{2}})'

  def _express_relu(self, operation: tf.Operation) -> str:
    return f'np.maximum({{0}}, {self._zero(operation)})'

  def _express_reshape(self, operation: tf.Operation) -> str:
    shape = _shape_of(operation.outputs[0])
    if _shape_of(operation.inputs[0]) == shape:
      return '{0}'
    return f'{{0}}.reshape({shape})'

  def _express_split(self, operation: tf.Operation) -> str:
    axis = self._constant(operation, 0)
    return f'np.split({{1}}, {operation.get_attr("num_split")}, {axis})'

  def _express_splitv(self, operation: tf.Operation) -> str:
    axis = self._constant(operation, 2)
    # Sizes of the outputs: one requested size may be −1, for the rest.
    sizes = [_shape_of(part)[axis] for part in operation.outputs]
    ends = np.cumsum(sizes)[:-1].tolist()
    return f'np.split({{0}}, {ends}, {axis})'

  def _express_squeeze(self, operation: tf.Operation) -> str:
    axes = tuple(operation.get_attr('squeeze_dims')) or None
    return f'{{0}}.squeeze({axes})'

  def _express_stridedslice(self, operation: tf.Operation) -> str:
    begins, ends, strides = (self._constant(operation, i) for i in (1, 2, 3))
    masks = {
      name: operation.get_attr(f'{name}_mask')
      for name in ('begin', 'end', 'ellipsis', 'new_axis', 'shrink_axis')
    }
    places = []
    for i, (begin, end, stride) in enumerate(zip(begins, ends, strides)):
      has = {name for name, mask in masks.items() if mask >> i & 1}
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


def _needed(function: Any) -> Iterator[tf.Operation]:
  """Yields the operations that the outputs depend on, in graph order.

  Raises:
    CannotTranslateError: If an operation has side effects.
  """
  needed, following = set(), [one.op for one in function.outputs]
  while following:
    operation = following.pop()
    if operation.name not in needed:
      needed.add(operation.name)
      following += [one.op for one in operation.inputs]
  for one in function.graph.get_operations():
    if one.op_def.is_stateful and one.type not in _HARMLESS:
      raise CannotTranslateError(f'{one.name} has effects.')
    if one.name in needed:
      yield one


def _shape_of(tensor: tf.Tensor) -> list[int]:
  """Returns a static shape."""
  if not tensor.shape.is_fully_defined():
    raise CannotTranslateError(f'the shape of {tensor.name} is not known.')
  return tensor.shape.as_list()


def _operands(count: int) -> str:
  """Returns placeholders for `count` operands of a template."""
  return ', '.join(f'{{{i}}}' for i in range(count))
