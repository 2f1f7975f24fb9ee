"""Experiments from registered names of agents and environments."""

import dataclasses
import os
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from repertory.agents.interface import registry as agents_registry
from repertory.agents.reward_models import registry as reward_models
from repertory.agents.reward_models import reward_model_config as names
from repertory.components.config import import_paths
from repertory.components.config import settings as settings_lib
from repertory.environments.registry import registry as environments_registry
from repertory.environments.values import argument_checks
from repertory.launch.experiments import experiment as experiment_lib

if TYPE_CHECKING:
  from repertory.agents.interface import agent_config as agent_config_lib

# Types and defaults of entries of an experiment's identity.
_TYPES = {
  'agent': (str, None),
  'environment': (str, None),
  'seed': (int, None),
  'num_environments': (int, None),
  'demonstration_fraction': (int | float, 0.0),
  names.REWARD_MODEL: (str | None, None),
}


class ExperimentPlan(NamedTuple):
  """An experiment with None as its builder, and the latter's settings."""

  experiment: experiment_lib.Experiment
  config: 'agent_config_lib.AgentConfig'
  reward_model_config: names.RewardModelConfig | None


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
  """Makes an experiment from the names of an agent and an environment.

  Args:
    agent: Name such as 'dqn', or 'my_module:MyBuilder' for a user's own.
    environment: Name such as 'catch' or 'gym:CartPole-v1', or
      'my_module:make_environment' for a user's own.
    max_steps: Total environment steps of the run.
    config: The agent's settings that differ from its defaults.
    preset: Name of alternative defaults of the agent's settings for a class of
      environments, such as 'atari'.
    directory: Folder of logs and checkpoints; None for `default_directory`.
    seed: Seed of all random number generators.
    **settings: Other fields of `Experiment`; and `reward_model`, its name such
      as 'rnd', with `reward_model_config`, its settings that differ from its
      defaults. `wrap` and `wrap_config` are earlier names of these.

  Raises:
    SettingError: If a setting of the agent or experiment is unknown or invalid.
    ArgumentError: If the environment is unknown.
  """
  settings = names.with_present_names(settings)
  unbuilt, agent_config, reward_model_config = plan_experiment(
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
  if reward_model_config is not None:
    model = reward_models.get(settings['reward_model'])
    builder = model.builder_class(builder, reward_model_config)
  return dataclasses.replace(unbuilt, builder=builder)


def plan_experiment(
  agent: str,
  environment: str,
  *,
  config: dict[str, Any] | None = None,
  preset: str | None = None,
  reward_model: str | None = None,
  reward_model_config: dict[str, Any] | None = None,
  **settings,
) -> ExperimentPlan:
  """Makes and checks an experiment except for its builder, without TensorFlow.

  Arguments and errors are those of `make_experiment`.
  """
  agent_config = agents_registry.make_config(agent, config or {}, preset)
  chosen = reward_models.make_config(reward_model, reward_model_config or {})
  experiment = experiment_lib.Experiment(
    builder=cast(Any, None),
    environment_factory=environments_registry.make_factory(environment),
    agent=agent,
    environment=environment,
    **settings,
  )
  return ExperimentPlan(experiment, agent_config, chosen)


def from_identity(
  identity: Any,
  directory: str,
  *,
  trust: bool = False,
  agent: str | None = None,
  environment: str | None = None,
) -> experiment_lib.Experiment:
  """Makes the experiment of a checkpoint from its registered names.

  Importing a module runs its code, and a checkpoint may be of unknown origin.
  So modules named in it are imported only if the caller trusts it or passes the
  same names.

  Args:
    identity: Result of `Experiment.identity`, as saved in the checkpoint.
    directory: Directory of the run.
    trust: Whether to import modules named in the checkpoint.
    agent: The agent's name as given by the caller; its module is trusted.
    environment: The environment's name, likewise.
  """
  identity = _check_types(identity, directory)
  _check_trusted(identity, directory, trust, agent, environment)
  known = [agent.name for agent in agents_registry.agents()]
  name = identity['agent']
  if name not in known and import_paths.SYNTAX.fullmatch(name) is None:
    raise ValueError(
      f'The checkpoint in {directory} must be of a baseline agent, {known}, '
      f"or {agents_registry.OWN} of a module, got '{name}'. "
      'In Python, pass the experiment instead of the directory.'
    )
  try:
    return make_experiment(
      name,
      identity['environment'],
      max_steps=1,
      config=_changed_settings(identity),
      reward_model=identity.get(names.REWARD_MODEL),
      reward_model_config=_settings_after(names.PREFIX, identity),
      directory=directory,
      seed=identity['seed'],
      environments_per_actor=identity['num_environments'],
      demonstration_fraction=identity.get('demonstration_fraction', 0.0),
    )
  except ValueError as error:
    problem = _explain(error, directory)
    if not problem:
      raise
    raise ValueError(
      f"The checkpoint in {directory} is of '{name}' on "
      f"'{identity['environment']}', {problem}"
    ) from error


def _explain(error: ValueError, directory: str) -> str:
  """Explains errors of names, arguments and settings; '' for others."""
  missing = error.__cause__
  if isinstance(missing, import_paths.NoModuleError):
    return f'but {missing} Run this in its folder, or install its package.'
  kinds = (argument_checks.ArgumentError, settings_lib.SettingError)
  if not isinstance(error, kinds):
    return ''
  is_name = getattr(error, 'argument', None) == 'name'
  why = error.problem if is_name else error
  return f'which this version cannot make: {why}'


def _check_types(identity: Any, directory: str) -> dict[str, Any]:
  """Checks entries of an identity; returns it with present names."""
  if not isinstance(identity, Mapping):
    raise ValueError(
      f'The checkpoint in {directory} must have names and settings of its '
      f'experiment, got {identity!r}. Take another.'
    )
  identity = names.with_present_names(identity)
  for name, (kind, default) in _TYPES.items():
    value = identity.get(name, default)
    if not isinstance(value, kind):
      raise ValueError(
        f'The checkpoint in {directory} must have {name!r} of type '
        f'{getattr(kind, "__name__", kind)}, got {value!r}. Take another.'
      )
  return identity


def _check_trusted(
  identity: Mapping[str, Any],
  directory: str,
  trust: bool,
  agent: str | None,
  environment: str | None,
) -> None:
  """Checks that no untrusted module would be imported, nor another one."""
  named = []
  for setting, key, given, names_module in (
    ('agent', 'agent', agent, import_paths.SYNTAX.fullmatch),
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
      f'must be set to read {directory}, which has {" and ".join(named)}; '
      'got nothing. Importing a module runs its code. Alternatively, pass the '
      'same names with --agent and --env, or in Python the experiment instead '
      'of the directory.',
    )


def _changed_settings(identity: Mapping[str, Any]) -> dict[str, Any]:
  """Returns the agent's settings that differ from the defaults."""
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
  """Returns the settings whose names have this prefix, with it removed."""
  return {
    name.removeprefix(prefix): value
    for name, value in identity.items()
    if name.startswith(prefix)
  }


def default_directory(agent: str, environment: str, seed: int) -> str:
  """Returns runs/<agent>/<environment>/seed_<seed>."""
  folders = [re.sub('[^A-Za-z0-9_.]', '-', one) for one in (agent, environment)]
  return os.path.join('runs', *folders, f'seed_{seed}')
