"""The tensor environments that have a name; needs no TensorFlow.

A new one is a module beside this one, and a line here.
"""

import functools
import importlib
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from repertory.environments import minatar_adapter, name_options

if TYPE_CHECKING:
  from repertory.environments.tensor import factory


class Entry(NamedTuple):
  """One kind of name.

  Attributes:
    pattern: The name behind 'tensor:'. Parts in angle brackets are integers,
      which the class takes by these names.
    description: One line.
    module: Where in this package its class is.
    class_name: What makes one.
    options: What may follow a question mark; the class takes them, too.
  """

  pattern: str
  description: str
  module: str
  class_name: str
  options: tuple[name_options.Option, ...] = ()


_MINATAR_CLASSES = {
  'asterix': 'Asterix',
  'breakout': 'Breakout',
  'freeway': 'Freeway',
  'seaquest': 'Seaquest',
  'space_invaders': 'SpaceInvaders',
}

ENTRIES = (
  Entry('catch', 'Catch a falling ball, in TensorFlow', 'catch', 'Catch'),
  Entry(
    'catch:<rows>x<columns>',
    'The same on a board of another size, for example tensor:catch:12x7',
    'catch',
    'Catch',
  ),
  Entry(
    'memory_chain',
    'Remember a cue for 10 steps, in TensorFlow',
    'memory_chain',
    'MemoryChain',
  ),
  Entry(
    'memory_chain:<length>',
    'The same of another length, for example tensor:memory_chain:30',
    'memory_chain',
    'MemoryChain',
  ),
  Entry(
    'cartpole',
    "Gymnasium's CartPole-v1, in TensorFlow",
    'cartpole',
    'CartPole',
  ),
  Entry(
    'pendulum',
    "Gymnasium's Pendulum-v1, in TensorFlow",
    'pendulum',
    'Pendulum',
  ),
  *(
    Entry(
      f'minatar/{game}',
      f'The game of minatar:{game}, in TensorFlow',
      f'minatar.{game}',
      class_name,
      minatar_adapter.OPTIONS,
    )
    for game, class_name in _MINATAR_CLASSES.items()
  ),
)


def read_syntax(entry: Entry) -> re.Pattern:
  """Returns the pattern of the name as a regular expression."""
  return re.compile(re.sub(r'<(\w+)>', r'(?P<\1>[0-9]+)', entry.pattern))


def make_factory(
  entry: Entry, match: Mapping[str, str], settings: Mapping[str, Any]
) -> 'factory.Factory':
  """Returns what makes the environments of a name; imports TensorFlow.

  Args:
    entry: The kind of name.
    match: The parts of the name, as digits.
    settings: A value for each of the entry's options.
  """
  package = __name__.rpartition('.')[0]
  module = importlib.import_module(f'{package}.{entry.module}')
  numbers = {name: int(digits) for name, digits in match.items()}
  make = functools.partial(
    getattr(module, entry.class_name), **numbers, **settings
  )
  return importlib.import_module(f'{package}.factory').Factory(make)
