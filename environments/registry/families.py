"""Environment families: name patterns of the registry and their factories."""

import re
import types
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import dm_env

from repertory.environments.adapters import (
  atari,
  bsuite_adapter,
  dm_control_adapter,
  envpool_adapter,
  gymnasium_adapter,
  gymnasium_sources,
  minatar_adapter,
  minigrid_adapter,
)
from repertory.environments.batches import batch, single_slot, vector_batch
from repertory.environments.games import catch, memory_chain, reach
from repertory.environments.registry import name_options
from repertory.environments.tensor import entries as tensor_entries
from repertory.environments.wrappers import channels_last, single_precision

if TYPE_CHECKING:
  from repertory.environments.tensor import environment as tensor_environment

# The named groups of the pattern, and the value of every option. With
# rendering, the family's `filmed` settings are among the latter.
Match = Mapping[str, str]
Settings = Mapping[str, Any]
# Takes an id, options and seeds, one per slot.
MakeSource = Callable[[str, Settings, Sequence[int]], vector_batch.VectorSource]


class EnvironmentFamily(NamedTuple):
  """Name pattern of environments, as shown to users.

  Attributes:
    pattern: The name, with its free parts in angle brackets.
    description: One line.
    requirement: Packages to install, '' if none.
    options: Options that may follow a question mark.
  """

  pattern: str
  description: str
  requirement: str = ''
  options: tuple[name_options.Option, ...] = ()


class Family(NamedTuple):
  """Parser and factories of one name pattern.

  Attributes:
    entry: The pattern and its description.
    syntax: Regular expression of the whole name without options.
    make: Makes one environment.
    make_batch: Makes a vectorized batch; None for a loop over environments.
    cheap: Whether `make` is cheap enough for a factory to try it at once.
    make_tensor: Makes a tensor environment; None if the family has none.
    filmed: Settings that enable rendering, besides the options.
  """

  entry: EnvironmentFamily
  syntax: re.Pattern
  make: Callable[[Match, Settings, int], dm_env.Environment]
  make_batch: (
    Callable[[Match, Settings, Sequence[int]], vector_batch.VectorBatch] | None
  ) = None
  cheap: bool = False
  make_tensor: (
    Callable[[Match, Settings], 'tensor_environment.TensorEnvironment'] | None
  ) = None
  filmed: Settings = types.MappingProxyType({})


_CHANNELS_FIRST = name_options.Option(
  'channels_first', False, 'Whether images are [C, H, W]'
)


def _make_catch(match: Match, settings: Settings, seed: int):
  del settings
  return catch.Catch(**_read_sizes(match), seed=seed)


def _make_memory_chain(match: Match, settings: Settings, seed: int):
  del settings
  return memory_chain.MemoryChain(**_read_sizes(match), seed=seed)


def _make_reach(match: Match, settings: Settings, seed: int):
  del match, settings
  return reach.Reach(seed=seed)


def _read_sizes(match: Match) -> dict[str, int]:
  return {name: int(digits) for name, digits in match.items()}


def _make_gymnasium(match: Match, settings: Settings, seed: int):
  own = {k: v for k, v in settings.items() if k != _CHANNELS_FIRST.name}
  environment = gymnasium_adapter.make(match['id'], seed, **own)
  if settings[_CHANNELS_FIRST.name]:
    environment = channels_last.ChannelsLast(environment)
  return single_precision.SinglePrecision(environment)


def _make_gymnasium_batch(
  match: Match, settings: Settings, seeds: Sequence[int]
):
  if settings[_CHANNELS_FIRST.name]:
    return batch.EnvironmentBatch(
      [_make_gymnasium(match, settings, seed) for seed in seeds]
    )
  own = {k: v for k, v in settings.items() if k != _CHANNELS_FIRST.name}
  return gymnasium_sources.make_batch(match['id'], seeds, **own)


def _make_bsuite(match: Match, settings: Settings, seed: int):
  return bsuite_adapter.make(match['id'], seed, **settings)


def _with_id(function: Callable[[str, Settings, Any], Any]):
  """Adapts a function of id, settings and seeds to a match."""
  return lambda match, settings, seeds: function(match['id'], settings, seeds)


def _one_of(make_source: MakeSource):
  """Returns a function that makes a single environment of a source."""
  return lambda match, settings, seed: single_slot.SingleSlot(
    make_source(match['id'], settings, [seed])
  )


def _batch_of(make_source: MakeSource):
  """Returns a function that makes a batch of a source."""
  return lambda match, settings, seeds: vector_batch.VectorBatch(
    make_source(match['id'], settings, seeds)
  )


def _of_tensor(entry: tensor_entries.TensorFamily) -> Family:
  """Returns the family of a tensor environment."""

  def make_factory(match: Match, settings: Settings):
    return tensor_entries.make_factory(entry, match, settings)

  return Family(
    EnvironmentFamily(
      f'tensor:{entry.pattern}',
      entry.description,
      _requires(entry.extra) if entry.extra else '',
      entry.options,
    ),
    re.compile(f'tensor:{tensor_entries.read_syntax(entry).pattern}'),
    lambda match, settings, seed: make_factory(match, settings)(seed),
    lambda match, settings, seeds: make_factory(match, settings).make_batch(
      seeds
    ),
    make_tensor=lambda match, settings: make_factory(match, settings).make(),
  )


def _requires(extra: str) -> str:
  return f"pip install 'repertory[{extra}]'"


def _compile(prefix: str) -> re.Pattern:
  return re.compile(f'{prefix}:(?P<id>.+)')


FAMILIES = (
  Family(
    EnvironmentFamily(
      'catch', 'Catch a falling ball on a board of 10 rows, 5 columns'
    ),
    re.compile('catch'),
    _make_catch,
    cheap=True,
  ),
  Family(
    EnvironmentFamily(
      'catch:<rows>x<columns>',
      'Catch on a board of another size, for example catch:12x7',
    ),
    re.compile('catch:(?P<rows>[0-9]+)x(?P<columns>[0-9]+)'),
    _make_catch,
    cheap=True,
  ),
  Family(
    EnvironmentFamily(
      'memory_chain', 'Recall after 10 steps which of two cues was shown'
    ),
    re.compile('memory_chain'),
    _make_memory_chain,
    cheap=True,
  ),
  Family(
    EnvironmentFamily(
      'memory_chain:<length>',
      'Memory chain of another length, for example memory_chain:30',
    ),
    re.compile('memory_chain:(?P<length>[0-9]+)'),
    _make_memory_chain,
    cheap=True,
  ),
  Family(
    EnvironmentFamily('reach', 'Move a hand onto a goal, from 10 x 10 pixels'),
    re.compile('reach'),
    _make_reach,
    cheap=True,
  ),
  Family(
    EnvironmentFamily(
      'gym:<id>',
      'A registered Gymnasium environment, for example gym:CartPole-v1',
      _requires('gymnasium'),
      (_CHANNELS_FIRST,),
    ),
    _compile('gym'),
    _make_gymnasium,
    _make_gymnasium_batch,
    filmed=gymnasium_adapter.FILMED,
  ),
  Family(
    EnvironmentFamily(
      'atari:<game>',
      'An Atari game with the usual preprocessing, for example atari:Pong',
      _requires('atari'),
      atari.OPTIONS,
    ),
    _compile('atari'),
    _one_of(atari.AtariSource),
    _batch_of(atari.AtariSource),
    filmed=atari.FILMED,
  ),
  Family(
    EnvironmentFamily(
      'envpool:<id>',
      'An environment of EnvPool, for example envpool:CartPole-v1',
      _requires('envpool'),
      envpool_adapter.OPTIONS,
    ),
    _compile('envpool'),
    _one_of(envpool_adapter.EnvPoolSource),
    _batch_of(envpool_adapter.EnvPoolSource),
  ),
  Family(
    EnvironmentFamily(
      'dm_control:<domain>/<task>',
      'A Control Suite task, for example dm_control:cartpole/swingup',
      _requires('dm-control'),
      dm_control_adapter.OPTIONS,
    ),
    _compile('dm_control'),
    _with_id(dm_control_adapter.make),
    filmed=dm_control_adapter.FILMED,
  ),
  Family(
    EnvironmentFamily(
      'bsuite:<experiment>/<number>',
      'A Behaviour Suite environment, for example bsuite:catch/0',
      _requires('bsuite'),
    ),
    _compile('bsuite'),
    _make_bsuite,
    filmed=bsuite_adapter.FILMED,
  ),
  Family(
    EnvironmentFamily(
      'minigrid:<id>',
      'A grid world, for example minigrid:MiniGrid-DoorKey-5x5-v0',
      _requires('minigrid'),
      minigrid_adapter.OPTIONS,
    ),
    _compile('minigrid'),
    _with_id(minigrid_adapter.make),
    _with_id(minigrid_adapter.make_batch),
    filmed=minigrid_adapter.FILMED,
  ),
  Family(
    EnvironmentFamily(
      'minatar:<game>',
      'A small Atari game on a board, for example minatar:breakout',
      _requires('minatar'),
      minatar_adapter.OPTIONS,
    ),
    _compile('minatar'),
    _one_of(minatar_adapter.MinAtarSource),
    _batch_of(minatar_adapter.MinAtarSource),
  ),
  *map(_of_tensor, tensor_entries.ENTRIES),
)
