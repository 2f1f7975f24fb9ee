"""Environment families: name patterns of the registry and their factories."""

import importlib
import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import dm_env

from repertory.environments import adapters, games, wrappers
from repertory.environments.batches import batch, vector_batch
from repertory.environments.registry import name_options

if TYPE_CHECKING:
  from repertory.environments.tensor import environment as tensor_environment

# The named groups of the pattern, None if left out, and the value of every
# option. With rendering, `render_mode` is among the latter.
Match = Mapping[str, Any]
Settings = Mapping[str, Any]
Options = Callable[[], tuple[name_options.Option, ...]]
# Parts of patterns that are integers.
_SIZES = frozenset({'rows', 'columns', 'length'})


class Makers(NamedTuple):
  """Functions that make the environments of one name.

  Attributes:
    make: Makes one environment of a seed.
    make_batch: Makes a batch of seeds; None for a loop over environments.
    make_tensor: Makes a tensor environment; None if the name has none.
  """

  make: Callable[[int], dm_env.Environment]
  make_batch: Callable[[Sequence[int]], vector_batch.VectorBatch] | None
  make_tensor: Callable[[], 'tensor_environment.TensorEnvironment'] | None


class Family(NamedTuple):
  """Name pattern of environments, and their factories."""

  # The name, with free parts in angle and optional ones in square brackets.
  pattern: str
  description: str
  # Makes one environment of match, settings and seed; None for those of users.
  make: Any = None
  extra: str = ''  # The extra to install, if any.
  # Returns the options that may follow a question mark; imports the adapter.
  options: Options = tuple
  # Makes a vectorized batch; None for a loop over environments.
  make_batch: (
    Callable[[Match, Settings, Sequence[int]], vector_batch.VectorBatch] | None
  ) = None
  # Makes a tensor environment; None if the family has none.
  make_tensor: (
    Callable[[Match, Settings], 'tensor_environment.TensorEnvironment'] | None
  ) = None
  # Whether rendering is enabled by a setting, `render_mode`.
  has_render_mode: bool = False

  @property
  def prefix(self) -> str:
    """The name up to the colon."""
    return re.split(r'[\[:]', self.pattern)[0]

  @property
  def requirement(self) -> str:
    """The command that installs the packages it needs, '' if none."""
    return f"pip install 'repertory[{self.extra}]'" if self.extra else ''

  @property
  def syntax(self) -> re.Pattern:
    """The regular expression of a whole name, without options.

    Sizes have groups of their names; all other free parts are the group 'id'.
    """
    fixed, *parts = re.split('<(.+?)>', self.pattern)
    if not _SIZES.intersection(parts):
      return re.compile(f'{fixed}(?P<id>.+)' if parts else fixed)
    pattern = self.pattern.replace('[', '(?:').replace(']', ')?')
    return re.compile(re.sub(r'<(\w+)>', r'(?P<\1>[0-9]+)', pattern))


_CHANNELS_FIRST = name_options.Option(
  'channels_first', False, 'Whether images are [C, H, W]'
)


def _game(find: Callable[[], Callable[..., dm_env.Environment]]):
  return lambda match, settings, seed: find()(**_read(match), seed=seed)


def _read(match: Match) -> dict[str, Any]:
  return {
    name: int(part) if name in _SIZES else part
    for name, part in match.items()
    if part is not None
  }


def _make_gymnasium(match: Match, settings: Settings, seed: int):
  own = dict(settings)
  is_first = own.pop(_CHANNELS_FIRST.name)
  environment = adapters.gymnasium_adapter.make(match['id'], seed, **own)
  if is_first:
    environment = wrappers.ChannelsLast(environment)
  return wrappers.SinglePrecision(environment)


def _make_gymnasium_batch(
  match: Match, settings: Settings, seeds: Sequence[int]
):
  own = dict(settings)
  if not own.pop(_CHANNELS_FIRST.name):
    source = adapters.gymnasium_sources.make_source(match['id'], seeds, **own)
    if source is not None:
      return vector_batch.VectorBatch(source)
  return batch.EnvironmentBatch(
    [_make_gymnasium(match, settings, seed) for seed in seeds]
  )


def _with_id(find: Callable[[], Callable[[str, Settings, Any], Any]]):
  return lambda match, settings, seeds: find()(match['id'], settings, seeds)


def _of_source(
  pattern: str,
  description: str,
  extra: str,
  options: Options,
  source: Callable[[Match, Settings, Sequence[int]], vector_batch.VectorSource],
  has_render_mode: bool = False,
) -> Family:
  """Returns the family of a vectorized source."""
  return Family(
    pattern,
    description,
    lambda match, settings, seed: vector_batch.SingleSlot(
      source(match, settings, [seed])
    ),
    extra,
    options,
    lambda *arguments: vector_batch.VectorBatch(source(*arguments)),
    has_render_mode=has_render_mode,
  )


def _of_tensor(
  pattern: str,
  description: str,
  module: str,
  class_name: str,
  options: Options = tuple,
  extra: str = '',
) -> Family:
  """Returns the family of a tensor environment; imports TensorFlow when used.

  Parts of the pattern, after 'tensor:', and options are arguments of the class.
  """
  package = 'repertory.environments.tensor'

  def make(match: Match, settings: Settings):
    found = importlib.import_module(f'{package}.{module}')
    return getattr(found, class_name)(**_read(match), **settings)

  def make_source(match: Match, settings: Settings, seeds: Sequence[int]):
    factory = importlib.import_module(f'{package}.factory')
    return factory.TensorSource(make(match, settings), seeds)

  pattern = f'tensor:{pattern}'
  family = _of_source(pattern, description, extra, options, make_source)
  return family._replace(make_tensor=make)


_TENSOR_MINATAR = {
  'asterix': 'Asterix',
  'breakout': 'Breakout',
  'freeway': 'Freeway',
  'seaquest': 'Seaquest',
  'space_invaders': 'SpaceInvaders',
}

# Adapters and games are only imported for names of their families, and options
# for listings. To add a tensor environment, add a module to
# `environments/tensor`, and a line here.
FAMILIES = (
  Family(
    'catch[:<rows>x<columns>]',
    'Catch a falling ball on a board of 10 rows, 5 columns, or as catch:12x7',
    _game(lambda: games.catch.Catch),
  ),
  Family(
    'memory_chain[:<length>]',
    'Recall after 10 steps, or as memory_chain:30, which of two cues was shown',
    _game(lambda: games.memory_chain.MemoryChain),
  ),
  Family(
    'reach',
    'Move a hand onto a goal, from 10 x 10 pixels',
    _game(lambda: games.reach.Reach),
  ),
  Family(
    'gym:<id>',
    'A registered Gymnasium environment, for example gym:CartPole-v1',
    _make_gymnasium,
    'gymnasium',
    lambda: (_CHANNELS_FIRST,),
    _make_gymnasium_batch,
    has_render_mode=True,
  ),
  _of_source(
    'atari:<game>',
    'An Atari game with the usual preprocessing, for example atari:Pong',
    'atari',
    lambda: adapters.atari.OPTIONS,
    _with_id(lambda: adapters.atari.AtariSource),
    has_render_mode=True,
  ),
  _of_source(
    'envpool:<id>',
    'An environment of EnvPool, for example envpool:CartPole-v1',
    'envpool',
    lambda: adapters.envpool_adapter.OPTIONS,
    _with_id(lambda: adapters.envpool_adapter.EnvPoolSource),
  ),
  Family(
    'dm_control:<domain>/<task>',
    'A Control Suite task, for example dm_control:cartpole/swingup',
    _with_id(lambda: adapters.dm_control_adapter.make),
    'dm-control',
    lambda: adapters.dm_control_adapter.OPTIONS,
    has_render_mode=True,
  ),
  Family(
    'bsuite:<experiment>/<number>',
    'A Behaviour Suite environment, for example bsuite:catch/0',
    lambda match, settings, seed: adapters.bsuite_adapter.make(
      match['id'], seed, **settings
    ),
    'bsuite',
    has_render_mode=True,
  ),
  Family(
    'minigrid:<id>',
    'A grid world, for example minigrid:MiniGrid-DoorKey-5x5-v0',
    _with_id(lambda: adapters.minigrid_adapter.make),
    'minigrid',
    lambda: adapters.minigrid_adapter.OPTIONS,
    has_render_mode=True,
  ),
  _of_source(
    'minatar:<game>',
    'A small Atari game on a board, for example minatar:breakout',
    'minatar',
    lambda: adapters.minatar_adapter.OPTIONS,
    _with_id(lambda: adapters.minatar_adapter.MinAtarSource),
  ),
  _of_tensor(
    'catch[:<rows>x<columns>]',
    'The same in TensorFlow, for example tensor:catch:12x7',
    'catch',
    'TensorCatch',
  ),
  _of_tensor(
    'memory_chain[:<length>]',
    'The same in TensorFlow, for example tensor:memory_chain:30',
    'memory_chain',
    'TensorMemoryChain',
  ),
  _of_tensor(
    'cartpole', "Gymnasium's CartPole-v1, in TensorFlow", 'cartpole', 'CartPole'
  ),
  _of_tensor(
    'pendulum', "Gymnasium's Pendulum-v1, in TensorFlow", 'pendulum', 'Pendulum'
  ),
  _of_tensor(
    'lock',
    'Set two dials as shown, with actions of several parts',
    'lock',
    'Lock',
    lambda: (
      name_options.Option(
        'key', False, 'Whether to turn a key by an angle as well'
      ),
    ),
  ),
  *(
    _of_tensor(
      f'minatar/{game}',
      f'The game of minatar:{game}, in TensorFlow',
      f'minatar.{game}',
      class_name,
      lambda: adapters.minatar_adapter.OPTIONS,
    )
    for game, class_name in _TENSOR_MINATAR.items()
  ),
  _of_tensor(
    'gymnax/<id>',
    'A game of gymnax, for example tensor:gymnax/Breakout-MinAtar',
    'gymnax_adapter',
    'Gymnax',
    extra='gymnax',
  ),
)
