"""The baseline agents by name."""

import contextlib
import dataclasses
import types
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from repertory.agents import agent_config, d4pg, dqn, impala, ppo, r2d2, sac
from repertory.components import settings as settings_lib

if TYPE_CHECKING:
  from repertory.agents import builder
  from repertory.components import specs


@dataclasses.dataclass(frozen=True)
class Agent:
  """A baseline agent.

  Attributes:
    name: What `--agent` takes.
    description: One line.
    package: Has the config, the presets and the builder.
    config_class: Its settings, an `AgentConfig` with a default for each.
    presets: Settings for kinds of environments, by name.
  """

  name: str
  description: str
  package: types.ModuleType
  config_class: type
  presets: Mapping[str, Mapping[str, Any]]

  @property
  def builder_class(self) -> 'type[builder.Builder]':
    """Is made from an instance of the config; imports TensorFlow."""
    stem = self.config_class.__name__.removesuffix('Config')
    return getattr(self.package, f'{stem}Builder')


_AGENTS = (
  Agent(
    name='d4pg',
    description='Deterministic policy gradients with a distributional critic; '
    'continuous actions within bounds.',
    package=d4pg,
    config_class=d4pg.D4PGConfig,
    presets=d4pg.PRESETS,
  ),
  Agent(
    name='dqn',
    description='Double, dueling, n-step DQN with prioritized replay; '
    'discrete actions, observations of vectors and images.',
    package=dqn,
    config_class=dqn.DQNConfig,
    presets=dqn.PRESETS,
  ),
  Agent(
    name='impala',
    description='Actor-critic with V-trace, feed-forward or recurrent; '
    'discrete or continuous actions.',
    package=impala,
    config_class=impala.IMPALAConfig,
    presets=impala.PRESETS,
  ),
  Agent(
    name='ppo',
    description='Proximal policy optimization, feed-forward or recurrent; '
    'discrete or continuous actions.',
    package=ppo,
    config_class=ppo.PPOConfig,
    presets=ppo.PRESETS,
  ),
  Agent(
    name='r2d2',
    description='Recurrent, n-step double Q-learning over prioritized '
    'sequences with burn-in; discrete actions.',
    package=r2d2,
    config_class=r2d2.R2D2Config,
    presets=r2d2.PRESETS,
  ),
  Agent(
    name='sac',
    description='Soft actor-critic with a learned temperature; continuous '
    'actions within bounds.',
    package=sac,
    config_class=sac.SACConfig,
    presets=sac.PRESETS,
  ),
)


def agents() -> tuple[Agent, ...]:
  """Returns all baseline agents."""
  return _AGENTS


def get(name: str) -> Agent:
  """Returns the agent of that name.

  Raises:
    SettingError: If there is none, with the nearest name.
  """
  by_name = {agent.name: agent for agent in _AGENTS}
  if name not in by_name:
    hint = settings_lib.did_you_mean(name, by_name)
    raise settings_lib.SettingError(
      'agent', f"must be one of {', '.join(by_name)}; got '{name}'.{hint}"
    )
  return by_name[name]


def fitting(spec: 'specs.EnvironmentSpec') -> list[str]:
  """Returns the agents whose networks take an environment's specs."""
  found = []
  for agent in _AGENTS:
    with contextlib.suppress(ValueError):
      agent.builder_class(agent.config_class()).make_network(spec)
      found.append(agent.name)
  return found


def settings(name: str) -> list[settings_lib.Setting]:
  """Returns what is told of the settings of an agent."""
  return settings_lib.describe(get(name).config_class)


def make_config(
  name: str, settings: Mapping[str, Any], preset: str | None = None
) -> agent_config.AgentConfig:
  """Makes an agent's config.

  Args:
    name: Such as 'dqn'.
    settings: Values of its config by field, as Python values or as text.
    preset: Settings to begin with, such as 'atari'; None for the defaults.

  Raises:
    SettingError: If the agent, the preset or a field is unknown, or a value
      does not fit.
  """
  agent = get(name)
  if preset is not None:
    if preset not in agent.presets:
      known = ', '.join(sorted(agent.presets))
      what = f'be one of {known}' if known else 'be left out, for it has none'
      owners = [other.name for other in _AGENTS if preset in other.presets]
      hint = settings_lib.did_you_mean(preset, agent.presets)
      if owners:
        hint = f' There is one of that name for {", ".join(owners)}.'
      raise settings_lib.SettingError(
        'preset', f"of agent '{name}' must {what}; got '{preset}'.{hint}"
      )
    settings = {**agent.presets[preset], **settings}
  fields = {
    field.name: field for field in dataclasses.fields(agent.config_class)
  }
  values = {}
  for field, value in settings.items():
    if field not in fields:
      hint = settings_lib.did_you_mean(field, fields)
      raise settings_lib.SettingError(
        f'config.{field}',
        f"is no setting of agent '{name}'.{hint} `repertory agents {name}` "
        'lists them.',
      )
    values[field] = settings_lib.parse(
      f'config.{field}', value, fields[field].type
    )
  return agent.config_class(**values)


def make_builder(
  name: str, settings: Mapping[str, Any], preset: str | None = None
) -> 'builder.Builder':
  """Makes an agent's builder, from what `make_config` takes."""
  return get(name).builder_class(make_config(name, settings, preset))
