"""Experiments from registered names of agents and environments."""

import dataclasses
import os
import re
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from repertory.agents.interface import registry as agents_registry
from repertory.agents.reward_models import registry as reward_models
from repertory.agents.reward_models import reward_model_config as names
from repertory.environments.registry import registry as environments_registry
from repertory.launch.experiments import experiment as experiment_lib

if TYPE_CHECKING:
  from repertory.agents.interface import agent_config as agent_config_lib


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
      environments, such as 'atari'; 'auto' for those of the environment, and
      its number of environments per actor, if the agent's table has them; None
      or 'none' for the plain defaults.
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
    directory=directory,
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
  directory: str | None = None,
  seed: int = 0,
  **settings,
) -> ExperimentPlan:
  """Makes and checks an experiment except for its builder, without TensorFlow.

  Arguments and errors are those of `make_experiment`.
  """
  config = config or {}
  if preset == agents_registry.AUTO:
    # Most programs in Python have no need of it.
    from repertory.agents.interface import tuned_presets  # noqa: PLC0415

    preset = None
    if (tuned := tuned_presets.find(agent, environment)) is not None:
      preset, config = tuned.base, {**tuned.settings, **config}
      settings.setdefault(
        'environments_per_actor', tuned.environments_per_actor
      )
  agent_config = agents_registry.make_config(agent, config, preset)
  chosen = reward_models.make_config(reward_model, reward_model_config or {})
  experiment = experiment_lib.Experiment(
    builder=cast(Any, None),
    environment_factory=environments_registry.make_factory(environment),
    agent=agent,
    environment=environment,
    directory=directory or default_directory(agent, environment, seed),
    seed=seed,
    **settings,
  )
  return ExperimentPlan(experiment, agent_config, chosen)


def default_directory(agent: str, environment: str, seed: int) -> str:
  """Returns runs/<agent>/<environment>/seed_<seed>."""
  return os.path.join('runs', folders(agent, environment), f'seed_{seed}')


def folders(agent: str, environment: str) -> str:
  """Returns <agent>/<environment>, in characters that are safe in paths."""
  names = [
    re.sub(r'[^A-Za-z0-9_.]|^\.+', '-', name) for name in (agent, environment)
  ]
  return os.path.join(*names)
