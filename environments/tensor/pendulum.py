"""Pendulum-v1 of Gymnasium, in TensorFlow."""

import math
from typing import NamedTuple

import numpy as np
import tensorflow as tf
from dm_env import specs

from repertory.components.runtime import random_streams
from repertory.environments.rendering import drawing
from repertory.environments.tensor import environment, trigonometry

# In meters, kilograms, seconds and newton-meters.
_GRAVITY = 10.0
_MASS = 1.0
_LENGTH = 1.0
_STEP_SECONDS = 0.05
_MAX_SPEED = 8.0
_MAX_TORQUE = 2.0
_MAX_STEPS = 200
_BLACK, _RED = (0, 0, 0), (204, 77, 77)


class PendulumCore(NamedTuple):
  """State of a pendulum."""

  angle: tf.Tensor  # θ, in radians from upright, in [-π, π], float32 `[B]`.
  speed: tf.Tensor  # dθ/dt, float32 `[B]`.
  num_steps: tf.Tensor  # Steps of this episode, int32 `[B]`.


class Pendulum(environment.TensorEnvironment):
  """Swing a pendulum up and keep it upright.

  Dynamics, limits, rewards and observations are those of Gymnasium's
  Pendulum-v1, in single precision throughout: the reward is -(θ² + 0.1 (dθ/dt)²
  + 0.001 u²), of the angle and speed before the step; truncation after 200
  steps, and no termination.

  Observation: float32 `[3]`: cos θ, sin θ, dθ/dt.
  Actions: the torque u, float32 `[1]`, clipped to [-2, 2].
  """

  render_fps = 1 / _STEP_SECONDS

  def observation_spec(self) -> specs.BoundedArray:
    high = np.array([1, 1, _MAX_SPEED], np.float32)
    return specs.BoundedArray((3,), np.float32, -high, high, name='pendulum')

  def action_spec(self) -> specs.BoundedArray:
    high = np.array([_MAX_TORQUE], np.float32)
    return specs.BoundedArray((1,), np.float32, -high, high, name='torque')

  def start(
    self, counters: tf.Tensor, before: PendulumCore | None
  ) -> tuple[PendulumCore, tf.Tensor]:
    del before
    angle, speed, counters = random_streams.next_uniforms(counters)  # [B]
    core = PendulumCore(
      (2 * angle - 1) * math.pi,
      2 * speed - 1,
      tf.zeros(counters.shape, tf.int32),
    )
    return core, counters

  def advance(
    self, core: PendulumCore, action: tf.Tensor, counters: tf.Tensor
  ) -> environment.Advance:
    angle, speed, num_steps = core
    torque = tf.clip_by_value(action[:, 0], -_MAX_TORQUE, _MAX_TORQUE)  # [B]
    cost = tf.square(angle) + 0.1 * tf.square(speed) + 0.001 * tf.square(torque)
    sine, _ = trigonometry.sine_and_cosine(angle)
    acceleration = (
      3 * _GRAVITY / (2 * _LENGTH) * sine + 3 / (_MASS * _LENGTH**2) * torque
    )
    speed = tf.clip_by_value(
      speed + _STEP_SECONDS * acceleration, -_MAX_SPEED, _MAX_SPEED
    )
    # The angle uses the speed after the step. It changes by 0.4 at most, so it
    # passes the bottom once at most.
    angle += _STEP_SECONDS * speed
    angle -= 2 * math.pi * tf.cast(angle > math.pi, tf.float32)
    angle += 2 * math.pi * tf.cast(angle < -math.pi, tf.float32)
    num_steps += 1
    truncated = tf.equal(num_steps, _MAX_STEPS)
    return environment.Advance(
      PendulumCore(angle, speed, num_steps),
      -cost,
      terminated=tf.zeros_like(truncated),
      truncated=truncated,
      counters=counters,
    )

  def observe(self, core: PendulumCore) -> tf.Tensor:
    sine, cosine = trigonometry.sine_and_cosine(core.angle)
    return tf.stack([cosine, sine, core.speed], axis=-1)

  def render(self, core: PendulumCore) -> np.ndarray:
    """Renders the rod, uint8 `[200, 200, 3]`; 80 pixels per meter."""
    angle = float(core.angle[0])
    # The angle grows counterclockwise, so leaning to the left is positive.
    tip = (-_LENGTH * math.sin(angle), _LENGTH * math.cos(angle))
    canvas = drawing.Canvas(200, 200, scale=80)
    canvas.draw_line((0, 0), tip, 0.2, _RED)
    canvas.draw_line((0, 0), (0, 0), 0.1, _BLACK)
    return canvas.image
