"""Registry of reward models."""

import dataclasses
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from repertory.agents.reward_models import gail, rnd, sqil, wrap_config
from repertory.components.config import settings as settings_lib
from repertory.components.config.settings import SettingError

if TYPE_CHECKING:
  from repertory.agents.interface import builder
  from repertory.agents.reward_models import wrapping_builder


@dataclasses.dataclass(frozen=True)
class Wrapper:
  """Metadata of a reward model.

  Attributes:
    name: Value of `--wrap`.
    description: One-line summary.
    config_class: Subclass of `WrapConfig`, with a default for each setting.
    find_builder: Returns the class of its builder, with a builder and a config
      as arguments; imports TensorFlow.
  """

  name: str
  description: str
  config_class: type[wrap_config.WrapConfig]
  find_builder: 'Callable[[], type[wrapping_builder.WrappingBuilder]]'


_WRAPPERS = (
  Wrapper(
    name='gail',
    description='Imitation learning by a discriminator: GAIL and DAC; for '
    'agents with replay.',
    config_class=gail.GAILConfig,
    find_builder=lambda: gail.GAILBuilder,
  ),
  Wrapper(
    name='rnd',
    description='Exploration by random network distillation.',
    config_class=rnd.RNDConfig,
    find_builder=lambda: rnd.RNDBuilder,
  ),
  Wrapper(
    name='sqil',
    description='Imitation learning by constant rewards: SQIL; for agents with '
    'replay.',
    config_class=sqil.SQILConfig,
    find_builder=lambda: sqil.SQILBuilder,
  ),
)


def wrappers() -> tuple[Wrapper, ...]:
  """Returns all reward models."""
  return _WRAPPERS


def get(name: str) -> Wrapper:
  """Returns a reward model by name.

  Raises:
    SettingError: If the name is unknown, with a suggestion.
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
  """Reward model with its settings.

  Attributes:
    wrapper: The reward model.
    config: Config of the reward model.
  """

  wrapper: Wrapper
  config: wrap_config.WrapConfig

  def wrap(self, wrapped: 'builder.Builder') -> 'builder.Builder':
    """Wraps an agent's builder; imports TensorFlow."""
    make: Any = self.wrapper.find_builder()
    return make(wrapped, self.config)


def make_wrapping(
  name: str | None, settings: Mapping[str, Any]
) -> Wrapping | None:
  """Creates a reward model with its settings.

  Args:
    name: Name such as 'rnd'; None for no reward model.
    settings: Values by config field, as Python values or as text.

  Raises:
    SettingError: If the name or a field is unknown, or a value is invalid. Its
      settings are called `wrap.<name>`.
  """
  if name is None:
    if settings:
      raise SettingError(
        wrap_config.WRAP,
        f'must be given with its settings {", ".join(sorted(settings))}, got '
        'None.',
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
