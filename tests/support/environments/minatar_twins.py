"""MinAtar's original games, fed with the random numbers of tensor games.

Methods of a game that draw random numbers get given ones, in order. Unexpected
or missing calls fail.
"""

import copy
import functools

import numpy as np

from support.agents.random_draws import Stream

NUM_MOVES = 6


def pick(draw, count):
  """Returns a draw as an integer below `count`, like a tensor game."""
  return int(np.float32(draw) * np.float32(count))


class Served:
  """Fake `np.random.RandomState` that answers expected calls only."""

  def __init__(self):
    self.calls = []

  def rand(self, *sizes):
    return self._answer('rand', *sizes)

  def randint(self, *bounds, low=None, high=None):
    named = () if low is None else (low, high)
    return self._answer('randint', *bounds, *named)

  def _answer(self, *call):
    foreseen, answer = self.calls.pop(0)
    assert foreseen == call
    return answer


def _serve_ball(game, draws):
  del game
  return [(('randint', 2), pick(draws[0], 2))]


def _serve_cars(game, draws):
  del game
  numbers = [pick(draw, 10) for draw in draws]
  speeds = np.array([number % 5 + 1 for number in numbers])
  # Below and above one half: left and right.
  sides = np.array([0.75 if number < 5 else 0.25 for number in numbers])
  return [(('randint', 1, 6, 8), speeds), (('rand', 8), sides)]


def _serve_entity(game, draws):
  free = game.entities.count(None)
  connection = [(('randint', free), pick(draws[2], free))] if free else []
  return [(('rand',), draws[0]), (('rand',), draws[1]), *connection]


def _serve_enemy(game, draws):
  del game
  row = 1 + pick(draws[2], 8)
  return [
    (('rand',), draws[0]),
    (('rand',), draws[1]),
    (('randint', 1, 9), row),
  ]


def _serve_diver(game, draws):
  del game
  row = 1 + pick(draws[4], 8)
  return [(('rand',), draws[3]), (('randint', 1, 9), row)]


# By game: numbers drawn at the start and in a step, and the methods that draw.
_DRAWS = {
  'asterix': (0, 3, {'_spawn_entity': _serve_entity}),
  'breakout': (1, 0, {'reset': _serve_ball}),
  'freeway': (8, 8, {'_randomize_cars': _serve_cars}),
  'seaquest': (
    0,
    5,
    {'_spawn_enemy': _serve_enemy, '_spawn_diver': _serve_diver},
  ),
  'space_invaders': (0, 0, {}),
}


class Twin:
  """A MinAtar game, restarted in the step after its end."""

  def __init__(self, minatar, name, counter, settings, attributes):
    """Makes the game."""
    self._environment = minatar.Environment(
      name, settings['sticky_actions'], settings['ramping']
    )
    self.game = self._environment.env
    self._moves = list(range(NUM_MOVES))
    if not settings['full_actions']:
      self._moves = self._environment.minimal_action_set()
    self._stream = Stream(counter)
    self._attributes = attributes
    self._start_draws, self._step_draws, serve_by_method = _DRAWS[name]
    self._draws = []
    self._repeats, self.game.random = Served(), Served()
    self._environment.random = self._repeats
    for method, serve in serve_by_method.items():
      original = getattr(self.game, method)
      serving = functools.partial(self._call, original, serve)
      setattr(self.game, method, serving)
    self._ended = True

  def step(self, action):
    """Returns step type, reward, discount and board."""
    if self._ended:
      self._draws = self._stream.draw(self._start_draws)
      self._environment.reset()
      for name, value in self._attributes.items():
        setattr(self.game, name, copy.deepcopy(value))
      self._ended = False
      return 0, 0.0, 1.0, self.game.state()
    repeat, *self._draws = self._stream.draw(1 + self._step_draws)
    self._repeats.calls = [(('rand',), repeat)]
    reward, self._ended = self._environment.act(self._moves[action])
    assert not self._repeats.calls
    if self._ended:
      return 2, float(reward), 0.0, self.game.state()
    return 1, float(reward), 1.0, self.game.state()

  def _call(self, method, serve, *args, **kwargs):
    self.game.random.calls = serve(self.game, self._draws)
    method(*args, **kwargs)
    assert not self.game.random.calls
