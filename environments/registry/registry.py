"""Registry of environments by name, for the command line and for nodes."""

import dataclasses
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import dm_env

from repertory.components.config import import_paths
from repertory.components.config import settings as settings_lib
from repertory.environments.batches import batch, vector_batch
from repertory.environments.registry import families
from repertory.environments.values.argument_checks import ArgumentError

if TYPE_CHECKING:
  from repertory.environments.tensor import environment as tensor_environment

# User-defined environments, listed beside the families.
_OWN = families.Family(
  '<module>:<factory>',
  'Your own environment, for example my_module:make_environment?size=5',
)


@dataclasses.dataclass(frozen=True)
class EnvironmentFactory:
  """Picklable factory of the environments of one name.

  A name is one of `names()`, possibly with options, or refers to your own code,
  such as 'my_module:make?size=5':

  - a function, a class of environments, or another callable. It is called with
    the options as keywords, and with the seed if it has an argument `seed`. It
    returns a `dm_env.Environment`, or a `gymnasium.Env`, which is seeded when
    it is first reset;
  - a factory: an object with `make_batch` or `make_tensor_environment`, such as
    a `tensor.Factory`, or a class of such, which is created with the options;
  - a subclass of `tensor.TensorEnvironment`, which is created with the options.

  Attributes:
    name: The name: 'atari:Pong?life_loss=true'. Checked at once, except that
      only making an environment shows whether a package knows an id. A module
      is imported at once; a name with the prefix of a family is never looked up
      in a module.
    renders: Whether rendering is enabled, see `with_rendering`.

  Raises:
    ArgumentError: If the name is unknown or cannot be imported, or if its
      numbers or options are not valid.
  """

  name: str
  renders: bool = False

  def __post_init__(self):
    self._find()

  def __call__(self, seed: int) -> dm_env.Environment:
    """Makes an environment of single precision.

    Args:
      seed: At least 0; environments with equal seeds behave identically.

    Raises:
      ImportError: If a package that the name needs is not installed.
      ArgumentError: If the name's parts or the seed are not valid.
    """
    return self._find().make(seed)

  def make_batch(self, seeds: Sequence[int]) -> vector_batch.VectorBatch:
    """Makes a batch, by the fastest implementation of the name.

    Batches with equal seeds, one per slot, behave identically.

    Raises:
      ImportError: If a package that the name needs is not installed.
      ArgumentError: If the name's parts or a seed are not valid.
    """
    if not len(seeds):
      raise ArgumentError('seeds', 'expected one for each slot, got none.')
    make = self._find().make_batch
    made = make(seeds) if self._is_plain and make is not None else None
    if made is not None:
      return made
    return batch.EnvironmentBatch([self(seed) for seed in seeds])

  def make_tensor_environment(self) -> 'tensor_environment.TensorEnvironment':
    """Makes a tensor environment: see `environments.tensor`.

    Raises:
      ImportError: If a package that the name needs is not installed.
      ArgumentError: If the name has no tensor environment, or if its parts are
        not valid.
    """
    make = self._find().make_tensor
    if not self._is_plain or make is None:
      guess = f'tensor:{self.name.replace(":", "/")}'
      hint = ''
      if self._is_plain and _find_family(guess) is not None:
        hint = f' Did you mean {guess!r}?'
      raise ArgumentError('name', _ask_for_tensors(repr(self.name), hint))
    return make()

  def with_rendering(self) -> 'EnvironmentFactory':
    """Returns a factory of the same environments with rendering enabled.

    They behave identically, but may be slower. Some families do not support
    rendering: see `rendering`. An argument `render_mode` of your own function
    is then 'rgb_array', unless the options set it; a factory of your own is
    passed to `rendering.enable`.
    """
    return dataclasses.replace(self, renders=True)

  def _find(self) -> families.Makers:
    bare = self.name.partition('?')[0]
    if _is_own(bare):
      # Most runs have no custom environment.
      from repertory.environments.registry import user_environments  # noqa: PLC0415

      return user_environments.find_makers(self.name, self.renders)
    found = _find_family(bare)
    if found is None:
      raise ArgumentError('name', _describe_unknown(self.name))
    family, match = found
    options = family.options()
    settings = {option.name: option.default for option in options}
    if self.renders and family.has_render_mode:
      settings['render_mode'] = 'rgb_array'
    if bare == self.name:
      return family.makers(match.groupdict(), settings)
    # Most names have no options.
    from repertory.environments.registry import wrapping  # noqa: PLC0415

    given, wrapped = wrapping.parse(self.name, options)
    makers = family.makers(match.groupdict(), {**settings, **given})
    return wrapping.wrap(makers, wrapped)

  @property
  def _is_plain(self) -> bool:
    """Whether this is not a subclass, which may wrap each environment."""
    return type(self).__call__ is EnvironmentFactory.__call__


def make_factory(name: str) -> EnvironmentFactory:
  """Returns the factory of the environments of a name."""
  return EnvironmentFactory(name)


def names_module(name: str) -> bool:
  """Returns whether making the environment imports a module in its name.

  Examples are 'my_module:make' and 'gym:my_module:MyEnvironment-v0'. All other
  names belong to this package, or are registered by installed ones.
  """
  bare = name.partition('?')[0]
  found = _find_family(bare)
  if found is None or _is_own(bare):
    return _is_own(bare)
  _, match = found
  return ':' in match.groupdict().get('id', '')


def _is_own(bare: str) -> bool:
  """Returns whether a name without options is the user's import path."""
  is_path = import_paths.SYNTAX.fullmatch(bare) is not None
  return is_path and bare.partition(':')[0] not in families.PREFIXES


def make(name: str, seed: int) -> dm_env.Environment:
  """Makes an environment by name: see `make_factory`."""
  return make_factory(name)(seed)


def make_batch(name: str, seeds: Sequence[int]) -> vector_batch.VectorBatch:
  """Makes a batch of environments by name, one seed per slot."""
  return EnvironmentFactory(name).make_batch(seeds)


def make_tensor_environment(
  factory: Any,
) -> 'tensor_environment.TensorEnvironment':
  """Makes the tensor environment of an experiment.

  Args:
    factory: The experiment's `environment_factory`: an `EnvironmentFactory`, a
      `tensor.Factory`, or any object with a `make_tensor_environment`.

  Raises:
    ArgumentError: If it has no tensor environments; lists those that exist.
  """
  make_environment = getattr(factory, 'make_tensor_environment', None)
  if make_environment is None:
    raise ArgumentError('environment_factory', _ask_for_tensors(repr(factory)))
  return make_environment()


def names() -> list[families.Family]:
  """Returns all name patterns, in display order."""
  return [*families.FAMILIES, _OWN]


def _ask_for_tensors(found: str, hint: str = '') -> str:
  patterns = [f.pattern for f in families.FAMILIES if f.prefix == 'tensor']
  return (
    'expected an environment that can be compiled with the agent, got '
    f'{found}.{hint} Use one of {", ".join(patterns)}, or a `tensor.Factory` '
    'of your own.'
  )


def _find_family(bare: str) -> tuple[families.Family, re.Match] | None:
  """Returns the family of a name without options, and its match."""
  for family in families.FAMILIES:
    match = family.syntax.fullmatch(bare)
    if match is not None:
      return family, match
  return None


def _describe_unknown(name: str) -> str:
  bare = name.partition('?')[0]
  prefix = bare.partition(':')[0]
  patterns = [family.pattern for family in names()]
  of_family = [one.pattern for one in families.FAMILIES if one.prefix == prefix]
  guess = _guess(bare)
  hint = f' Did you mean {guess!r}?' if guess not in ('', prefix) else ''
  known = '' if of_family else f' Known names: {", ".join(patterns)}.'
  return (
    f'expected {" or ".join(of_family) or "a known name"}, got {name!r}.'
    f'{hint}{known} `repertory environments` lists them.'
  )


def _guess(bare: str) -> str:
  """Guesses the intended name, without imports; '' if nothing is similar."""
  # Handles a path in place of a module, or a dot in place of the colon.
  own = re.sub(r'\.py(?=:)', '', bare.lstrip('./')).replace('/', '.')
  if ':' not in own:
    own = ':'.join(own.rsplit('.', 1))
  if own != bare and import_paths.SYNTAX.fullmatch(own):
    return own
  prefix, colon, rest = bare.partition(':')
  fixed = [one.pattern.partition('[')[0] for one in families.FAMILIES]
  guesses = [
    *([f'gym:{bare}'] if not colon and re.search('-v[0-9]+', bare) else []),
    f'tensor:{prefix}/{rest}',  # As `gymnax:<id>`.
    *(
      f'{near}{colon}{rest}'
      for near in settings_lib.nearest(prefix, families.PREFIXES)
    ),
    *settings_lib.nearest(bare, fixed),
  ]
  valid = (one for one in guesses if '<' not in one and _find_family(one))
  return next(valid, '')
