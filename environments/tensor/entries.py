"""Registered tensor environments; needs no TensorFlow.

To add one, add a module beside this one, and a line here.
"""

import functools
import importlib
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from repertory.environments.adapters import minatar_adapter
from repertory.environments.registry import name_options

if TYPE_CHECKING:
  from repertory.environments.tensor import factory


class TensorFamily(NamedTuple):
  """Name pattern of a tensor environment.

  Attributes:
    pattern: The name after 'tensor:'. The parts in angle brackets are arguments
      of the class: `id` is a string, the others are integers.
    description: One line.
    module: Module of the class, within this package.
    class_name: Name of the class.
    options: Options that may follow a question mark, further arguments of the
      class.
    extra: The extra to install, '' if none.
  """

  pattern: str
  description: str
  module: str
  class_name: str
  options: tuple[name_options.Option, ...] = ()
  extra: str = ''


_TEXT = 'id'

_MINATAR_CLASSES = {
  'asterix': 'Asterix',
  'breakout': 'Breakout',
  'freeway': 'Freeway',
  'seaquest': 'Seaquest',
  'space_invaders': 'SpaceInvaders',
}

ENTRIES = (
  TensorFamily(
    'catch', 'Catch a falling ball, in TensorFlow', 'catch', 'TensorCatch'
  ),
  TensorFamily(
    'catch:<rows>x<columns>',
    'The same on a board of another size, for example tensor:catch:12x7',
    'catch',
    'TensorCatch',
  ),
  TensorFamily(
    'memory_chain',
    'Remember a cue for 10 steps, in TensorFlow',
    'memory_chain',
    'TensorMemoryChain',
  ),
  TensorFamily(
    'memory_chain:<length>',
    'The same of another length, for example tensor:memory_chain:30',
    'memory_chain',
    'TensorMemoryChain',
  ),
  TensorFamily(
    'cartpole',
    "Gymnasium's CartPole-v1, in TensorFlow",
    'cartpole',
    'CartPole',
  ),
  TensorFamily(
    'pendulum',
    "Gymnasium's Pendulum-v1, in TensorFlow",
    'pendulum',
    'Pendulum',
  ),
  TensorFamily(
    'lock',
    'Set two dials as shown, with actions of several parts',
    'lock',
    'Lock',
    (
      name_options.Option(
        'key', False, 'Whether to turn a key by an angle as well'
      ),
    ),
  ),
  *(
    TensorFamily(
      f'minatar/{game}',
      f'The game of minatar:{game}, in TensorFlow',
      f'minatar.{game}',
      class_name,
      minatar_adapter.OPTIONS,
    )
    for game, class_name in _MINATAR_CLASSES.items()
  ),
  TensorFamily(
    f'gymnax/<{_TEXT}>',
    'A game of gymnax, for example tensor:gymnax/Breakout-MinAtar',
    'gymnax_adapter',
    'Gymnax',
    extra='gymnax',
  ),
)


def read_syntax(entry: TensorFamily) -> re.Pattern:
  """Returns the regular expression of the pattern of a name."""
  text = entry.pattern.replace(f'<{_TEXT}>', f'(?P<{_TEXT}>.+)')
  return re.compile(re.sub(r'(?<!P)<(\w+)>', r'(?P<\1>[0-9]+)', text))


def make_factory(
  entry: TensorFamily, match: Mapping[str, str], settings: Mapping[str, Any]
) -> 'factory.Factory':
  """Returns the factory of a name; imports TensorFlow.

  Args:
    entry: The name pattern.
    match: The parts of the name: digits, or a string.
    settings: A value for each of the entry's options.
  """
  package = __name__.rpartition('.')[0]
  module = importlib.import_module(f'{package}.{entry.module}')
  parts = {
    name: part if name == _TEXT else int(part) for name, part in match.items()
  }
  make = functools.partial(
    getattr(module, entry.class_name), **parts, **settings
  )
  return importlib.import_module(f'{package}.factory').Factory(make)
