"""Tests of the rendering of each environment family."""

import contextlib
import dataclasses

import gymnasium
import numpy as np
import pytest

from repertory.environments import wrappers
from repertory.environments.batches import batch
from repertory.environments.games import catch
from repertory.environments.registry import registry
from repertory.environments.rendering import rendering
from repertory.environments.wrappers import previous_action


@dataclasses.dataclass(frozen=True)
class Case:
  """A name, and the expected images."""

  name: str
  shape: tuple[int, ...]
  rate: float
  num_slots: int = 2
  num_steps: int = 12

  def __str__(self):
    return f'{self.name}_{self.num_slots}'


_SCREEN = (210, 160, 3)
CASES = (
  Case('gym:CartPole-v1', (400, 600, 3), 50, num_slots=8),
  Case(
    'atari:Breakout?life_loss=true&sticky_actions=0.25&threads=1',
    _SCREEN,
    15,
    1,
    50,
  ),
  Case(
    'atari:Breakout?max_frames=40&noops=0&frame_skip=2&threads=1',
    _SCREEN,
    30,
    2,
    25,
  ),
  Case('minigrid:MiniGrid-Empty-6x6-v0?full=true', (192, 192, 3), 10),
  Case('minatar:seaquest', (10, 10, 3), 20),
  Case('tensor:catch:12x7', (12, 7, 3), 5),
)


def make_pair(case):
  """Makes the same batch twice, the second one with rendering."""
  factory = registry.make_factory(case.name)
  seeds = [100 + slot for slot in range(case.num_slots)]
  return factory.make_batch(seeds), factory.with_rendering().make_batch(seeds)


def draw_actions(spec, num_slots, num_steps):
  random = np.random.default_rng(0)
  shape = (num_steps, num_slots, *spec.shape)
  if spec.dtype.kind == 'i':
    return random.integers(0, spec.num_values, shape).astype(spec.dtype)
  return random.uniform(spec.minimum, spec.maximum, shape).astype(spec.dtype)


@pytest.mark.parametrize('case', CASES, ids=str)
def test_rendered_environments_do_the_same(case):
  plain, rendered = make_pair(case)
  slots = range(case.num_slots)
  with contextlib.closing(plain), contextlib.closing(rendered):
    actions = draw_actions(plain.action_spec(), case.num_slots, case.num_steps)
    check_equal(rendered.reset(), plain.reset())
    seen = [set() for _ in slots]
    for action in actions:
      for slot, picture in zip(slots, rendering.take(rendered, slots)):
        seen[slot].add(picture[-1].tobytes())
      check_equal(rendered.step(action), plain.step(action))
    (last,) = rendering.take(rendered, [case.num_slots - 1])
    expected = case.shape if len(case.shape) == 4 else (1, *case.shape)
    # A step that ends early has fewer frames.
    assert last.shape[1:] == expected[1:]
    assert 1 <= len(last) <= expected[0]
    assert rendering.rate(rendered) == pytest.approx(case.rate)
    assert all(len(each) > 2 for each in seen)


def check_equal(found, expected):
  np.testing.assert_equal(tuple(found), tuple(expected))


class TestContent:
  def test_gymnasium_shows_its_own(self):
    num_slots = 8
    # Eight slots are stepped as one; each must get its own image.
    case = Case('gym:CartPole-v1', (400, 600, 3), 50, num_slots)
    _, rendered = make_pair(case)
    with contextlib.closing(rendered):
      timestep = rendered.reset()
      actions = draw_actions(rendered.action_spec(), num_slots, 5)
      for action in actions:
        timestep = rendered.step(action)
      found = rendered.render([2, 1])
    for picture, slot in zip(found, [2, 1]):
      own = gymnasium.make('CartPole-v1', render_mode='rgb_array')
      own.reset()
      own.unwrapped.state = timestep.observation[slot]
      # The vector environment draws a few pixels differently.
      differs = (picture != own.render()).any(axis=-1)
      assert differs.mean() < 2e-3
      own.close()

  def test_pole_of_tensors_leans_in_its_direction(self):
    environment = registry.make('tensor:cartpole', seed=0)
    timestep = environment.reset()
    while not timestep.last():
      timestep = environment.step(1)  # Pushed to the right, it falls left.
    x, _, angle, _ = timestep.observation
    rows, columns = np.nonzero(environment.render()[..., 0] == 202)
    top = columns[rows == rows.min()].mean()
    meter = 60
    assert top == pytest.approx(149.5 + meter * (x + np.sin(angle)), abs=2)
    assert rows.min() == pytest.approx(
      99.5 + meter * (1 - np.cos(angle)) - 0.05 * meter, abs=2
    )
    assert angle < -0.2


class Colored(catch.Catch):
  """Renders a given image."""

  def __init__(self, picture, **attributes):
    super().__init__()
    self.picture = picture
    vars(self).update(attributes)

  def render(self):
    if isinstance(self.picture, Exception):
      raise self.picture
    return self.picture


_PICTURE = np.arange(24, dtype=np.uint8).reshape(2, 4, 3)


class TestOwnEnvironments:
  def test_wrappers_and_batches_pass_pictures_on(self):
    environments = [
      wrappers.SinglePrecision(
        wrappers.StepLimit(
          wrappers.FrameStack(Colored(_PICTURE + i, render_fps=12), 2), 9
        )
      )
      for i in range(3)
    ]
    np.testing.assert_array_equal(environments[1].render(), _PICTURE + 1)
    together = previous_action.PreviousActionAndReward(
      batch.EnvironmentBatch(environments)
    )
    found = rendering.take(together, [2, 0])
    np.testing.assert_array_equal(found, [[_PICTURE + 2], [_PICTURE]])
    assert rendering.rate(together) == 12

  def test_wrappers_may_change_pictures(self):
    class Dark(wrappers.EnvironmentWrapper):
      def render(self):
        return super().render() // 2

    environments = batch.EnvironmentBatch([Dark(Colored(_PICTURE))])
    found = rendering.take(environments, [0])
    np.testing.assert_array_equal(found, [[_PICTURE // 2]])

  def test_invalid_rate(self):
    environments = batch.EnvironmentBatch(
      [Colored(_PICTURE, render_fps='fast')]
    )
    with pytest.raises(rendering.RenderError, match='`render_fps` of Colored'):
      rendering.rate(environments)

  @pytest.mark.parametrize(
    ('picture', 'message'),
    [
      (None, 'found None'),
      (_PICTURE.astype(np.float32), r'found float32 \[2, 4, 3\]'),
      (_PICTURE[:0], r'found uint8 \[0, 4, 3\]'),
      (OSError('no light'), 'could not be rendered: OSError: no light'),
    ],
  )
  def test_wrong_pictures(self, picture, message):
    environments = batch.EnvironmentBatch([Colored(picture)])
    with pytest.raises(rendering.RenderError, match=message):
      rendering.take(environments, [0])

  def test_a_factory_of_ones_own(self):
    def factory(seed):
      return catch.Catch(seed=seed)

    assert rendering.enable(factory) is factory
    setattr(factory, 'with_rendering', lambda: 'with frames')  # noqa: B010
    assert rendering.enable(factory) == 'with frames'


def test_names_without_a_picture():
  factory = registry.make_factory('memory_chain').with_rendering()
  environments = factory.make_batch([0, 1])
  with contextlib.closing(environments):
    environments.reset()
    with pytest.raises(
      rendering.RenderError, match='MemoryChain has no method `render`'
    ):
      rendering.take(environments, [0])


@pytest.mark.parametrize('name', ['gym:CartPole-v1', 'atari:Pong'])
def test_pictures_that_were_not_asked_for(name):
  environment = registry.make(name, seed=0)
  environment.reset()
  with pytest.raises(rendering.RenderError, match=r'\.with_rendering\(\)'):
    environment.render()
  environment.close()
