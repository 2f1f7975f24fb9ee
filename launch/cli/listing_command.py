"""`repertory agents`, `reward_models` and `environments`: list registries."""

import dataclasses

from repertory.agents.interface import agent_config, tuned_presets
from repertory.agents.interface import registry as agents_registry
from repertory.agents.reward_models import registry as reward_models
from repertory.agents.reward_models import reward_model_config
from repertory.components.config import settings as settings_lib
from repertory.environments.registry import registry as environments_registry
from repertory.environments.registry import wrapping
from repertory.launch.cli import command
from repertory.launch.platform import interrupts


@command.register(
  'agents',
  11,
  '[AGENT]',
  'Lists the agents, or the settings of one.',
  takes_arguments=True,
)
def _agents(flag_values, settings, positional) -> int:
  del flag_values, settings
  if not positional:
    for agent in agents_registry.agents():
      print(f'{agent.name:8} {agent.description}')
    print(f'{agents_registry.OWN}  A user agent, such as my_module:MyBuilder.')
    return command.DONE
  for name in positional:
    with interrupts.exiting_on_interrupt():  # User agents import TensorFlow.
      agent = agents_registry.get(name)
    number = agent.config_class.default_environments_per_actor
    print(f'--environments_per_actor={number}  (default)')
    _print_settings('config', agent.config_class)
    for preset, values in agent.presets.items():
      print(f'--preset={preset}')
      for field, value in values.items():
        print(f'    {field}={value}')
    for tuned in tuned_presets.table(name):
      _print_tuned(tuned)
  return command.DONE


def _print_tuned(tuned: tuned_presets.TunedPreset) -> None:
  names = ', '.join(dict.fromkeys((*tuned.environments, *tuned.patterns)))
  print(f'--preset={agents_registry.AUTO} for {names}')
  print(f'    {tuned.steps:,} steps; {tuned.source}')
  if tuned.base is not None:
    print(f'    all of --preset={tuned.base}')
  for field, value in tuned.settings.items():
    print(f'    {field}={value}')
  if tuned.environments_per_actor is not None:
    print(f'    --environments_per_actor={tuned.environments_per_actor}')


@command.register(
  'reward_models',
  12,
  '[REWARD_MODEL]',
  'Lists the reward models, or the settings of one.',
  takes_arguments=True,
)
def _reward_models(flag_values, settings, positional) -> int:
  del flag_values, settings
  if not positional:
    for model in reward_models.reward_models():
      print(f'{model.name:8} {model.description}')
  for name in positional:
    _print_settings(
      reward_model_config.REWARD_MODEL, reward_models.get(name).config_class
    )
  return command.DONE


def _print_settings(flag: str, config_class: type) -> None:
  known = agent_config.schedulable(config_class)
  for setting in settings_lib.describe(config_class):
    is_required = setting.default is dataclasses.MISSING
    default = '...' if is_required else setting.default
    kind = f'{setting.type}; required' if is_required else setting.type
    if setting.name in known:
      kind = f'{kind}; or a schedule'
    print(f'--{flag}.{setting.name}={default}  ({kind})')
    if setting.help:
      print(f'    {setting.help}')


@command.register('environments', 13, '', 'Lists the environments.')
def _environments(values, settings, positional) -> int:
  del values, settings, positional
  for entry in environments_registry.names():
    needs = f' (needs: {entry.requirement})' if entry.requirement else ''
    print(f'{entry.pattern:30} {entry.description}{needs}')
    for option in entry.options():
      print(f'    ?{option}')
  print('Wrappers, options of all environments:')
  for wrapper in wrapping.WRAPPERS.values():
    option = wrapper.option
    print(f'    ?{option!s:26}{option.description}')
  return command.DONE
