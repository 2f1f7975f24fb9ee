"""Tests of `components/losses/vtrace.py`."""

import numpy as np
import pytest
import tensorflow as tf

from repertory.components import losses

NO_CLIPS = {'max_rho': 1e9, 'max_pg_rho': 1e9, 'max_c': 1e9}


def slow_vtrace(
  target_log_probs,
  behavior_log_probs,
  rewards,
  discounts,
  values,
  bootstrap_value,
  mask,
  max_rho=1.0,
  max_pg_rho=1.0,
  max_c=1.0,
  lambda_=1.0,
):
  """Equation 1, close to the notation; sums end with the mask."""
  length, batch = rewards.shape
  v = np.concatenate([values, bootstrap_value[None]])  # V(x_0) … V(x_T)
  ratios = np.zeros([length, batch])
  targets = v.copy()  # v_T = V(x_T)
  advantages = np.zeros([length, batch])
  for s, b in np.ndindex(length, batch):
    if mask[s, b]:
      ratios[s, b] = np.exp(target_log_probs[s, b] - behavior_log_probs[s, b])
  for s, b in np.ndindex(length, batch):
    for t in range(s, length):
      if not mask[t, b]:
        break
      rho = min(max_rho, ratios[t, b])
      delta = rewards[t, b] + discounts[t, b] * v[t + 1, b] - v[t, b]
      product = 1.0
      for i in range(s, t):
        product *= discounts[i, b] * lambda_ * min(max_c, ratios[i, b])
      targets[s, b] += product * rho * delta
  for s, b in np.ndindex(length, batch):
    if mask[s, b]:
      q = rewards[s, b] + discounts[s, b] * targets[s + 1, b]
      advantages[s, b] = min(max_pg_rho, ratios[s, b]) * (q - v[s, b])
  return losses.VTrace(targets[:-1], advantages, ratios)


def bellman_targets(rewards, discounts, values):
  """Σ_{s≤t<T} (Π_{s≤i<t} γ_i) r_t + (Π_{s≤i<T} γ_i) V(x_T), one sequence."""
  length = len(rewards)
  targets = []
  for s in range(length):
    total = np.prod(discounts[s:]) * values[length]
    for t in range(s, length):
      total += np.prod(discounts[s:t]) * rewards[t]
    targets.append(total)
  return np.array(targets)


def random_arguments(length, batch, seed=0, masked=0.25):
  """Returns a batch with some terminal and some masked steps."""
  random = np.random.default_rng([seed, length, batch])
  size = [length, batch]
  return {
    'target_log_probs': random.normal(-1, 0.7, size=size),
    'behavior_log_probs': random.normal(-1, 0.7, size=size),
    'rewards': random.normal(size=size),
    'discounts': random.choice(
      [0.0, 0.6, 0.99, 1.0], size, p=[0.1, *[0.3] * 3]
    ),
    'values': random.normal(size=size),
    'bootstrap_value': random.normal(size=batch),
    'mask': random.uniform(size=size) >= masked,
  }


def tensors_of(arguments):
  return {
    name: tf.constant(value) if isinstance(value, np.ndarray) else value
    for name, value in arguments.items()
  }


def vtrace_of(**arguments):
  outputs = losses.vtrace(**tensors_of(arguments))
  return losses.VTrace(*(output.numpy() for output in outputs))


def one_sequence(**changes):
  """Three steps with π/μ = 2, ½ and 1, and γ = ½."""
  arguments = {
    'target_log_probs': np.log([[0.5], [0.25], [0.5]]),
    'behavior_log_probs': np.log([[0.25], [0.5], [0.5]]),
    'rewards': np.array([[1.0], [2.0], [2.0]]),
    'discounts': np.array([[0.5], [0.5], [0.5]]),
    'values': np.array([[1.0], [2.0], [4.0]]),
    'bootstrap_value': np.array([8.0]),
    'mask': np.array([[True], [True], [True]]),
  }
  return {**arguments, **changes}


def assert_equal_outputs(actual, expected, **tolerances):
  for name in losses.VTrace._fields:
    np.testing.assert_allclose(
      getattr(actual, name),
      getattr(expected, name),
      err_msg=name,
      **tolerances,
    )


class TestVTraceByHand:
  # Errors not yet weighted: 1 + ½·2 − 1 = 1, 2 + ½·4 − 2 = 2, 2 + ½·8 − 4 = 2.
  @pytest.mark.parametrize(
    ('changes', 'targets', 'advantages', 'ratios'),
    [
      pytest.param(
        {'max_rho': 1.5, 'max_pg_rho': 1.25, 'max_c': 1.0},
        # ρ = 1.5, ½, 1, thus δ = 1.5, 1, 2; γc = ½·1, ½·½.
        [1 + 1.5 + 0.5 * 1 + 0.5 * 0.25 * 2, 2 + 1 + 0.25 * 2, 4 + 2],
        # v_1 = 3.5 and v_2 = 6; behind the last step V(x_3) = 8.
        [
          1.25 * (1 + 0.5 * 3.5 - 1),
          0.5 * (2 + 0.5 * 6 - 2),
          1 * (2 + 0.5 * 8 - 4),
        ],
        (2, 0.5, 1),
        id='all_clips_differ',
      ),
      pytest.param(
        {},
        # δ = 1, 1, 2.
        [1 + 1 + 0.5 * 1 + 0.5 * 0.25 * 2, 3.5, 6],
        [1 + 0.5 * 3.5 - 1, 0.5 * (2 + 0.5 * 6 - 2), 2],
        (2, 0.5, 1),
        id='all_clips_are_1_unless_told',
      ),
      pytest.param(
        {'lambda_': 0.5},
        # γc = ½·½·1, ½·½·½.
        [1 + 1 + 0.25 * 1 + 0.25 * 0.125 * 2, 2 + 1 + 0.125 * 2, 6],
        [1 + 0.5 * 3.25 - 1, 0.5 * (2 + 0.5 * 6 - 2), 2],
        (2, 0.5, 1),
        id='lambda_shortens_traces',
      ),
      pytest.param(
        {'discounts': np.array([[0.5], [0.0], [0.5]])},
        # Its error is 2 + 0 − 2 = 0, and nothing of the third is propagated.
        [1 + 1 + 0.5 * 0, 2, 6],
        [1 + 0.5 * 2 - 1, 0, 2],
        (2, 0.5, 1),
        id='the_second_step_terminates',
      ),
      pytest.param(
        {'mask': np.array([[True], [False], [True]])},
        # The first bootstraps from V(x_1) = 2.
        [1 + 1, 2, 6],
        [1 + 0.5 * 2 - 1, 0, 2],
        [2, 0, 1],
        id='the_second_step_never_happened',
      ),
      pytest.param(
        {'mask': np.array([[True], [True], [False]])},
        # The second bootstraps from V(x_2) = 4, not from x_3.
        [1 + 1 + 0.5 * 1, 2 + 1, 4],
        [1 + 0.5 * 3 - 1, 0.5 * (2 + 0.5 * 4 - 2), 0],
        [2, 0.5, 0],
        id='the_sequence_is_shorter',
      ),
    ],
  )
  def test_outputs(self, changes, targets, advantages, ratios):
    outputs = vtrace_of(**one_sequence(**changes))
    np.testing.assert_allclose(outputs.targets[:, 0], targets)
    np.testing.assert_allclose(outputs.advantages[:, 0], advantages, atol=1e-12)
    np.testing.assert_allclose(outputs.ratios[:, 0], ratios)


class TestVTrace:
  @pytest.mark.parametrize('length', [1, 2, 5, 20, 33])
  @pytest.mark.parametrize('batch', [1, 4])
  @pytest.mark.parametrize(
    'options',
    [
      {},
      {'max_rho': 2.0, 'max_pg_rho': 0.7, 'max_c': 1.3, 'lambda_': 0.9},
      {'max_rho': 1.5, 'max_pg_rho': 3.0, 'max_c': 0.5},
      {**NO_CLIPS, 'lambda_': 0.5},
      {'lambda_': 0.0},
    ],
  )
  def test_equals_the_equation(self, length, batch, options):
    for seed in range(3):
      arguments = {**random_arguments(length, batch, seed), **options}
      assert_equal_outputs(
        vtrace_of(**arguments),
        slow_vtrace(**arguments),
        rtol=1e-9,
        atol=1e-10,
      )

  @pytest.mark.parametrize('length', [1, 2, 5, 20, 33])
  def test_on_policy_gives_bellman_targets(self, length):
    arguments = random_arguments(length, 3, masked=0)
    arguments['target_log_probs'] = arguments['behavior_log_probs']
    outputs = vtrace_of(**arguments)
    values = np.concatenate(
      [arguments['values'], arguments['bootstrap_value'][None]]
    )
    for b in range(3):
      targets = bellman_targets(
        arguments['rewards'][:, b], arguments['discounts'][:, b], values[:, b]
      )
      np.testing.assert_allclose(outputs.targets[:, b], targets, atol=1e-10)
      # On policy an advantage is the target less the value.
      np.testing.assert_allclose(
        outputs.advantages[:, b], targets - values[:-1, b], atol=1e-10
      )

  @pytest.mark.parametrize('log_prob', [-np.inf, -1e4])
  def test_actions_never_taken_teach_nothing(self, log_prob):
    arguments = random_arguments(20, 3)
    arguments['target_log_probs'] = np.full([20, 3], log_prob)
    outputs = vtrace_of(**arguments, **NO_CLIPS)
    np.testing.assert_array_equal(outputs.targets, arguments['values'])
    np.testing.assert_array_equal(outputs.advantages, np.zeros([20, 3]))
    np.testing.assert_array_equal(outputs.ratios, np.zeros([20, 3]))

  def test_a_huge_ratio_is_clipped(self):
    arguments = random_arguments(5, 2, masked=0)
    arguments['behavior_log_probs'] = arguments['target_log_probs'] - 1e4
    outputs = vtrace_of(**arguments)
    np.testing.assert_allclose(outputs.ratios, np.exp(20))
    arguments['behavior_log_probs'] = arguments['target_log_probs']
    expected = slow_vtrace(**arguments)
    np.testing.assert_allclose(outputs.targets, expected.targets)
    np.testing.assert_allclose(
      outputs.advantages, expected.advantages, atol=1e-12
    )

  def test_nothing_crosses_a_terminal_step(self):
    arguments = random_arguments(20, 2, masked=0)
    arguments['discounts'][:] = 0.9
    arguments['discounts'][7] = 0
    changed = {name: value.copy() for name, value in arguments.items()}
    for name in ['rewards', 'values']:
      changed[name][8:] += 10
    changed['bootstrap_value'] += 10
    before, after = vtrace_of(**arguments), vtrace_of(**changed)
    for name in losses.VTrace._fields:
      np.testing.assert_array_equal(
        getattr(before, name)[:8], getattr(after, name)[:8]
      )
    assert np.all(before.targets[8:] != after.targets[8:])

  @pytest.mark.parametrize(
    'last_discount',
    [pytest.param(1.0, id='truncated'), pytest.param(0.0, id='terminated')],
  )
  def test_two_episodes_are_as_each_by_itself(self, last_discount):
    # Steps 0 to 6, the way from x_7 to the next episode, steps 8 to 19.
    arguments = random_arguments(20, 2, masked=0)
    arguments['discounts'][:] = 0.95
    arguments['discounts'][6:8] = [[last_discount], [1.0]]
    arguments['mask'][7] = False
    first = {name: value[:7] for name, value in arguments.items()}
    first['bootstrap_value'] = arguments['values'][7]
    second = {name: value[8:] for name, value in arguments.items()}
    second['bootstrap_value'] = arguments['bootstrap_value']
    both = vtrace_of(**arguments)
    for part, steps in [(first, slice(0, 7)), (second, slice(8, 20))]:
      assert_equal_outputs(
        losses.VTrace(*(output[steps] for output in both)),
        vtrace_of(**part),
        rtol=1e-12,
        atol=1e-12,
      )
    np.testing.assert_array_equal(both.targets[7], arguments['values'][7])
    np.testing.assert_array_equal(both.advantages[7], [0, 0])

  @pytest.mark.parametrize(
    ('log_probs', 'reward', 'value', 'discount'),
    [
      pytest.param((1e4, 0.0), 1e30, -1e30, 1e30, id='infinite_ratios'),
      pytest.param((-np.inf, -np.inf), np.nan, np.nan, 1.0, id='no_numbers'),
      pytest.param((np.inf, -np.inf), -np.inf, np.inf, 0.0, id='infinities'),
    ],
  )
  def test_padding_has_no_effect(self, log_probs, reward, value, discount):
    arguments = random_arguments(20, 3, seed=1)
    # Two steps of padding in the middle, and at the end, of all but the first.
    arguments['mask'][5:7] = False
    arguments['mask'][15:, 1:] = False
    arguments['mask'][14:, 0] = True
    mask = arguments['mask']
    arguments['values'][~mask] = 0
    arguments = {
      name: value if name == 'mask' else value.astype(np.float32)
      for name, value in arguments.items()
    }
    padded = {name: value.copy() for name, value in arguments.items()}
    padded['target_log_probs'][~mask] = log_probs[0]
    padded['behavior_log_probs'][~mask] = log_probs[1]
    padded['rewards'][~mask] = reward
    padded['discounts'][~mask] = discount
    # The value of where a masked step begins counts if a step leads there.
    led_to = np.concatenate([np.zeros([1, 3], bool), mask[:-1]])
    padded['values'][~mask & ~led_to] = value
    padded['bootstrap_value'][1:] = value
    before, after = vtrace_of(**arguments), vtrace_of(**padded)
    for name in losses.VTrace._fields:
      np.testing.assert_array_equal(
        getattr(before, name)[mask], getattr(after, name)[mask], name
      )
      assert np.all(np.isfinite(getattr(after, name)[mask]))
    np.testing.assert_array_equal(after.targets[~mask], padded['values'][~mask])
    assert np.all(after.advantages[~mask] == 0)
    assert np.all(after.ratios[~mask] == 0)

  @pytest.mark.parametrize('discount', [np.nan, np.inf])
  def test_no_discount_outside_the_mask_counts(self, discount):
    # The decay is 0 · γ = NaN there: the mask does not reach the discounts.
    arguments = one_sequence(mask=np.array([[True], [True], [False]]))
    expected = vtrace_of(**arguments)
    arguments['discounts'][2] = discount
    assert_equal_outputs(vtrace_of(**arguments), expected)

  def test_no_gradient_flows(self):
    arguments = random_arguments(5, 2, seed=2)
    mask = tf.constant(arguments.pop('mask'))
    variables = {name: tf.Variable(x) for name, x in arguments.items()}
    for name in losses.VTrace._fields:
      with tf.GradientTape() as tape:
        outputs = losses.vtrace(**variables, mask=mask)
        loss = tf.reduce_sum(getattr(outputs, name))
      gradients = tape.gradient(loss, list(variables.values()))
      assert gradients == [None] * 6

  def test_compiled_equals_eager(self):
    tensors = tensors_of(random_arguments(33, 4))
    options = {'max_rho': 2.0, 'max_pg_rho': 0.7, 'max_c': 1.3, 'lambda_': 0.9}
    compiled = tf.function(losses.vtrace, jit_compile=True, autograph=False)
    assert_equal_outputs(
      compiled(**tensors, **options),
      losses.vtrace(**tensors, **options),
      rtol=1e-10,
      atol=1e-12,
    )


class TestVTraceErrors:
  @pytest.mark.parametrize(
    'name', ['behavior_log_probs', 'rewards', 'discounts', 'values', 'mask']
  )
  # Shorter, and two shapes that would broadcast.
  @pytest.mark.parametrize('size', [(4, 2), (5, 1), (2,)])
  def test_wrong_shape_is_named(self, name, size):
    arguments = random_arguments(5, 2)
    arguments[name] = np.zeros(size, arguments[name].dtype)
    with pytest.raises(ValueError, match=f'^{name} must have shape'):
      vtrace_of(**arguments)

  def test_wrong_rank_of_the_first_is_named(self):
    arguments = random_arguments(5, 2)
    arguments['target_log_probs'] = np.zeros([5, 2, 1])
    with pytest.raises(ValueError, match=r'^target_log_probs must have'):
      vtrace_of(**arguments)

  @pytest.mark.parametrize('size', [[3], [1], [1, 2], []])
  def test_wrong_shape_of_the_bootstrap_value_is_named(self, size):
    # It is not checked, so the concatenation fails with TensorFlow's error.
    arguments = random_arguments(5, 2)
    arguments['bootstrap_value'] = np.zeros(size)
    with pytest.raises(ValueError, match=r'^bootstrap_value must have'):
      vtrace_of(**arguments)

  @pytest.mark.parametrize(
    ('options', 'name'),
    [
      ({'max_rho': 0.9}, 'max_rho'),
      ({'max_c': 1.1}, 'max_rho .* max_c,'),
      ({'lambda_': -0.1}, 'lambda_'),
      ({'lambda_': 1.1}, 'lambda_'),
    ],
  )
  def test_wrong_bound_is_named(self, options, name):
    with pytest.raises(ValueError, match=f'^{name}'):
      vtrace_of(**one_sequence(), **options)
