"""Agents by name: the baseline agents, and the user's own."""

import contextlib
import dataclasses
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from repertory.agents import (
  agent_config,
  bc,
  crr,
  d4pg,
  dqn,
  impala,
  iql,
  mpo,
  own_agents,
  ppo,
  pqn,
  qtopt,
  r2d2,
  sac,
  td3,
)
from repertory.components import named_objects
from repertory.components import settings as settings_lib

if TYPE_CHECKING:
  from repertory.agents import builder
  from repertory.components import specs


@dataclasses.dataclass(frozen=True)
class Agent:
  """A baseline agent, or one of the user's own.

  Attributes:
    name: What `--agent` takes.
    description: One line.
    config_class: Its settings, an `AgentConfig`; of a baseline agent each has a
      default.
    presets: Settings for kinds of environments, by name.
    find_builder: Returns the class of its builder; imports TensorFlow.
  """

  name: str
  description: str
  config_class: type
  presets: Mapping[str, Mapping[str, Any]]
  find_builder: 'Callable[[], type[builder.Builder]]'

  @property
  def builder_class(self) -> 'type[builder.Builder]':
    """Is made from an instance of the config; imports TensorFlow."""
    return self.find_builder()


# The pattern of the names of own ones.
OWN = '<module>:<Builder>'

_AGENTS = (
  Agent(
    name='bc',
    description='Behavior cloning, from data alone; discrete actions, or '
    'continuous ones within bounds.',
    config_class=bc.BCConfig,
    presets=bc.PRESETS,
    find_builder=lambda: bc.BCBuilder,
  ),
  Agent(
    name='crr',
    description='Critic-regularized regression, made for data; continuous '
    'actions within bounds.',
    config_class=crr.CRRConfig,
    presets=crr.PRESETS,
    find_builder=lambda: crr.CRRBuilder,
  ),
  Agent(
    name='d4pg',
    description='Deterministic policy gradients with a distributional critic; '
    'continuous actions within bounds.',
    config_class=d4pg.D4PGConfig,
    presets=d4pg.PRESETS,
    find_builder=lambda: d4pg.D4PGBuilder,
  ),
  Agent(
    name='dqn',
    description='Double, dueling, n-step DQN with prioritized replay; '
    'discrete actions, observations of vectors and images.',
    config_class=dqn.DQNConfig,
    presets=dqn.PRESETS,
    find_builder=lambda: dqn.DQNBuilder,
  ),
  Agent(
    name='impala',
    description='Actor-critic with V-trace, feed-forward or recurrent; '
    'discrete or continuous actions.',
    config_class=impala.IMPALAConfig,
    presets=impala.PRESETS,
    find_builder=lambda: impala.IMPALABuilder,
  ),
  Agent(
    name='iql',
    description='Implicit Q-learning, made for data; continuous actions '
    'within bounds.',
    config_class=iql.IQLConfig,
    presets=iql.PRESETS,
    find_builder=lambda: iql.IQLBuilder,
  ),
  Agent(
    name='mpo',
    description='Maximum a posteriori policy optimization, and DMPO as an '
    'option; continuous actions within bounds, or discrete ones.',
    config_class=mpo.MPOConfig,
    presets=mpo.PRESETS,
    find_builder=lambda: mpo.MPOBuilder,
  ),
  Agent(
    name='ppo',
    description='Proximal policy optimization, feed-forward or recurrent; '
    'discrete or continuous actions.',
    config_class=ppo.PPOConfig,
    presets=ppo.PRESETS,
    find_builder=lambda: ppo.PPOBuilder,
  ),
  Agent(
    name='pqn',
    description='Q-learning in parallel environments with normalized layers, '
    'without replay, feed-forward or recurrent; discrete actions.',
    config_class=pqn.PQNConfig,
    presets=pqn.PRESETS,
    find_builder=lambda: pqn.PQNBuilder,
  ),
  Agent(
    name='qtopt',
    description='Q-learning of actions that are found by trying some (QT-Opt); '
    'continuous actions within bounds.',
    config_class=qtopt.QTOptConfig,
    presets=qtopt.PRESETS,
    find_builder=lambda: qtopt.QTOptBuilder,
  ),
  Agent(
    name='r2d2',
    description='Recurrent, n-step double Q-learning over prioritized '
    'sequences with burn-in; discrete actions.',
    config_class=r2d2.R2D2Config,
    presets=r2d2.PRESETS,
    find_builder=lambda: r2d2.R2D2Builder,
  ),
  Agent(
    name='sac',
    description='Soft actor-critic with a learned temperature; continuous '
    'actions within bounds, or discrete ones.',
    config_class=sac.SACConfig,
    presets=sac.PRESETS,
    find_builder=lambda: sac.SACBuilder,
  ),
  Agent(
    name='td3',
    description='Twin delayed deterministic policy gradients, and DDPG as a '
    'preset; continuous actions within bounds.',
    config_class=td3.TD3Config,
    presets=td3.PRESETS,
    find_builder=lambda: td3.TD3Builder,
  ),
)


def agents() -> tuple[Agent, ...]:
  """Returns all baseline agents."""
  return _AGENTS


def get(name: str) -> Agent:
  """Returns the agent of that name.

  Args:
    name: A baseline agent's, or 'package.module:Builder', whose module is
      imported then.

  Raises:
    SettingError: If there is none, with the nearest name; or if what there is
      in the module is no builder whose settings are known.
  """
  by_name = {agent.name: agent for agent in _AGENTS}
  if name in by_name:
    return by_name[name]
  if named_objects.SYNTAX.fullmatch(name) is None:
    hint = settings_lib.did_you_mean(name, by_name)
    raise settings_lib.SettingError(
      'agent',
      f'must be one of {", ".join(by_name)}, or {OWN} of your own; got '
      f"'{name}'.{hint}",
    )
  own = own_agents.find(name)
  return Agent(
    name,
    own_agents.describe(own.builder_class),
    own.config_class,
    own.presets,
    lambda: own.builder_class,
  )


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
    settings = {**_get_preset(agent, preset), **settings}
  kinds = settings_lib.types_of(agent.config_class)
  defaults = {
    setting.name: setting.default
    for setting in settings_lib.describe(agent.config_class)
  }
  values = {}
  for field, value in settings.items():
    if field not in defaults:
      hint = settings_lib.did_you_mean(field, defaults)
      raise settings_lib.SettingError(
        f'config.{field}',
        f"is no setting of agent '{name}'.{hint} `repertory agents {name}` "
        'lists them.',
      )
    values[field] = settings_lib.parse(f'config.{field}', value, kinds[field])
  for field, default in defaults.items():
    if default is dataclasses.MISSING and field not in values:
      raise settings_lib.SettingError(
        f'config.{field}',
        f"must be given: agent '{name}' has no default for it.",
      )
  return agent.config_class(**values)


def _get_preset(agent: Agent, preset: str) -> Mapping[str, Any]:
  """Returns the settings of a preset.

  Raises:
    SettingError: If the agent has none of that name.
  """
  if preset in agent.presets:
    return agent.presets[preset]
  known = ', '.join(sorted(agent.presets))
  what = f'be one of {known}' if known else 'be left out, for it has none'
  owners = [other.name for other in _AGENTS if preset in other.presets]
  hint = settings_lib.did_you_mean(preset, agent.presets)
  if owners:
    hint = f' There is one of that name for {", ".join(owners)}.'
  raise settings_lib.SettingError(
    'preset', f"of agent '{agent.name}' must {what}; got '{preset}'.{hint}"
  )


def make_builder(
  name: str, settings: Mapping[str, Any], preset: str | None = None
) -> 'builder.Builder':
  """Makes an agent's builder, from what `make_config` takes."""
  return get(name).builder_class(make_config(name, settings, preset))
