"""Conformance tests of the games of MinAtar."""

import pytest
import tensorflow as tf

from repertory.environments import tensor
from repertory.environments.registry import registry
from repertory.environments.tensor import conformance
from repertory.environments.tensor import minatar as games
from repertory.environments.values import argument_checks
from support.system import rare_cases


class GameConformance(conformance.TensorEnvironmentConformance):
  end_discounts = (0,)
  game: tensor.TensorEnvironment

  def make_environment(self):
    return self.game


@pytest.mark.chaos
class TestAsterix(GameConformance):
  num_steps = 100
  game = games.Asterix()


class TestBreakout(GameConformance):
  game = games.Breakout()


class ShortFreeway(games.Freeway):
  """Freeway with short episodes."""

  def _begin(self, draws):
    state = super()._begin(draws)
    return state._replace(time=tf.fill(state.time.shape, 20))


@pytest.mark.chaos
class TestFreeway(GameConformance):
  game = ShortFreeway()


@pytest.mark.chaos
class TestSeaquest(GameConformance):
  game = games.Seaquest()


@pytest.mark.chaos
class TestSpaceInvaders(GameConformance):
  num_steps = 100
  # Only sticky actions are random here.
  game = games.SpaceInvaders()


@pytest.mark.parametrize(
  'game',
  rare_cases.daily(
    ['asterix', 'breakout', 'freeway', 'seaquest', 'space_invaders'],
    ['breakout'],
  ),
)
def test_names_and_specs(game):
  pytest.importorskip('minatar')
  for options in ('', '?full_actions=false'):
    made, other = (
      registry.make(f'{prefix}{game}{options}', 0)
      for prefix in ('tensor:minatar/', 'minatar:')
    )
    assert made.observation_spec() == other.observation_spec()
    assert made.action_spec() == other.action_spec()


def test_probability_is_checked():
  with pytest.raises(argument_checks.ArgumentError, match='probability'):
    games.Breakout(sticky_actions=1.5)
