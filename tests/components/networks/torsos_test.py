"""Tests of `components/networks/torsos.py` and `initialization.py`."""

import collections
import copy

import numpy as np
import pytest
import sonnet as snt
import tensorflow as tf
from acme import specs
from dm_env import specs as dm_env_specs

from repertory.components import networks
from repertory.components.networks import torsos
from support.system import rare_cases

B = 4


def make_nest():
  random = np.random.default_rng(0)
  return {
    'vector': random.normal(size=[B, 3]).astype(np.float32),
    'flag': np.array([True, False, False, True]),
    'inner': (
      random.integers(0, 255, size=[B, 2, 2]).astype(np.uint8),
      random.normal(size=[B]),
    ),
    'count': random.integers(-9, 9, size=[B]),
    'choice': np.array([2, 0, 1, 2], np.int32),
  }


SPEC = {
  'vector': specs.Array((3,), np.float32),
  'flag': specs.Array((), np.bool_),
  'inner': (specs.Array((2, 2), np.uint8), specs.Array((), np.float64)),
  # Bounded, but not discrete.
  'count': specs.BoundedArray((), np.int64, -9, 8),
  'choice': specs.DiscreteArray(3),
}

# Mappings are read in the order of their keys.
ORDER = (
  lambda nest: np.eye(3)[nest['choice']],
  lambda nest: nest['count'],
  lambda nest: nest['flag'],
  lambda nest: nest['inner'][0],
  lambda nest: nest['inner'][1],
  lambda nest: nest['vector'],
)
SIZE = 3 + 1 + 1 + 4 + 1 + 3

IMAGES = {
  'left': specs.BoundedArray((36, 40, 2), np.uint8, 0, 255),
  'middle': specs.Array((2,), np.float32),
  'right': specs.Array((36, 36, 1), np.float32),
}
# By image torso: of 'left', 'middle' and 'right'.
IMAGE_SIZES = {
  # 36: 8, 3, 1; 40: 9, 3, 1.
  'nature': (1 * 1 * 64, 2, 1 * 1 * 64),
  # 36: 18, 9, 5; 40: 20, 10, 5.
  'residual': (5 * 5 * 32, 2, 5 * 5 * 32),
  # 36: 7, 1; 40: 8, 1.
  'data_efficient': (1 * 1 * 64, 2, 1 * 1 * 64),
  # 36: 34; 40: 38.
  'minatar': (34 * 38 * 16, 2, 34 * 34 * 16),
}
KINDS = tuple(IMAGE_SIZES)


def slow_flat(nest, row):
  """Lists the numbers of one row."""
  numbers = []
  for leaf in ORDER:
    numbers += np.ravel(leaf(nest)[row]).astype(np.float32).tolist()
  return numbers


def make_images(*leading):
  random = np.random.default_rng(1)
  return {
    'left': tf.constant(
      random.integers(0, 256, [*leading, 36, 40, 2]).astype(np.uint8)
    ),
    'middle': tf.constant(random.normal(size=[*leading, 2]).astype(np.float32)),
    'right': tf.constant(
      random.uniform(size=[*leading, 36, 36, 1]).astype(np.float32)
    ),
  }


class TestObservationTorso:
  def test_nest_is_flattened_and_joined(self):
    nest = make_nest()
    torso = networks.ObservationTorso(SPEC, [])
    features = torso(tf.nest.map_structure(tf.constant, nest))
    assert features.shape == [B, SIZE]
    assert features.dtype == tf.float32
    for row in range(B):
      np.testing.assert_allclose(features[row], slow_flat(nest, row))

  def test_layers_end_with_relu(self):
    nest = make_nest()
    torso = networks.ObservationTorso(SPEC, [5, 2])
    tensors = tf.nest.map_structure(tf.constant, nest)
    torso(tensors)
    random = np.random.default_rng(1)
    for variable in torso.variables:
      variable.assign(random.normal(size=variable.shape))
    b_0, w_0, b_1, w_1 = (
      v.numpy() for v in sorted(torso.variables, key=lambda v: v.name)
    )
    assert w_0.shape == (SIZE, 5)
    x = np.array([slow_flat(nest, row) for row in range(B)])
    hidden = np.maximum(x @ w_0 + b_0, 0)
    expected = np.maximum(hidden @ w_1 + b_1, 0)
    assert np.count_nonzero(expected) > 0
    np.testing.assert_allclose(torso(tensors), expected, rtol=1e-4, atol=1e-3)

  @pytest.mark.parametrize('shape', [(), (3,), (2, 3)])
  def test_single_array(self, shape):
    x = np.random.default_rng(0).normal(size=[B, *shape]).astype(np.float32)
    torso = networks.ObservationTorso(specs.Array(shape, np.float32), [])
    np.testing.assert_array_equal(torso(tf.constant(x)), x.reshape([B, -1]))

  @pytest.mark.parametrize(
    'dtype', [np.uint8, np.int8, np.uint16, np.int16, np.int32, np.int64]
  )
  @pytest.mark.parametrize('jit_compile', [None, False, True])
  def test_discrete_is_one_hot(self, dtype, jit_compile):
    torso = networks.ObservationTorso(specs.DiscreteArray(3, dtype), [])
    call = torso
    if jit_compile is not None:
      call = tf.function(torso, jit_compile=jit_compile, autograph=False)
    # -1, or the largest value; both are out of range, as 3 is.
    below = np.array([-1]).astype(dtype)[0]
    np.testing.assert_array_equal(
      call(tf.constant([2, 0, 3, below, 1], dtype)),
      [[0, 0, 1], [1, 0, 0], [0, 0, 0], [0, 0, 0], [0, 1, 0]],
    )

  def test_large_values_are_out_of_range(self):
    # 2³² is 0 in 32 bits.
    torso = networks.ObservationTorso(specs.DiscreteArray(2, np.int64), [])
    features = torso(tf.constant([2**32, 1], tf.int64))
    np.testing.assert_array_equal(features, [[0, 0], [0, 1]])

  def test_batch_size_may_be_unknown(self):
    spec = {
      'a': specs.Array((2, 3), np.float32),
      'b': specs.Array((), np.float32),
    }
    torso = networks.ObservationTorso(spec, [7])
    call = tf.function(
      torso,
      input_signature=[
        {'a': tf.TensorSpec([None, 2, 3]), 'b': tf.TensorSpec([None])}
      ],
    )
    for size in (1, 5):
      features = call({'a': tf.ones([size, 2, 3]), 'b': tf.ones([size])})
      assert features.shape == [size, 7]

  def test_order_is_that_of_keys_not_of_writing(self):
    spec = collections.OrderedDict(
      b=specs.Array((1,), np.float32), a=specs.Array((1,), np.float32)
    )
    torso = networks.ObservationTorso(spec, [])
    for nest in (
      {'a': tf.constant([[1.0]]), 'b': tf.constant([[2.0]])},
      {'b': tf.constant([[2.0]]), 'a': tf.constant([[1.0]])},
    ):
      np.testing.assert_array_equal(torso(nest), [[1, 2]])

  def test_kinds_of_nests(self):
    pair = collections.namedtuple('pair', ['y', 'x'])
    leaf = specs.Array((), np.float32)
    torso = networks.ObservationTorso([leaf, pair(leaf, {'k': leaf})], [])
    x = [tf.constant([float(i)]) for i in range(3)]
    np.testing.assert_array_equal(
      torso([x[0], pair(x[1], {'k': x[2]})]), [[0, 1, 2]]
    )
    # Sequences may turn into tuples on their way through replay.
    np.testing.assert_array_equal(
      torso((x[0], pair(x[1], {'k': x[2]}))), [[0, 1, 2]]
    )

  def test_refuses_nests_of_other_structure(self):
    leaf = specs.Array((), np.float32)
    torso = networks.ObservationTorso({'a': leaf, 'b': leaf}, [])
    x = tf.zeros([1])
    for nest in ({'a': x}, {'a': x, 'c': x}, (x, x), x):
      with pytest.raises((ValueError, TypeError)):
        torso(nest)

  def test_layers_of_vectors_have_no_others(self):
    torso = networks.ObservationTorso(SPEC, [5], 'residual')
    networks.create_variables(torso, SPEC)
    assert {v.name: tuple(v.shape) for v in torso.variables} == {
      'observation_torso/mlp/linear_0/w:0': (SIZE, 5),
      'observation_torso/mlp/linear_0/b:0': (5,),
    }


class TestImages:
  def make(self, kind, hidden_sizes=()):
    torso = networks.ObservationTorso(IMAGES, hidden_sizes, kind)
    networks.create_variables(torso, IMAGES)
    return torso

  @pytest.mark.parametrize('kind', KINDS)
  def test_each_goes_through_a_torso_of_its_own(self, kind):
    torso = self.make(kind)
    nest = make_images(3)
    features = torso(nest)
    assert features.shape == [3, sum(IMAGE_SIZES[kind])]
    alone = {}
    for index, key in ((0, 'left'), (2, 'right')):
      alone[key] = networks.IMAGE_TORSOS[kind]()
      alone[key](nest[key])
      mine = {v.name.split('/', 1)[1]: v for v in alone[key].variables}
      theirs = {
        v.name.split('/', 2)[2]: v
        for v in torso.variables
        if v.name.startswith(f'observation_torso/{kind}_{index}/')
      }
      assert sorted(mine) == sorted(theirs)
      for name, variable in mine.items():
        variable.assign(theirs[name])
    expected = [alone['left'](nest['left']), nest['middle']]
    expected += [alone['right'](nest['right'])]
    assert [x.shape[1] for x in expected] == [*IMAGE_SIZES[kind]]
    np.testing.assert_allclose(
      features, np.concatenate(expected, axis=1), rtol=1e-4, atol=1e-5
    )

  def test_auto_chooses_for_each_image(self):
    spec = {
      'large': specs.Array((36, 84, 1), np.uint8),
      'low': specs.Array((35, 84, 1), np.uint8),
      'minatar': specs.Array((10, 10, 4), np.float32),
      'thin': specs.Array((84, 2, 1), np.uint8),
      'vector': specs.Array((3,), np.float32),
    }
    torso = networks.ObservationTorso(spec, [], 'auto')
    torso({k: tf.zeros([1, *v.shape], v.dtype) for k, v in spec.items()})
    found = {v.name.split('/')[1] for v in torso.variables}
    assert found == {'nature_0', 'minatar_1', 'minatar_2', 'residual_3'}

  def test_nature_is_the_default(self):
    default = networks.ObservationTorso(IMAGES, [])
    features = default(make_images(1))
    assert features.shape == [1, sum(IMAGE_SIZES['nature'])]

  @pytest.mark.parametrize('kind', KINDS)
  def test_names_of_variables_differ(self, kind):
    names = [v.name for v in self.make(kind, [4]).variables]
    # The MLP has a layer.
    convolutions = {
      'nature': 3, 'residual': 15, 'data_efficient': 2, 'minatar': 1,
    }[kind]  # fmt: skip
    assert len(set(names)) == 2 * (2 * convolutions + 1)

  @pytest.mark.parametrize('kind', KINDS)
  @pytest.mark.parametrize(
    'jit_compile', rare_cases.daily([False, True], [False])
  )
  def test_compiled_is_eager(self, kind, jit_compile):
    torso = self.make(kind, [6])
    signature = {
      key: tf.TensorSpec([None, *spec.shape], spec.dtype)
      for key, spec in IMAGES.items()
    }
    call = tf.function(
      torso,
      input_signature=[signature],
      jit_compile=jit_compile,
      autograph=False,
    )
    for size in (1, 3):
      nest = make_images(size)
      features = call(nest)
      assert features.shape == [size, 6]
      np.testing.assert_allclose(features, torso(nest), rtol=1e-4, atol=1e-5)

  # XLA takes half a minute for 'residual', which image_torsos_test has.
  @pytest.mark.parametrize(
    ('kind', 'jit_compile'),
    [
      *[(kind, False) for kind in KINDS],
      *[(kind, True) for kind in KINDS if kind != 'residual'],
    ],
  )
  def test_gradients_reach_all_variables(self, kind, jit_compile):
    # Features of no layer, so that no ReLU of theirs is dead.
    torso = self.make(kind)
    nest = make_images(2)

    @tf.function(jit_compile=jit_compile, autograph=False)
    def gradients():
      with tf.GradientTape() as tape:
        loss = tf.reduce_sum(torso(nest) ** 2)
      return tape.gradient(loss, torso.trainable_variables)

    assert torso.trainable_variables
    for variable, gradient in zip(torso.trainable_variables, gradients()):
      assert np.max(np.abs(gradient)) > 0, variable.name

  @pytest.mark.parametrize('kind', KINDS)
  @pytest.mark.parametrize('known', [True, False])
  def test_leading_axes_may_be_merged(self, kind, known):
    torso = self.make(kind, [6])
    signature = {
      key: tf.TensorSpec([None, None, *spec.shape], spec.dtype)
      for key, spec in IMAGES.items()
    }
    nest = make_images(3, 2)  # [T, B, ...]
    call = tf.function(
      snt.BatchApply(torso), input_signature=None if known else [signature]
    )
    features = call(nest)
    assert features.shape == [3, 2, 6]
    for t in range(3):
      np.testing.assert_allclose(
        features[t],
        torso({key: leaf[t] for key, leaf in nest.items()}),
        rtol=1e-4,
        atol=1e-5,
      )

  @pytest.mark.parametrize('kind', KINDS)
  def test_copy_has_variables_of_its_own(self, kind):
    torso = self.make(kind, [6])
    nest = make_images(2)
    before = torso(nest)
    other = copy.deepcopy(torso)
    assert [v.name for v in other.variables] == [
      v.name for v in torso.variables
    ]
    for variable in torso.variables:
      variable.assign(tf.zeros_like(variable))
    np.testing.assert_array_equal(other(nest), before)
    assert np.max(torso(nest)) == 0


class TestCheckObservation:
  @pytest.mark.parametrize(
    'spec',
    [
      specs.Array((), np.float32),
      specs.Array((3,), np.float64),
      specs.Array((2, 3), np.uint8),
      specs.Array((), np.bool_),
      specs.DiscreteArray(5),
      specs.BoundedArray((2,), np.int64, 0, 1),
      specs.Array((84, 84, 4), np.uint8),
      specs.Array((36, 36, 1), np.float32),
    ],
  )
  def test_takes(self, spec):
    for kind in ('auto', *KINDS):
      networks.check_observation(spec, kind)
      networks.check_observation({'a': spec, 'b': (spec, spec)}, kind)

  @pytest.mark.parametrize(
    ('spec', 'message'),
    [
      pytest.param(
        specs.Array((4, 84, 84, 3), np.uint8),
        r'\(4, 84, 84, 3\).*uint8.*environments.wrappers.FrameStack',
        id='video',
      ),
      pytest.param(
        specs.Array((0,), np.float32), r'\(0,\).*float32', id='empty'
      ),
      pytest.param(
        specs.Array((3, 0), np.float32), r'\(3, 0\)', id='empty_matrix'
      ),
      pytest.param(
        specs.Array((84, 84, 0), np.uint8), r'\(84, 84, 0\)', id='no_channels'
      ),
      pytest.param(dm_env_specs.StringArray((), str), 'numeric', id='text'),
      pytest.param(specs.Array((2,), object), 'object', id='objects'),
      pytest.param(
        specs.Array((35, 84, 1), np.uint8),
        r'at least 36 .*\(35, 84, 1\)',
        id='low',
      ),
      pytest.param(
        specs.Array((84, 35, 1), np.uint8),
        "for image_torso 'nature'",
        id='thin',
      ),
    ],
  )
  def test_refuses(self, spec, message):
    vector = specs.Array((3,), np.float32)
    nest = {'a': (vector, spec), 'b': vector}
    for check in (
      networks.check_observation,
      lambda spec: networks.ObservationTorso(spec, [8]),
    ):
      with pytest.raises(
        ValueError, match='^The observation must .*' + message
      ):
        check(spec)
      with pytest.raises(ValueError, match='Leaf a/1 of .*' + message):
        check(nest)

  @pytest.mark.parametrize(
    'shape',
    [(3, 36, 36), (4, 84, 84), (1, 28, 28), (3, 210, 160), (9, 64, 64)],
    ids=str,
  )
  @pytest.mark.parametrize('dtype', [np.uint8, np.float32])
  def test_refuses_images_with_channels_first(self, shape, dtype):
    with pytest.raises(ValueError, match=r'Leaf a .*\?channels_first=true'):
      networks.check_observation({'a': specs.Array(shape, dtype)}, 'auto')
    last = specs.Array((*shape[1:], shape[0]), dtype)
    networks.check_observation(last, 'auto')

  # MinAtar, MiniGrid, bytes of tiles, 2048, a kitchen of 5 x 9, chess, Go.
  @pytest.mark.parametrize(
    'shape',
    [
      *[(10, 10, n) for n in (4, 6, 7, 10)],
      (7, 7, 3),
      (4, 4, 16),
      (5, 9, 26),
      (8, 8, 111),
      (19, 19, 17),
      (84, 84, 4),
      (10, 5),
      (8, 8),
    ],
    ids=str,
  )
  def test_takes_small_images_without_a_warning(self, shape, warnings):
    for spec in (
      specs.BoundedArray(shape, np.uint8, 0, 255),
      specs.BoundedArray(shape, np.float32, 0, 1),
    ):
      networks.check_observation(spec, 'auto')
    assert warnings == []

  @pytest.mark.parametrize(
    ('spec', 'words'),
    [
      (specs.BoundedArray((84, 84), np.uint8, 0, 255), '[84, 84, 1]'),
      (specs.BoundedArray((84, 84, 3), np.float32, 0, 255), 'Return uint8'),
      (specs.BoundedArray((64, 64, 1), np.int32, 0, 255), 'Return uint8'),
    ],
    ids=['without_channels', 'floats', 'integers'],
  )
  def test_warns_once_of_images_that_are_not_scaled(
    self, spec, words, warnings
  ):
    for _ in range(2):
      networks.check_observation({'a': spec}, 'auto')
    (message,) = warnings
    assert message.startswith('Leaf a of the observation')
    assert words in message

  @pytest.fixture
  def warnings(self, monkeypatch):
    """Collects logged warnings."""
    torsos._warn.cache_clear()
    logged = []
    monkeypatch.setattr(
      torsos.logging, 'warning', lambda text, *args: logged.append(text % args)
    )
    return logged

  @pytest.mark.parametrize('kind', ['residual', 'auto'])
  def test_takes_images_of_any_size(self, kind):
    for size in (1, 2, 3, 10, 35):
      spec = specs.Array((size, 40, 1), np.uint8)
      networks.check_observation(spec, kind)
      features = networks.ObservationTorso(spec, [4], kind)(
        tf.zeros([2, size, 40, 1], tf.uint8)
      )
      assert features.shape == [2, 4]

  @pytest.mark.parametrize('leaf', [tf.TensorSpec([3]), None, 3])
  def test_refuses_what_is_no_spec(self, leaf):
    with pytest.raises(
      ValueError, match='Leaf a of the observation spec must be a dm_env spec'
    ):
      networks.check_observation({'a': leaf})

  @pytest.mark.parametrize('nest', [{}, ()])
  def test_refuses_nothing(self, nest):
    with pytest.raises(ValueError, match='must have leaves'):
      networks.check_observation(nest)

  def test_refuses_other_torsos_even_without_images(self):
    vector = specs.Array((3,), np.float32)
    message = r"image_torso must be one of \['auto', 'nature', .*got 'vgg'"
    with pytest.raises(ValueError, match=message):
      networks.check_observation(vector, 'vgg')


class TestCreateVariables:
  def test_makes_all_variables(self):
    spec = {
      'a': specs.Array((2, 2), np.float32),
      'b': specs.Array((), np.bool_),
    }
    network = snt.Sequential(
      [networks.ObservationTorso(spec, [8]), snt.Linear(2)]
    )
    networks.create_variables(network, spec)
    # Weights and biases of two layers.
    assert sorted(tuple(v.shape) for v in network.variables) == sorted(
      [(5, 8), (8,), (8, 2), (2,)]
    )
