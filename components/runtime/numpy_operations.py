"""NumPy equivalents of TensorFlow operations."""

import numpy as np

# NumPy expressions for operands {i}, by operation.
EXPRESSIONS = {
  'Abs': 'abs({0})',
  'Add': '{0} + {1}',
  'AddV2': '{0} + {1}',
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
REDUCTIONS = {'Max': 'max', 'Mean': 'mean', 'Min': 'min', 'Sum': 'sum'}
# Operations with several outputs: parts of one array.
DIVISIONS = {'Split', 'SplitV'}
VIEWS = {*DIVISIONS, 'ExpandDims', 'Reshape', 'Squeeze', 'StridedSlice'}


def _softmax(logits: np.ndarray) -> np.ndarray:
  exponentials = np.exp(logits - logits.max(-1, keepdims=True))
  return exponentials / exponentials.sum(-1, keepdims=True)


def _log_softmax(logits: np.ndarray) -> np.ndarray:
  shifted = logits - logits.max(-1, keepdims=True)
  return shifted - np.log(np.exp(shifted).sum(-1, keepdims=True))


def _cross_entropy(logits: np.ndarray, labels: np.ndarray) -> np.ndarray:
  """Returns −log softmax(logits)[label], `[B]`."""
  return -_log_softmax(logits)[np.arange(len(labels)), labels]


# Operations that need several NumPy calls.
FUNCTIONS = {
  'LogSoftmax': _log_softmax,
  'Softmax': _softmax,
  # Its second output, a gradient, is never used.
  'SparseSoftmaxCrossEntropyWithLogits': _cross_entropy,
}
