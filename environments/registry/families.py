"""Environment families: name patterns of the registry and their factories."""

import functools
import pkgutil
import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import dm_env

from repertory.environments import adapters, games, tensor, wrappers
from repertory.environments.batches import vector_batch
from repertory.environments.registry import name_options

if TYPE_CHECKING:
  from repertory.environments.tensor import environment as tensor_environment

# The named groups of the pattern, None if left out, and the value of every
# option. With rendering, `render_mode` is among the latter.
Match = Mapping[str, Any]
Settings = Mapping[str, Any]
# Parts of patterns that are integers.
_SIZES = frozenset({'rows', 'columns', 'length'})


class Makers(NamedTuple):
  """Functions that make the environments of one name.

  Attributes:
    make: Makes one environment of a seed, of single precision.
    make_batch: Makes a batch of seeds. Without it, or if it returns None, a
      batch is a loop over environments.
    make_tensor: Makes a tensor environment; None if the name has none.
  """

  make: Callable[[int], dm_env.Environment]
  make_batch: (
    Callable[[Sequence[int]], vector_batch.VectorBatch | None] | None
  ) = None
  make_tensor: Callable[[], 'tensor_environment.TensorEnvironment'] | None = (
    None
  )


class Family(NamedTuple):
  """Name pattern of environments, and their factories."""

  # The name, with free parts in angle and optional ones in square brackets.
  pattern: str
  description: str
  # Returns the `Makers` of match and settings; None for those of users.
  makers: Any = None
  extra: str = ''  # The extra to install, if any.
  # Returns the options that may follow a question mark; imports the adapter.
  options: Callable[[], tuple[name_options.Option, ...]] = tuple
  # Whether rendering is enabled by a setting, `render_mode`.
  has_render_mode: bool = False

  @property
  def prefix(self) -> str:
    """The name up to the colon."""
    return re.split(r'[\[:]', self.pattern)[0]

  @property
  def requirement(self) -> str:
    """Requirement of its extra, see `extras.requirement`; '' without one."""
    return adapters.extras.requirement(self.extra) if self.extra else ''

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


def _read(match: Match) -> dict[str, Any]:
  return {
    name: int(part) if name in _SIZES else part
    for name, part in match.items()
    if part is not None
  }


# The functions below return the `makers` of a family. `find` imports a module
# and returns a function or class of it.


def _game(find: Callable[[], Any]):
  def makers(match: Match, settings: Settings) -> Makers:
    make = functools.partial(find(), **_read(match), **settings)
    make(seed=0)  # Checks the numbers in the name.
    return Makers(lambda seed: make(seed=seed))

  return makers


def _single(find: Callable[[], Any]):
  def makers(match: Match, settings: Settings) -> Makers:
    make = functools.partial(find(), match['id'], settings)
    return Makers(lambda seed: wrappers.SinglePrecision(make(seed)))

  return makers


def _source(find: Callable[[], Any]):
  def makers(match: Match, settings: Settings) -> Makers:
    source = functools.partial(find(), match['id'], settings)
    return Makers(
      lambda seed: vector_batch.SingleSlot(source([seed])),
      lambda seeds: vector_batch.VectorBatch(source(seeds)),
    )

  return makers


def _gymnasium(match: Match, settings: Settings) -> Makers:
  def make(seed: int) -> dm_env.Environment:
    adapter = adapters.gymnasium_adapter
    gym_env = adapter.make_env(match['id'], **settings)
    return wrappers.SinglePrecision(adapter.GymnasiumAdapter(gym_env, seed))

  def make_batch(seeds: Sequence[int]) -> vector_batch.VectorBatch | None:
    make_source = adapters.gymnasium_sources.make_source
    source = make_source(match['id'], seeds, **settings)
    return None if source is None else vector_batch.VectorBatch(source)

  return Makers(make, make_batch)


def _tensor(pattern: str, description: str, path: str, **fields: Any) -> Family:
  """Returns the family of a tensor environment; imports TensorFlow when used.

  Parts of the pattern, after 'tensor:', and options are arguments of the class,
  whose import path starts in `environments.tensor`.
  """

  def makers(match: Match, settings: Settings) -> Makers:
    def make():
      found = pkgutil.resolve_name(f'{tensor.__name__}.{path}')
      return found(**_read(match), **settings)

    return Makers(
      lambda seed: tensor.Factory(make)(seed),
      lambda seeds: tensor.Factory(make).make_batch(seeds),
      make,
    )

  return Family(f'tensor:{pattern}', description, makers, **fields)


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
    _gymnasium,
    'gymnasium',
    has_render_mode=True,
  ),
  Family(
    'atari:<game>',
    'An Atari game with the usual preprocessing, for example atari:Pong',
    _source(lambda: adapters.atari.AtariSource),
    'atari',
    lambda: adapters.atari.OPTIONS,
    has_render_mode=True,
  ),
  Family(
    'envpool:<id>',
    'An environment of EnvPool, for example envpool:CartPole-v1',
    _source(lambda: adapters.envpool_adapter.EnvPoolSource),
    'envpool',
    lambda: adapters.envpool_adapter.OPTIONS,
  ),
  Family(
    'dm_control:<domain>/<task>',
    'A Control Suite task, for example dm_control:cartpole/swingup',
    _single(lambda: adapters.dm_control_adapter.make),
    'dm-control',
    lambda: adapters.dm_control_adapter.OPTIONS,
    has_render_mode=True,
  ),
  Family(
    'bsuite:<experiment>/<number>',
    'A Behaviour Suite environment, for example bsuite:catch/0',
    _single(lambda: adapters.bsuite_adapter.make),
    'bsuite',
  ),
  Family(
    'minigrid:<id>',
    'A grid world, for example minigrid:MiniGrid-DoorKey-5x5-v0',
    _single(lambda: adapters.minigrid_adapter.make),
    'minigrid',
    lambda: adapters.minigrid_adapter.OPTIONS,
    has_render_mode=True,
  ),
  Family(
    'minatar:<game>',
    'A small Atari game on a board, for example minatar:breakout',
    _source(lambda: adapters.minatar_adapter.MinAtarSource),
    'minatar',
    lambda: adapters.minatar_adapter.OPTIONS,
  ),
  _tensor(
    'catch[:<rows>x<columns>]',
    'The same in TensorFlow, for example tensor:catch:12x7',
    'catch:TensorCatch',
  ),
  _tensor(
    'memory_chain[:<length>]',
    'The same in TensorFlow, for example tensor:memory_chain:30',
    'memory_chain:TensorMemoryChain',
  ),
  _tensor(
    'cartpole', "Gymnasium's CartPole-v1, in TensorFlow", 'cartpole:CartPole'
  ),
  _tensor(
    'pendulum', "Gymnasium's Pendulum-v1, in TensorFlow", 'pendulum:Pendulum'
  ),
  _tensor(
    'lock',
    'Set two dials as shown, with actions of several parts',
    'lock:Lock',
    options=lambda: (
      name_options.Option(
        'key', False, 'Whether to turn a key by an angle as well'
      ),
    ),
  ),
  _tensor(
    'gates',
    'Cross a grid whose gates open by one of several handles, with masks',
    'gates:Gates',
    options=lambda: (
      name_options.Option(
        'masked', True, 'Whether observations have action masks'
      ),
    ),
  ),
  *(
    _tensor(
      f'minatar/{game}',
      f'The game of minatar:{game}, in TensorFlow',
      f'minatar.{game}:{game.title().replace("_", "")}',
      options=lambda: adapters.minatar_adapter.OPTIONS,
    )
    for game in ('asterix', 'breakout', 'freeway', 'seaquest', 'space_invaders')
  ),
  _tensor(
    'gymnax/<id>',
    'A game of gymnax, for example tensor:gymnax/Breakout-MinAtar',
    'gymnax_adapter:Gymnax',
    extra='gymnax',
  ),
)
PREFIXES = tuple(family.prefix for family in FAMILIES)
