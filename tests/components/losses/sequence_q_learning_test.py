"""Tests of `components/losses/sequence_q_learning.py`."""

import numpy as np
import pytest
import tensorflow as tf

from repertory.components import losses
from repertory.components.losses import sequence_q_learning


def slow_returns(rewards, discounts, values, mask, n_step):
  """Σ_{i<k} (Π_{j<i} γ_{t+j}) r_{t+i} + (Π_{j<k} γ_{t+j}) V(x_{t+k}).

  k is the number of unpadded steps from t on, at most n.
  """
  length, batch = rewards.shape
  returns = np.zeros([length, batch])
  for t, b in np.ndindex(length, batch):
    k = 0
    while k < n_step and t + k < length and mask[t + k, b]:
      k += 1
    for i in range(k):
      product = 1.0
      for j in range(i):
        product *= discounts[t + j, b]
      returns[t, b] += product * rewards[t + i, b]
    product = 1.0
    for j in range(k):
      product *= discounts[t + j, b]
    returns[t, b] += product * values[t + k, b]
  return returns


def slow_rescale(x):
  """h, with ε = 0.01."""
  return np.sign(x) * (np.sqrt(np.abs(x) + 1) - 1) + 0.01 * x


def slow_undo_rescale(x):
  """h⁻¹, with ε = 0.01."""
  root = np.sqrt(1 + 4 * 0.01 * (np.abs(x) + 1 + 0.01))
  return np.sign(x) * (((root - 1) / (2 * 0.01)) ** 2 - 1)


def rescale(x):
  return losses.rescale(x, 0.01)


def inverse_rescale(x):
  return losses.inverse_rescale(x, 0.01)


TRANSFORMS = {'transform': rescale, 'inverse_transform': inverse_rescale}


def slow_errors(q, actions, rewards, discounts, target_q, mask, n_step):
  """h(G_t) − q(x_t, a_t), G of h⁻¹(q_target(x, argmax_a q(x, a)))."""
  length, batch = rewards.shape
  values = np.zeros([length + 1, batch])
  for t, b in np.ndindex(length + 1, batch):
    best = max(range(q.shape[2]), key=lambda a, t=t, b=b: q[t, b, a])
    values[t, b] = slow_undo_rescale(target_q[t, b, best])
  returns = slow_returns(rewards, discounts, values, mask, n_step)
  errors = np.zeros([length, batch])
  for t, b in np.ndindex(length, batch):
    if mask[t, b]:
      errors[t, b] = slow_rescale(returns[t, b]) - q[t, b, actions[t, b]]
  return errors


def random_steps(length, batch, seed=0):
  random = np.random.default_rng([seed, length, batch])
  size = [length, batch]
  return {
    'rewards': random.normal(size=size),
    'discounts': random.choice(
      [0.0, 0.6, 0.99, 1.0], size, p=[0.1, *[0.3] * 3]
    ),
    'mask': random.uniform(size=size) < 0.85,
  }


def random_values(length, batch, num_actions=3, seed=0):
  random = np.random.default_rng([seed, length, batch])
  return {
    'q': random.normal(0, 3, size=[length + 1, batch, num_actions]),
    'target_q': random.normal(0, 3, size=[length + 1, batch, num_actions]),
    'actions': random.integers(num_actions, size=[length, batch]),
  }


def tensors_of(arguments):
  return {
    name: tf.constant(value) if isinstance(value, np.ndarray) else value
    for name, value in arguments.items()
  }


def column(*entries):
  """A batch of one sequence."""
  return np.array(entries)[:, None]


class TestNStepReturns:
  # Rewards 1, 2, 4 and values 10, 20, 40, 80; γ = ½ by default.
  @pytest.mark.parametrize(
    ('n_step', 'changes', 'expected'),
    [
      pytest.param(
        1, {}, [1 + 0.5 * 20, 2 + 0.5 * 40, 4 + 0.5 * 80], id='one_step'
      ),
      # The last has one step only.
      pytest.param(
        2,
        {},
        [1 + 0.5 * 2 + 0.25 * 40, 2 + 0.5 * 4 + 0.25 * 80, 4 + 0.5 * 80],
        id='two_steps',
      ),
      pytest.param(
        9,
        {},
        [1 + 1 + 0.25 * 4 + 0.125 * 80, 2 + 0.5 * 4 + 0.25 * 80, 4 + 0.5 * 80],
        id='more_steps_than_there_are',
      ),
      pytest.param(
        3,
        {'discounts': column(0.5, 0.0, 0.5)},
        [1 + 0.5 * 2, 2, 4 + 0.5 * 80],
        id='terminal_in_the_middle',
      ),
      pytest.param(
        3,
        {'discounts': column(1.0, 0.5, 0.5), 'mask': column(True, False, True)},
        [1 + 20, 20, 4 + 0.5 * 80],
        id='truncation_in_the_middle',
      ),
      pytest.param(
        2,
        {'mask': column(True, True, False)},
        [1 + 0.5 * 2 + 0.25 * 40, 2 + 0.5 * 40, 40],
        id='padding_at_the_end',
      ),
      pytest.param(
        2,
        {'discounts': column(0.5, 0.25, 1.0)},
        [1 + 0.5 * 2 + 0.125 * 40, 2 + 0.25 * 4 + 0.25 * 80, 4 + 80],
        id='each_step_has_its_discount',
      ),
    ],
  )
  def test_by_hand(self, n_step, changes, expected):
    arguments = {
      'rewards': column(1.0, 2.0, 4.0),
      'discounts': column(0.5, 0.5, 0.5),
      'values': column(10.0, 20.0, 40.0, 80.0),
      'mask': column(True, True, True),
      **changes,
    }
    returns = sequence_q_learning.n_step_returns(
      **tensors_of(arguments), n_step=n_step
    )
    np.testing.assert_allclose(returns[:, 0], expected)

  @pytest.mark.parametrize('length', [1, 2, 5, 20, 33])
  @pytest.mark.parametrize('batch', [1, 4])
  @pytest.mark.parametrize('n_step', [1, 2, 3, 5, 40])
  def test_equals_the_equation(self, length, batch, n_step):
    for seed in range(3):
      arguments = random_steps(length, batch, seed)
      random = np.random.default_rng(seed)
      arguments['values'] = random.normal(size=[length + 1, batch])
      returns = sequence_q_learning.n_step_returns(
        **tensors_of(arguments), n_step=n_step
      )
      np.testing.assert_allclose(
        returns, slow_returns(**arguments, n_step=n_step), atol=1e-10
      )

  def test_padding_has_no_effect(self):
    arguments = random_steps(10, 2)
    arguments['values'] = np.random.default_rng(0).normal(size=[11, 2])
    arguments['mask'] = np.arange(10)[:, None] < [6, 10]
    padded = {name: value.copy() for name, value in arguments.items()}
    for name in ['rewards', 'discounts']:
      padded[name][6:, 0] = np.nan
    padded['values'][7:, 0] = np.nan
    before, after = (
      sequence_q_learning.n_step_returns(**tensors_of(x), n_step=3).numpy()
      for x in (arguments, padded)
    )
    counted = arguments['mask']
    np.testing.assert_array_equal(before[counted], after[counted])
    assert np.all(np.isfinite(after[counted]))

  @pytest.mark.parametrize('n_step', [0, -1])
  def test_n_step_must_be_positive(self, n_step):
    arguments = {**random_steps(2, 1), 'values': np.zeros([3, 1])}
    with pytest.raises(ValueError, match=r'^n_step must be at least 1, got'):
      sequence_q_learning.n_step_returns(**tensors_of(arguments), n_step=n_step)

  @pytest.mark.parametrize(
    ('name', 'size'),
    [
      ('discounts', (5, 1)),
      ('mask', (4, 2)),
      ('rewards', (5, 2, 1)),
      ('values', ()),
      ('values', (6,)),
      # No entry for the state behind the last step, one too many, one sequence.
      ('values', (5, 2)),
      ('values', (7, 2)),
      ('values', (6, 1)),
    ],
  )
  def test_wrong_shape_is_named(self, name, size):
    arguments = {**random_steps(5, 2), 'values': np.zeros([6, 2])}
    arguments[name] = np.zeros(size, arguments[name].dtype)
    for made in (tensors_of(arguments), arguments):
      with pytest.raises(ValueError, match=f'{name} .*shape'):
        sequence_q_learning.n_step_returns(**made, n_step=2)

  def test_compiled_equals_eager(self):
    tensors = tensors_of({**random_steps(20, 3), 'values': np.ones([21, 3])})
    compiled = tf.function(
      sequence_q_learning.n_step_returns, jit_compile=True, autograph=False
    )
    np.testing.assert_allclose(
      compiled(**tensors, n_step=5),
      sequence_q_learning.n_step_returns(**tensors, n_step=5),
      rtol=1e-12,
    )


class TestSequenceDoubleQErrors:
  def one_step(self, **changes):
    # The online network picks action 1, which the target network rates 6; it
    # rates action 0 highest, and the online value of action 1 is 5.
    arguments = {
      'q': np.array([[[2.0, 3.0]], [[4.0, 5.0]]]),
      'target_q': np.array([[[1.0, 1.0]], [[9.0, 6.0]]]),
      'actions': column(0),
      'rewards': column(7.0),
      'discounts': column(0.5),
      'mask': column(True),
      'n_step': 1,
    }
    tensors = tensors_of({**arguments, **changes})
    return losses.sequence_double_q_errors(**tensors).numpy()

  @pytest.mark.parametrize(
    ('changes', 'expected'),
    [
      pytest.param({}, 7 + 0.5 * 6 - 2, id='double'),
      pytest.param({'actions': column(1)}, 7 + 0.5 * 6 - 3, id='other_action'),
      pytest.param({'discounts': column(0.0)}, 7 - 2, id='termination'),
      pytest.param({'mask': column(False)}, 0, id='no_step'),
      # √(7 + ½·6²) = √25: the root is of the whole return, the square of the
      # bootstrap value alone, and neither is of q(x_t, a_t).
      pytest.param(
        {'transform': tf.sqrt, 'inverse_transform': tf.square},
        5 - 2,
        id='transforms',
      ),
    ],
  )
  def test_by_hand(self, changes, expected):
    np.testing.assert_allclose(self.one_step(**changes), [[expected]])

  @pytest.mark.parametrize('length', [1, 2, 5, 20, 33])
  @pytest.mark.parametrize('batch', [1, 4])
  @pytest.mark.parametrize('n_step', [1, 2, 5, 40])
  def test_equals_the_equation(self, length, batch, n_step):
    arguments = {**random_steps(length, batch), **random_values(length, batch)}
    errors = losses.sequence_double_q_errors(
      **tensors_of(arguments), n_step=n_step, **TRANSFORMS
    )
    np.testing.assert_allclose(
      errors, slow_errors(**arguments, n_step=n_step), atol=1e-9
    )

  @pytest.mark.parametrize(
    'dtype',
    [tf.uint8, tf.int8, tf.uint16, tf.int16, tf.int32, tf.uint32, tf.int64],
  )
  def test_takes_any_integer_action(self, dtype):
    arguments = {**random_steps(5, 2), **random_values(5, 2)}
    tensors = tensors_of(arguments)
    expected = losses.sequence_double_q_errors(**tensors, n_step=2)
    tensors['actions'] = tf.constant(arguments['actions'], dtype)
    errors = losses.sequence_double_q_errors(**tensors, n_step=2)
    np.testing.assert_array_equal(errors, expected)

  def errors_and_gradients(self, **arguments):
    inputs = ['q', 'target_q', 'rewards', 'discounts']
    variables = {name: tf.Variable(arguments.pop(name)) for name in inputs}
    with tf.GradientTape() as tape:
      errors = losses.sequence_double_q_errors(
        **variables, **tensors_of(arguments), n_step=3, **TRANSFORMS
      )
    gradient, *others = tape.gradient(errors, list(variables.values()))
    assert others == [None] * 3
    return errors.numpy(), tf.convert_to_tensor(gradient).numpy()

  def test_gradient_flows_into_the_acting_values_alone(self):
    arguments = {**random_steps(5, 2), **random_values(5, 2)}
    arguments['mask'][1, 0] = arguments['mask'][4, 1] = False
    _, gradient = self.errors_and_gradients(**arguments)
    expected = np.zeros([6, 2, 3])
    for t, b in np.ndindex(5, 2):
      if arguments['mask'][t, b]:
        expected[t, b, arguments['actions'][t, b]] = -1
    np.testing.assert_array_equal(gradient, expected)

  def test_padding_has_no_effect(self):
    arguments = {**random_steps(10, 2), **random_values(10, 2)}
    arguments['mask'] = np.arange(10)[:, None] < [6, 10]
    padded = {name: value.copy() for name, value in arguments.items()}
    padded['rewards'][6:, 0] = padded['discounts'][6:, 0] = 1e30
    padded['q'][7:, 0] = padded['target_q'][7:, 0] = np.nan
    errors, gradient = self.errors_and_gradients(**arguments)
    padded_errors, padded_gradient = self.errors_and_gradients(**padded)
    assert np.all(np.isfinite(padded_errors))
    np.testing.assert_array_equal(padded_errors, errors)
    np.testing.assert_array_equal(padded_gradient, gradient)
    assert np.all(padded_gradient[6:, 0] == 0)

  @pytest.mark.parametrize(
    ('name', 'size'),
    [
      ('q', (6, 2)),
      ('target_q', (6, 2, 4)),
      ('target_q', (5, 2, 3)),
      ('actions', (5, 1)),
      ('mask', (4, 2)),
      ('discounts', (5, 1)),
    ],
  )
  def test_wrong_shape_is_named(self, name, size):
    arguments = {**random_steps(5, 2), **random_values(5, 2)}
    arguments[name] = np.zeros(size, arguments[name].dtype)
    for made in (tensors_of(arguments), arguments):
      with pytest.raises(ValueError, match=f'{name} .*shape'):
        losses.sequence_double_q_errors(**made, n_step=2)

  def test_takes_arrays(self):
    arguments = {**random_steps(5, 2), **random_values(5, 2)}
    np.testing.assert_allclose(
      losses.sequence_double_q_errors(**arguments, n_step=2),
      losses.sequence_double_q_errors(**tensors_of(arguments), n_step=2),
      rtol=1e-12,
    )

  @pytest.mark.parametrize('length', [5, 7])
  def test_values_of_one_state_more_than_steps_are_needed(self, length):
    values = {name: np.zeros([length, 2, 3]) for name in ('q', 'target_q')}
    arguments = {**random_steps(5, 2), **random_values(5, 2), **values}
    with pytest.raises(ValueError, match='must have shape'):
      losses.sequence_double_q_errors(**tensors_of(arguments), n_step=2)

  def test_compiled_equals_eager(self):
    tensors = tensors_of({**random_steps(20, 3), **random_values(20, 3)})
    options = {'n_step': 5, **TRANSFORMS}
    compiled = tf.function(
      losses.sequence_double_q_errors, jit_compile=True, autograph=False
    )
    np.testing.assert_allclose(
      compiled(**tensors, **options),
      losses.sequence_double_q_errors(**tensors, **options),
      rtol=1e-10,
      atol=1e-12,
    )


class TestSequencePriorities:
  # Errors of 1, −5 and 3, which do not happen to be sorted.
  @pytest.mark.parametrize(
    ('max_share', 'mask', 'expected'),
    [
      pytest.param(
        0.9, [True] * 3, 0.9 * 5 + 0.1 * (1 + 5 + 3) / 3, id='mixture'
      ),
      pytest.param(0.0, [True] * 3, (1 + 5 + 3) / 3, id='mean'),
      pytest.param(1.0, [True] * 3, 5, id='max'),
      pytest.param(
        0.9, [True, False, True], 0.9 * 3 + 0.1 * (1 + 3) / 2, id='padding'
      ),
      pytest.param(0.9, [False] * 3, 0, id='no_step'),
    ],
  )
  def test_by_hand(self, max_share, mask, expected):
    priorities = losses.sequence_priorities(
      tf.constant(column(1.0, -5.0, 3.0)), tf.constant(column(*mask)), max_share
    )
    np.testing.assert_allclose(priorities, [expected])

  @pytest.mark.parametrize('length', [1, 2, 5, 20, 33])
  @pytest.mark.parametrize('batch', [1, 4])
  @pytest.mark.parametrize('max_share', [0.0, 0.3, 0.9])
  def test_equals_the_equation(self, length, batch, max_share):
    random = np.random.default_rng([length, batch])
    errors = random.normal(size=[length, batch])
    mask = random.uniform(size=[length, batch]) < 0.7
    errors[~mask] = np.nan
    expected = []
    for b in range(batch):
      sizes = [abs(errors[t, b]) for t in range(length) if mask[t, b]] or [0.0]
      mean = sum(sizes) / len(sizes)
      expected.append(max_share * max(sizes) + (1 - max_share) * mean)
    priorities = losses.sequence_priorities(
      tf.constant(errors), tf.constant(mask), max_share
    )
    np.testing.assert_allclose(priorities, expected, rtol=1e-12)

  @pytest.mark.parametrize('max_share', [-0.1, 1.1, float('nan')])
  def test_share_must_be_in_bounds(self, max_share):
    with pytest.raises(ValueError, match=r'^max_share must be in \[0, 1\]'):
      losses.sequence_priorities(
        tf.ones([2, 1]), tf.ones([2, 1], tf.bool), max_share
      )

  def test_wrong_shape_is_named(self):
    with pytest.raises(ValueError, match=r'^mask must have shape'):
      losses.sequence_priorities(tf.ones([2, 3]), tf.ones([2, 1], tf.bool), 0.9)
    with pytest.raises(ValueError, match=r'^errors must have shape'):
      losses.sequence_priorities(tf.ones([2]), tf.ones([2], tf.bool), 0.9)

  def test_compiled_equals_eager(self):
    random = np.random.default_rng(0)
    errors = tf.constant(random.normal(size=[20, 3]))
    mask = tf.constant(random.uniform(size=[20, 3]) < 0.7)
    compiled = tf.function(
      losses.sequence_priorities, jit_compile=True, autograph=False
    )
    np.testing.assert_allclose(
      compiled(errors, mask, 0.9),
      losses.sequence_priorities(errors, mask, 0.9),
      rtol=1e-12,
    )
