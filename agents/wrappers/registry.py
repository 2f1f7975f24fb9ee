"""What may wrap an agent, by name."""

import dataclasses
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from repertory.agents.wrappers import gail, rnd, sqil, wrap_config
from repertory.components import settings as settings_lib
from repertory.components.settings import SettingError

if TYPE_CHECKING:
  from repertory.agents import builder
  from repertory.agents.wrappers import wrapping_builder


@dataclasses.dataclass(frozen=True)
class Wrapper:
  """What gives an agent other rewards.

  Attributes:
    name: What `--wrap` takes.
    description: One line.
    config_class: Its settings, a `WrapConfig`; each has a default.
    find_builder: Returns the class of its builder, which is made from a builder
      and a config; imports TensorFlow.
  """

  name: str
  description: str
  config_class: type[wrap_config.WrapConfig]
  find_builder: 'Callable[[], type[wrapping_builder.WrappingBuilder]]'


_WRAPPERS = (
  Wrapper(
    name='gail',
    description='Imitates demonstrations, by a discriminator: GAIL and DAC; '
    'for agents that replay.',
    config_class=gail.GAILConfig,
    find_builder=lambda: gail.GAILBuilder,
  ),
  Wrapper(
    name='rnd',
    description='Explores, by random network distillation.',
    config_class=rnd.RNDConfig,
    find_builder=lambda: rnd.RNDBuilder,
  ),
  Wrapper(
    name='sqil',
    description='Imitates demonstrations, by constant rewards: SQIL; for '
    'agents that replay.',
    config_class=sqil.SQILConfig,
    find_builder=lambda: sqil.SQILBuilder,
  ),
)


def wrappers() -> tuple[Wrapper, ...]:
  """Returns all there are."""
  return _WRAPPERS


def get(name: str) -> Wrapper:
  """Returns the one of that name.

  Raises:
    SettingError: If there is none, with the nearest name.
  """
  by_name = {wrapper.name: wrapper for wrapper in _WRAPPERS}
  if name not in by_name:
    hint = settings_lib.did_you_mean(name, by_name)
    raise SettingError(
      wrap_config.WRAP,
      f"must be one of {', '.join(by_name)}, got '{name}'.{hint}",
    )
  return by_name[name]


class Wrapping(NamedTuple):
  """What is to wrap an agent, and how.

  Attributes:
    wrapper: Which.
    config: Its settings.
  """

  wrapper: Wrapper
  config: wrap_config.WrapConfig

  def wrap(self, wrapped: 'builder.Builder') -> 'builder.Builder':
    """Makes the builder around another one; imports TensorFlow."""
    make: Any = self.wrapper.find_builder()
    return make(wrapped, self.config)


def make_wrapping(
  name: str | None, settings: Mapping[str, Any]
) -> Wrapping | None:
  """Makes what is to wrap an agent.

  Args:
    name: Such as 'rnd'; None for nothing.
    settings: Values of its config by field, as Python values or as text.

  Raises:
    SettingError: If the name or a field is unknown, or a value does not fit.
      Settings are called `wrap.<name>` then.
  """
  if name is None:
    if settings:
      raise SettingError(
        wrap_config.WRAP,
        f'must say whose settings {", ".join(sorted(settings))} are; got none.',
      )
    return None
  wrapper = get(name)
  kinds = settings_lib.types_of(wrapper.config_class)
  values = {}
  for field, value in settings.items():
    full_name = f'{wrap_config.WRAP}.{field}'
    if field not in kinds:
      raise SettingError(
        full_name,
        f"is no setting of '{name}'.{settings_lib.did_you_mean(field, kinds)} "
        f'`repertory wrappers {name}` lists them.',
      )
    values[field] = settings_lib.parse(full_name, value, kinds[field])
  try:
    return Wrapping(wrapper, wrapper.config_class(**values))
  except SettingError as error:
    raise SettingError(
      f'{wrap_config.WRAP}.{error.setting}', error.problem
    ) from error
