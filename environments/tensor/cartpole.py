"""CartPole-v1 of Gymnasium, in TensorFlow.

Barto, Sutton and Anderson 1983, https://doi.org/10.1109/TSMC.1983.6313077, with
the equations of https://coneural.org/florian/papers/05_cart_pole.pdf.
"""

import math
from typing import NamedTuple

import numpy as np
import tensorflow as tf
from dm_env import specs

from repertory.components.runtime import random_streams
from repertory.environments.rendering import drawing
from repertory.environments.tensor import environment, trigonometry

# In meters, kilograms, seconds and newtons.
_GRAVITY = 9.8
_CART_MASS = 1.0
_POLE_MASS = 0.1
_TOTAL_MASS = _CART_MASS + _POLE_MASS
_HALF_LENGTH = 0.5
_FORCE_RATIO = 10.0 / _TOTAL_MASS
_MOMENT_RATIO = _POLE_MASS * _HALF_LENGTH / _TOTAL_MASS
_ROOT_OF_RATIO = math.sqrt(_MOMENT_RATIO)
_STEP_SECONDS = 0.02

_MAX_POSITION = 2.4
_MAX_ANGLE = math.radians(12)
_MAX_STEPS = 500
_BLACK, _BROWN = (0, 0, 0), (202, 152, 101)
# Positions, speeds and angles at the start are in [-0.05, 0.05).
_START_RANGE = 0.05


class CartPoleCore(NamedTuple):
  """State of a cart and its pole."""

  position: tf.Tensor  # x, in meters, float32 `[B]`.
  speed: tf.Tensor  # dx/dt.
  angle: tf.Tensor  # θ, in radians from upright, clockwise.
  angular_speed: tf.Tensor  # dθ/dt.
  num_steps: tf.Tensor  # Steps of this episode, int32 `[B]`.


class CartPole(environment.TensorEnvironment):
  """Push a cart to the left or right to balance its pole.

  Dynamics, limits, rewards and observations are those of Gymnasium's
  CartPole-v1, in single precision throughout: +1 for every step; termination
  when the pole leans by more than 12° or the cart leaves its track; truncation
  after 500 steps.

  Observation: float32 `[4]`: position, speed, angle, angular speed.
  Actions: 0 left, 1 right.
  """

  render_fps = 1 / _STEP_SECONDS

  def observation_spec(self) -> specs.BoundedArray:
    # Twice the limits, to include the last observation.
    high = np.array(
      [2 * _MAX_POSITION, np.inf, 2 * _MAX_ANGLE, np.inf], np.float32
    )
    return specs.BoundedArray((4,), np.float32, -high, high, name='cart_pole')

  def action_spec(self) -> specs.DiscreteArray:
    return specs.DiscreteArray(2, np.int32, name='push')

  def start(
    self, counters: tf.Tensor, before: CartPoleCore | None
  ) -> tuple[CartPoleCore, tf.Tensor]:
    del before
    position, speed, counters = random_streams.next_uniforms(counters)
    angle, angular_speed, counters = random_streams.next_uniforms(counters)
    drawn = [
      (2 * uniform - 1) * _START_RANGE
      for uniform in (position, speed, angle, angular_speed)
    ]
    return CartPoleCore(
      *drawn, num_steps=tf.zeros(counters.shape, tf.int32)
    ), counters

  def advance(
    self, core: CartPoleCore, action: tf.Tensor, counters: tf.Tensor
  ) -> environment.Advance:
    position, speed, angle = core.position, core.speed, core.angle
    angular_speed = core.angular_speed
    sine, cosine = trigonometry.sine_and_cosine_of_small(angle)  # [B]
    # This order gives the same sum in every graph: see `trigonometry`.
    scaled_cosine = _MOMENT_RATIO * cosine
    force = tf.where(tf.equal(action, 1), _FORCE_RATIO, -_FORCE_RATIO)
    push = force + tf.square(_ROOT_OF_RATIO * angular_speed) * sine
    angular_acceleration = (_GRAVITY * sine - cosine * push) / (
      _HALF_LENGTH * 4 / 3 - scaled_cosine * cosine
    )
    acceleration = push - scaled_cosine * angular_acceleration
    # Euler's method: positions use the speeds before the step.
    core = CartPoleCore(
      position + _STEP_SECONDS * speed,
      speed + _STEP_SECONDS * acceleration,
      angle + _STEP_SECONDS * angular_speed,
      angular_speed + _STEP_SECONDS * angular_acceleration,
      core.num_steps + 1,
    )
    fallen = tf.abs(core.angle) > _MAX_ANGLE
    return environment.Advance(
      core,
      tf.ones_like(position),
      terminated=fallen | (tf.abs(core.position) > _MAX_POSITION),
      truncated=tf.equal(core.num_steps, _MAX_STEPS),
      counters=counters,
    )

  def observe(self, core: CartPoleCore) -> tf.Tensor:
    return tf.stack(core[:4], axis=-1)

  def render(self, core: CartPoleCore) -> np.ndarray:
    """Renders cart and pole, uint8 `[200, 300, 3]`; 60 pixels per meter."""
    x, angle = float(core.position[0]), float(core.angle[0])
    canvas = drawing.Canvas(200, 300, scale=60)
    canvas.draw_line((-_MAX_POSITION, -1), (_MAX_POSITION, -1), 0.03, _BLACK)
    canvas.draw_line((x - 0.2, -1), (x + 0.2, -1), 0.25, _BLACK)
    length = 2 * _HALF_LENGTH
    tip = (x + length * math.sin(angle), length * math.cos(angle) - 1)
    canvas.draw_line((x, -1), tip, 0.1, _BROWN)
    return canvas.image
