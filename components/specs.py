"""Environment specs: Acme's, re-exported, and their conversion to TensorFlow.

Only `core` and this module import Acme's names, so the rest of the code does
not depend on their origin.
"""

from typing import Any

import numpy as np
import tree
from acme import specs as acme_specs

from repertory.components import types
from repertory.components.runtime import nests

Array = acme_specs.Array
BoundedArray = acme_specs.BoundedArray
DiscreteArray = acme_specs.DiscreteArray
EnvironmentSpec = acme_specs.EnvironmentSpec


def make_environment_spec(environment: Any) -> EnvironmentSpec:
  """Collects the four specs of an environment, without a batch axis.

  They are copies, see `nests.plain`, so no module can change the environment's.

  Args:
    environment: A `dm_env.Environment` or a batch of them.
  """
  return nests.plain(acme_specs.make_environment_spec(environment))


def tensor_spec(nested_spec: types.Nest, *leading: int | None) -> types.Nest:
  """Returns the `tf.TensorSpec`s of a nest of array specs.

  Args:
    nested_spec: Nest of `dm_env.specs.Array`.
    *leading: Axes prepended to every shape, such as the batch size.
  """
  # Code that only steps environments need not import TensorFlow.
  import tensorflow as tf  # noqa: PLC0415

  return tree.map_structure(
    lambda spec: tf.TensorSpec((*leading, *spec.shape), spec.dtype, spec.name),
    nested_spec,
  )


def zeros(nested_spec: types.Nest, *leading: int) -> types.Nest:
  """Returns arrays of zeros, of the shapes and dtypes of `nested_spec`."""
  return tree.map_structure(
    lambda spec: np.zeros((*leading, *spec.shape), spec.dtype), nested_spec
  )
