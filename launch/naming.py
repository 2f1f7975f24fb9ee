"""Experiments whose agent and environment have names."""

import dataclasses
import os
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, cast

from repertory.agents import registry as agents_registry
from repertory.agents.wrappers import registry as wrappers_registry
from repertory.agents.wrappers import wrap_config as wrap_config_lib
from repertory.components import named_objects
from repertory.components import settings as settings_lib
from repertory.environments import argument_checks
from repertory.environments import registry as environments_registry
from repertory.launch import experiment as experiment_lib

if TYPE_CHECKING:
  from repertory.agents import agent_config as agent_config_lib

_WRAP = f'{wrap_config_lib.WRAP}.'

# Types and defaults of entries of an experiment's identity.
_TYPES = {
  'agent': (str, None),
  'environment': (str, None),
  'seed': (int, None),
  'num_environments': (int, None),
  'demonstration_fraction': (int | float, 0.0),
  wrap_config_lib.WRAP: (str | None, None),
}


class Plan(NamedTuple):
  """What an experiment is made of.

  Attributes:
    experiment: With None for its builder.
    config: The agent's settings.
    wrapping: What wraps the agent, if anything.
  """

  experiment: experiment_lib.Experiment
  config: 'agent_config_lib.AgentConfig'
  wrapping: wrappers_registry.Wrapping | None


def make_experiment(
  agent: str,
  environment: str,
  *,
  max_steps: int,
  config: dict[str, Any] | None = None,
  preset: str | None = None,
  directory: str | None = None,
  seed: int = 0,
  **settings,
) -> experiment_lib.Experiment:
  """Makes an experiment of an agent and an environment that have names.

  Args:
    agent: Such as 'dqn', or 'my_module:MyBuilder' for one of your own.
    environment: Such as 'catch' or 'gym:CartPole-v1', or
      'my_module:make_environment' for one of your own.
    max_steps: Environment steps at which it ends.
    config: Settings of the agent that differ from its defaults.
    preset: Such as 'atari': other defaults of the agent's settings, for a
      kind of environments.
    directory: Where logs and checkpoints go; None for a place under `runs/`,
      by agent, environment and seed.
    seed: Seeds all random numbers.
    **settings: Other fields of `Experiment`; and `wrap`, the name of what gives
      the agent other rewards, such as 'rnd', with `wrap_config`, its settings
      that differ from its defaults.

  Raises:
    SettingError: Naming what of the agent or of the experiment is unknown or
      does not fit.
    ArgumentError: If there is no such environment.
  """
  unbuilt, agent_config, wrapping = plan_experiment(
    agent,
    environment,
    max_steps=max_steps,
    config=config,
    preset=preset,
    directory=directory or default_directory(agent, environment, seed),
    seed=seed,
    **settings,
  )
  builder = agents_registry.get(agent).builder_class(agent_config)
  if wrapping is not None:
    builder = wrapping.wrap(builder)
  return dataclasses.replace(unbuilt, builder=builder)


def plan_experiment(
  agent: str,
  environment: str,
  *,
  config: dict[str, Any] | None = None,
  preset: str | None = None,
  wrap: str | None = None,
  wrap_config: dict[str, Any] | None = None,
  **settings,
) -> Plan:
  """Checks all that can be checked without TensorFlow, and imports none.

  Takes and raises what `make_experiment` does.
  """
  agent_config = agents_registry.make_config(agent, config or {}, preset)
  wrapping = wrappers_registry.make_wrapping(wrap, wrap_config or {})
  experiment = experiment_lib.Experiment(
    builder=cast(Any, None),
    environment_factory=environments_registry.make_factory(environment),
    agent=agent,
    environment=environment,
    **settings,
  )
  return Plan(experiment, agent_config, wrapping)


def from_identity(
  identity: Any,
  directory: str,
  *,
  trust: bool = False,
  agent: str | None = None,
  environment: str | None = None,
) -> experiment_lib.Experiment:
  """Makes the experiment that a checkpoint is of, if its parts have names.

  Importing a module runs its code, and a checkpoint may come from anyone: names
  of modules in it are used only if the caller trusts it or names them, too.

  Args:
    identity: What `Experiment.identity` returned, as the checkpoint has it.
    directory: Where that is.
    trust: Whether to import the modules that it names.
    agent: The agent's name, if the caller gives it: its module is imported.
    environment: The environment's name, likewise.

  Raises:
    SettingError: If it names a module that is not trusted, or the caller gives
      another name.
    ValueError: If agent or environment are not in the registries, nor in
      modules that can be imported.
  """
  _check_types(identity, directory)
  _check_trusted(identity, directory, trust, agent, environment)
  known = [agent.name for agent in agents_registry.agents()]
  name = identity['agent']
  if name not in known and named_objects.SYNTAX.fullmatch(name) is None:
    raise ValueError(
      f"The checkpoint in {directory} is of '{name}', which is none of the "
      f'baseline agents {known}, nor {agents_registry.OWN} of a module. '
      'From Python, give the experiment in place of the directory.'
    )
  try:
    return make_experiment(
      name,
      identity['environment'],
      max_steps=1,
      config=_changed_settings(identity),
      wrap=identity.get(wrap_config_lib.WRAP),
      wrap_config=_settings_after(_WRAP, identity),
      directory=directory,
      seed=identity['seed'],
      environments_per_actor=identity['num_environments'],
      demonstration_fraction=identity.get('demonstration_fraction', 0.0),
    )
  except ValueError as error:
    missing = error.__cause__
    if not isinstance(missing, named_objects.NoModuleError):
      _reraise(error, identity, directory)
    folder = named_objects.folder_above(directory, missing.module)
    where = f'{folder}, where it is' if folder else 'the folder where it is'
    raise ValueError(
      f"The checkpoint in {directory} is of '{name}' on "
      f"'{identity['environment']}', but {missing} Run this in {where}, or "
      'install the package that has it.'
    ) from error


def _reraise(
  error: ValueError, identity: Mapping[str, Any], directory: str
) -> NoReturn:
  """Raises errors of names, arguments and settings anew, with the checkpoint.

  Raises:
    ValueError: In every case.
  """
  kinds = (argument_checks.ArgumentError, settings_lib.SettingError)
  if not isinstance(error, kinds):
    raise error
  is_name = getattr(error, 'argument', None) == 'name'
  raise ValueError(
    f"The checkpoint in {directory} is of '{identity['agent']}' on "
    f"'{identity['environment']}', which this version cannot make: "
    f'{error.problem if is_name else error}'
  ) from error


def _check_types(identity: Any, directory: str) -> None:
  """Refuses values that `Experiment.identity` cannot have returned.

  Raises:
    ValueError: Naming the entry.
  """
  if not isinstance(identity, Mapping):
    raise ValueError(
      f'The checkpoint in {directory} must have names and settings of its '
      f'experiment, got {identity!r}. Take another.'
    )
  for name, (kind, default) in _TYPES.items():
    value = identity.get(name, default)
    if not isinstance(value, kind):
      raise ValueError(
        f'The checkpoint in {directory} must have {name!r} of type '
        f'{getattr(kind, "__name__", kind)}, got {value!r}. Take another.'
      )


def _check_trusted(
  identity: Mapping[str, Any],
  directory: str,
  trust: bool,
  agent: str | None,
  environment: str | None,
) -> None:
  """Refuses names of modules that only the checkpoint gives.

  Raises:
    SettingError: Also if the caller gives another name than the checkpoint.
  """
  named = []
  for setting, key, given, names_module in (
    ('agent', 'agent', agent, named_objects.SYNTAX.fullmatch),
    ('env', 'environment', environment, environments_registry.names_module),
  ):
    found = identity[key]
    if given not in (None, found):
      raise settings_lib.SettingError(
        setting,
        f'must be that of the checkpoint in {directory}, {found!r}, or left '
        f'out; got {given!r}.',
      )
    if given is None and names_module(found):
      named.append(f'the {key} {found!r}')
  if named and not trust:
    raise settings_lib.SettingError(
      'trust',
      f'must be given to read {directory}, which has {" and ".join(named)}; '
      'got nothing. Importing a module runs its code. Alternatively, give the '
      'same names by --agent and --env, or from Python the experiment in place '
      'of the directory.',
    )


def _changed_settings(identity: Mapping[str, Any]) -> dict[str, Any]:
  """Returns what a checkpoint has of an agent's config beside the defaults.

  So settings of types that JSON does not have may be what they are by default.
  """
  agent = agents_registry.get(identity['agent'])
  prefix = experiment_lib.CONFIG
  found = _settings_after(prefix, identity)
  required = {
    setting.name: found.get(setting.name)
    for setting in settings_lib.describe(agent.config_class)
    if setting.default is dataclasses.MISSING
  }
  default = experiment_lib.plain_config(
    agents_registry.make_config(agent.name, required)
  )
  fields = dataclasses.fields(agent.config_class)
  derived = {field.name for field in fields if not field.init}
  return required | {
    name: value
    for name, value in found.items()
    if value != default.get(prefix + name) and name not in derived
  }


def _settings_after(prefix: str, identity: Mapping[str, Any]) -> dict[str, Any]:
  """Returns the settings whose names begin so, without that."""
  return {
    name.removeprefix(prefix): value
    for name, value in identity.items()
    if name.startswith(prefix)
  }


def default_directory(agent: str, environment: str, seed: int) -> str:
  """Returns runs/<agent>/<environment>/seed_<seed>."""
  folders = [re.sub('[^A-Za-z0-9_.]', '-', one) for one in (agent, environment)]
  return os.path.join('runs', *folders, f'seed_{seed}')
