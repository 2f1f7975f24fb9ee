"""Parts of updates that keep state: schedules, noise, targets and scales.

Their state is variables of the update, so a resumed run continues it.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

import tensorflow as tf

from repertory.components import interfaces, losses
from repertory.components.networks import normalization


class LinearAnnealing(tf.Module):
  """Anneals from 1 to 0 over `num_calls` calls, and stays at 0."""

  def __init__(self, num_calls: int | None):
    """Anneals over `num_calls` calls; None for a constant 1."""
    super().__init__()
    self._num_calls = num_calls
    self._done = tf.Variable(
      0, dtype=tf.int32, trainable=False, name='annealing_calls'
    )

  def __call__(self) -> tf.Tensor:
    """Returns the current value, a float32 in [0, 1], and counts this call."""
    if self._num_calls is None:
      return tf.constant(1.0)
    done = tf.cast(self._done.assign_add(1) - 1, tf.float32)
    return tf.maximum(1 - done / self._num_calls, 0)


class CosineAnnealing(LinearAnnealing):
  """Anneals along a cosine: ½ (1 + cos(π t / N)) after t of N calls.

  It falls slowly at both ends. See https://arxiv.org/abs/1608.03983, equation
  5, without restarts.
  """

  def __call__(self) -> tf.Tensor:
    return 0.5 * (1 - tf.cos(math.pi * super().__call__()))


def _check_period(period: int) -> None:
  if period < 1:
    raise ValueError(f'period must be at least 1, got {period}.')


class DelayedUpdate(tf.Module):
  """Runs part of an update in every `period`-th call.

  TD3 delays the policy in this way: https://arxiv.org/abs/1802.09477, section
  5.2. All variables that it changes must exist before, as `ClippedAdam`'s do.
  """

  def __init__(
    self,
    update: Callable[..., Mapping[str, tf.Tensor]],
    metrics: Sequence[str],
    period: int,
  ):
    """Starts with no calls counted.

    Args:
      update: Changes variables, and returns scalars by name.
      metrics: Names of these scalars.
      period: Number of calls, in learner steps, per update; at least 1. The
        first update is made in call `period`.
    """
    super().__init__()
    _check_period(period)
    self._update = update
    self._period = period
    self._num_calls = tf.Variable(0, dtype=tf.int64, trainable=False)
    self._latest = {
      name: tf.Variable(0.0, trainable=False, name=name) for name in metrics
    }

  def __call__(self, *inputs) -> dict[str, tf.Tensor]:
    """Counts the call, and makes the update at the end of a period.

    Returns:
      The metrics of its last run, scalars by name; 0 before the first.
    """
    num_calls = self._num_calls.assign_add(1)

    def make():
      metrics = self._update(*inputs)
      for name, variable in self._latest.items():
        variable.assign(tf.cast(metrics[name], tf.float32))

    tf.cond(num_calls % self._period == 0, make, lambda: None)
    return {name: one.read_value() for name, one in self._latest.items()}


class UpdateNoise(tf.Module):
  """Draws random numbers that depend only on a seed and a count, its variables.

  The seed is drawn by TensorFlow's generator, see `tf.random.set_seed`.
  """

  def __init__(self):
    super().__init__()
    self._seed = tf.Variable(
      tf.random.uniform([], maxval=tf.int32.max, dtype=tf.int32),
      trainable=False,
      name='seed',
    )
    self._num_calls = tf.Variable(
      0, dtype=tf.int32, trainable=False, name='num_calls'
    )

  def seed(self) -> tf.Tensor:
    """Returns a new seed, int32 `[2]`: a constant and the previous draws."""
    return tf.stack([self._seed, self._num_calls.assign_add(1) - 1])

  def normals(self, shape: Sequence[int | tf.Tensor]) -> tf.Tensor:
    """Returns new standard normal numbers, float32."""
    return tf.random.stateless_normal(shape, self.seed())

  def uniforms(self, shape: Sequence[int | tf.Tensor]) -> tf.Tensor:
    """Returns new uniform numbers in [0, 1), float32."""
    return tf.random.stateless_uniform(shape, self.seed())


# Lower bound of the variable: softplus(-18) is 1.5e-8. Without a bound it could
# fall far, and would take as long to recover.
_MIN_RAW = -18.0


class DualVariable(tf.Module):
  """A Lagrange multiplier, softplus(x) + 10⁻⁸ > 0, where x is learned.

  The offset is Acme's, https://arxiv.org/abs/2006.00979.
  """

  def __init__(self, initial_value: float, shape: Sequence[int], name: str):
    """Creates multipliers of a shape, `[]` for one, with a value above 0."""
    super().__init__()
    # The inverse of softplus, log(exp(y) − 1), which cannot overflow.
    raw = initial_value + math.log(-math.expm1(-initial_value))
    self._raw = tf.Variable(tf.fill(shape, max(raw, _MIN_RAW)), name=name)

  def __call__(self) -> tf.Tensor:
    """Returns the multipliers."""
    return tf.nn.softplus(self._raw) + 1e-8  # Keeps quotients by it finite.

  def limit(self) -> None:
    """Clips the variable from below, after a step of an optimizer."""
    self._raw.assign(tf.maximum(self._raw, _MIN_RAW))


class RunningScale(tf.Module):
  """Standard deviation of all numbers so far, such as returns, to divide by."""

  def __init__(self):
    """Starts with a deviation of 1, which the first `update` replaces."""
    super().__init__()
    initial = {'count': 0.0, 'mean': 0.0, 'variance': 1.0}
    self._variables = [
      tf.Variable(value, trainable=False, dtype=tf.float64, name=name)
      for name, value in initial.items()
    ]

  def __call__(self) -> tf.Tensor:
    """Returns the standard deviation, a float32 above 0."""
    _, _, variance = self._variables
    # Avoids division by 0 for constant numbers.
    return tf.cast(tf.sqrt(variance + 1e-8), tf.float32)

  def of_returns(self, discount: float) -> tf.Tensor:
    """Returns √(E x² / (1 − γ²)), a float32 above 0, for γ < 1.

    It is the deviation of discounted sums of independent numbers of mean 0.
    """
    _, mean, variance = self._variables
    squares = (variance + mean**2 + 1e-8) / (1 - discount**2)
    return tf.cast(tf.sqrt(squares), tf.float32)

  def update(self, numbers: tf.Tensor, mask: tf.Tensor) -> None:
    """Adds numbers `[T, B]` to the statistics where the mask is true."""
    before = normalization.Moments(*self._variables)
    merged = normalization.merge(before, normalization.of_batch(numbers, mask))
    for variable, value in zip(self._variables, merged):
      variable.assign(value)

  def scale_rewards(
    self,
    rewards: tf.Tensor,
    discounts: tf.Tensor,
    values: tf.Tensor,
    mask: tf.Tensor,
  ) -> tf.Tensor:
    """Updates the statistics with the returns of unrolls, and scales rewards.

    Rewards, discounts with γ, and mask are `[T, B]`, values in the previous
    scale `[T + 1, B]`.
    """
    values = self() * values
    _, returns = losses.generalized_advantages(
      rewards=rewards,
      discounts=discounts,
      values=values[:-1],
      bootstrap_value=values[-1],
      mask=mask,
      lambda_=1.0,
    )
    self.update(returns, mask)
    return rewards / self()


def scale_rewards(
  scale: RunningScale | None,
  rewards: tf.Tensor,
  *of_unrolls: tf.Tensor,
) -> tuple[tf.Tensor, dict[str, tf.Tensor]]:
  """Returns rewards of unrolls, scaled unless the scale is None, and metrics.

  For `of_unrolls` see `RunningScale.scale_rewards`.
  """
  if scale is None:
    return rewards, {}
  rewards = scale.scale_rewards(rewards, *of_unrolls)
  return rewards, {'reward_scale': scale()}


class ScaledUpdate(interfaces.Update):
  """Base of updates that can divide rewards by the deviation of returns.

  Values are then learned in the scale of returns, which therefore belongs to
  what is learned.
  """

  def __init__(self, policy_network: tf.Module | None, scaled: bool):
    """Exports `policy_network`, unless None; `scaled` rewards have a scale."""
    super().__init__(policy_network)
    self._return_scale = RunningScale() if scaled else None

  @property
  def learned(self):
    scale = self._return_scale
    scales = {} if scale is None else {'return_scale': scale.variables}
    return {**super().learned, **scales}


_Variables: TypeAlias = Sequence[tf.Variable | tf.Module]


class _Target(tf.Module):
  """Target variables, made equal to online ones at construction."""

  def __init__(self, source: _Variables, target: _Variables):
    super().__init__()
    self._source, self._target = (
      [
        variable
        for one in holders
        for variable in (one.variables if isinstance(one, tf.Module) else [one])
      ]
      for holders in (source, target)
    )
    self._copy()

  def _copy(self) -> None:
    for source, target in zip(self._source, self._target, strict=True):
      target.assign(source)


class PeriodicCopy(_Target):
  """Copies online variables into target variables every `period` calls.

  See https://doi.org/10.1038/nature14236, algorithm 1.
  """

  def __init__(self, source: _Variables, target: _Variables, period: int):
    """Makes the first copy.

    Args:
      source: Online variables, or modules with all of theirs.
      target: Target variables, of the same shapes in the same order.
      period: Calls between copies, in learner steps.
    """
    super().__init__(source, target)
    _check_period(period)
    self._period = period
    self._num_calls = tf.Variable(0, dtype=tf.int64, trainable=False)

  def __call__(self) -> None:
    """Counts the call, and copies at the end of a period."""
    num_calls = self._num_calls.assign_add(1)
    if self._period == 1:
      self._copy()
    else:
      tf.cond(num_calls % self._period == 0, self._copy, lambda: None)


class SoftUpdate(_Target):
  """Polyak averaging, θ⁻ ← θ⁻ + τ (θ − θ⁻) in every call.

  See https://arxiv.org/abs/1509.02971, algorithm 1. Targets begin as copies.
  """

  def __init__(self, source: _Variables, target: _Variables, rate: float):
    """Makes the variables equal; for arguments see `PeriodicCopy`."""
    super().__init__(source, target)
    if not 0 < rate <= 1:
      raise ValueError(f'rate must be in (0, 1], got {rate}.')
    self._rate = rate

  def __call__(self) -> None:
    """Moves the target variables."""
    for source, target in zip(self._source, self._target, strict=True):
      target.assign_add(self._rate * (source - target))
