"""Scripted players of MinAtar that beat chance, to reach more states."""

STAY, LEFT, UP, RIGHT, DOWN, FIRE = range(6)


def choose(name, game, moves, random):
  """Returns an action: mostly a sensible one, else a random one."""
  moves = list(moves)
  if random.random() < 0.4:
    return int(random.integers(len(moves)))
  return moves.index(_PLAYERS[name](game, random))


def _towards(x, y, game_x, game_y):
  if y != game_y:
    return DOWN if y > game_y else UP
  return STAY if x == game_x else RIGHT if x > game_x else LEFT


def _play_asterix(game, random):
  del random
  golds = [entity for entity in game.entities if entity and entity[3]]
  if not golds:
    return STAY
  return _towards(golds[0][0], golds[0][1], game.player_x, game.player_y)


def _play_breakout(game, random):
  del random
  x = game.ball_x
  return STAY if x == game.pos else RIGHT if x > game.pos else LEFT


def _play_freeway(game, random):
  del game, random
  return UP


def _play_seaquest(game, random):
  if game.diver_count and random.random() < 0.5:
    return UP
  if game.sub_y == 0:
    return DOWN
  if game.divers and random.random() < 0.7:
    x, y = game.divers[0][:2]
    return _towards(x, y, game.sub_x, game.sub_y)
  return FIRE


def _play_space_invaders(game, random):
  if game.shot_timer == 0 and game.alien_map[:, game.pos].any():
    return FIRE
  return LEFT if random.random() < 0.5 else RIGHT


_PLAYERS = {
  'asterix': _play_asterix,
  'breakout': _play_breakout,
  'freeway': _play_freeway,
  'seaquest': _play_seaquest,
  'space_invaders': _play_space_invaders,
}
