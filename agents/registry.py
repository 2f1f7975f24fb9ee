"""The baseline agents by name."""

import contextlib
import dataclasses
import decimal
import difflib
import inspect
import re
import typing
from collections.abc import Mapping
from typing import Any

from repertory.agents import builder, d4pg, dqn, impala, ppo, r2d2, sac
from repertory.components import specs


@dataclasses.dataclass(frozen=True)
class Agent:
  """A baseline agent.

  Attributes:
    name: What `--agent` takes.
    description: One line.
    config_class: Its settings, a frozen dataclass.
    builder_class: Made from an instance of them.
    presets: Settings for kinds of environments, by name.
  """

  name: str
  description: str
  config_class: type
  builder_class: type[builder.Builder]
  presets: Mapping[str, Mapping[str, Any]]


_AGENTS = (
  Agent(
    name='d4pg',
    description='Deterministic policy gradients with a distributional critic; '
    'continuous actions within bounds.',
    config_class=d4pg.D4PGConfig,
    builder_class=d4pg.D4PGBuilder,
    presets=d4pg.PRESETS,
  ),
  Agent(
    name='dqn',
    description='Double, dueling, n-step DQN with prioritized replay; '
    'discrete actions, observations of vectors and images.',
    config_class=dqn.DQNConfig,
    builder_class=dqn.DQNBuilder,
    presets=dqn.PRESETS,
  ),
  Agent(
    name='impala',
    description='Actor-critic with V-trace, feed-forward or recurrent; '
    'discrete or continuous actions.',
    config_class=impala.IMPALAConfig,
    builder_class=impala.IMPALABuilder,
    presets=impala.PRESETS,
  ),
  Agent(
    name='ppo',
    description='Proximal policy optimization, feed-forward or recurrent; '
    'discrete or continuous actions.',
    config_class=ppo.PPOConfig,
    builder_class=ppo.PPOBuilder,
    presets=ppo.PRESETS,
  ),
  Agent(
    name='r2d2',
    description='Recurrent, n-step double Q-learning over prioritized '
    'sequences with burn-in; discrete actions.',
    config_class=r2d2.R2D2Config,
    builder_class=r2d2.R2D2Builder,
    presets=r2d2.PRESETS,
  ),
  Agent(
    name='sac',
    description='Soft actor-critic with a learned temperature; continuous '
    'actions within bounds.',
    config_class=sac.SACConfig,
    builder_class=sac.SACBuilder,
    presets=sac.PRESETS,
  ),
)


def agents() -> tuple[Agent, ...]:
  """Returns all baseline agents."""
  return _AGENTS


def get(name: str) -> Agent:
  """Returns the agent of that name.

  Raises:
    ValueError: If there is none, with the nearest name.
  """
  by_name = {agent.name: agent for agent in _AGENTS}
  if name not in by_name:
    raise ValueError(
      f"agent must be one of {', '.join(by_name)}; got '{name}'."
      + did_you_mean(name, by_name)
    )
  return by_name[name]


def fitting(spec: specs.EnvironmentSpec) -> list[str]:
  """Returns the agents whose networks take an environment's specs."""
  found = []
  for agent in _AGENTS:
    with contextlib.suppress(ValueError):
      agent.builder_class(agent.config_class()).make_network(spec)
      found.append(agent.name)
  return found


@dataclasses.dataclass(frozen=True)
class Setting:
  """A field of an agent's config: name, type, default, and its comment."""

  name: str
  type: str
  default: Any
  description: str


def settings(name: str) -> list[Setting]:
  """Returns the settings of an agent, read off its config's source."""
  config_class = get(name).config_class
  source = inspect.getsource(config_class)
  found = []
  for field in dataclasses.fields(config_class):
    comment = re.search(
      rf'((?:^ *#.*\n)+) *{field.name}:', source, re.MULTILINE
    )
    lines = comment[1].splitlines() if comment else []
    text = ' '.join(line.strip(' #') for line in lines)
    found.append(
      Setting(field.name, _type_name(field.type), field.default, text)
    )
  return found


def make_builder(
  name: str, settings: Mapping[str, Any], preset: str | None = None
) -> builder.Builder:
  """Makes an agent's builder.

  Args:
    name: Of the agent.
    settings: Values of its config by field, as Python values or as text.
    preset: Settings to begin with, such as 'atari'; None for the defaults.

  Raises:
    ValueError: If the agent, the preset or a field is unknown, or a value does
      not fit.
  """
  agent = get(name)
  if preset is not None:
    if preset not in agent.presets:
      known = ', '.join(sorted(agent.presets))
      what = f'be one of {known}' if known else 'be left out, for it has none'
      raise ValueError(
        f"preset of agent '{name}' must {what}; got '{preset}'."
        + did_you_mean(preset, agent.presets)
      )
    settings = {**agent.presets[preset], **settings}
  fields = {
    field.name: field for field in dataclasses.fields(agent.config_class)
  }
  values = {}
  for field, value in settings.items():
    if field not in fields:
      raise ValueError(
        f"config.{field} is no setting of agent '{name}'."
        + did_you_mean(field, fields)
        + f' `repertory agents {name}` lists them.'
      )
    values[field] = parse(f'config.{field}', value, fields[field].type)
  return agent.builder_class(agent.config_class(**values))


def parse(name: str, value: Any, annotation: Any) -> Any:
  """Turns text, or what JSON made of a value, into a config field's type.

  Args:
    name: Of the setting, for the error.
    value: Text from the command line, or a plain value.
    annotation: The field's type: int, float, bool, str, a tuple of one of
      these, or one of these or None.

  Raises:
    ValueError: If the value does not fit.
  """
  text = str(annotation)
  if value is None or value == 'None':
    if type(None) in typing.get_args(annotation):
      return None
  elif 'tuple' in text:
    items = value.strip('()[]').split(',') if isinstance(value, str) else value
    if isinstance(items, (list, tuple)):
      item_type = annotation.__args__[0]
      with contextlib.suppress(ValueError):  # Told of the whole, below.
        return tuple(
          parse(name, item, item_type) for item in items if item != ''
        )
  elif 'bool' in text:
    if str(value).lower() in ('true', 'false'):
      return str(value).lower() == 'true'
  else:
    scalar = next(t for t in (int, float, str) if t.__name__ in text)
    try:
      is_wrong_number = isinstance(value, bool) or (
        scalar is int and isinstance(value, float)
      )
      if not is_wrong_number:
        return scalar(value)
    except (TypeError, ValueError):
      pass
  hint = write_whole(value) if 'int' in text else ''
  raise ValueError(
    f'{name} must be of type {_type_name(annotation)}, got {value!r}.{hint}'
  )


def _type_name(annotation: Any) -> str:
  # A `tuple[int, ...]` is a type too, whose name is 'tuple'.
  is_plain = not typing.get_args(annotation)
  return annotation.__name__ if is_plain else str(annotation)


def write_whole(value: Any) -> str:
  """Returns ' Write 10000.' for '1e4', or nothing if it is no integer."""
  try:
    number = decimal.Decimal(value)
    is_whole = number.adjusted() < 20 and number == int(number)
  except (ArithmeticError, TypeError, ValueError):
    return ''
  return f' Write {int(number)}.' if is_whole else ''


def did_you_mean(name: str, known) -> str:
  """Returns ' Did you mean ...?' with the nearest known name, or nothing."""
  near = difflib.get_close_matches(name, list(known), n=1, cutoff=0.5)
  return f" Did you mean '{near[0]}'?" if near else ''
