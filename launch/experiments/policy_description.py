"""Description of a trained policy: `policy.json` of a checkpoint.

It is all that acting needs besides the variables: the names of agent and
environment, the agent's settings, the specs, and the counts of training. So a
policy is loaded without its experiment.
"""

import contextlib
import dataclasses
import importlib.metadata
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from repertory.agents.interface import registry as agents_registry
from repertory.components import specs
from repertory.components.checkpoints import checkpointing
from repertory.components.config import import_paths
from repertory.components.config import settings as settings_lib
from repertory.components.runtime import versions
from repertory.environments.registry import registry as environments_registry
from repertory.environments.values import argument_checks
from repertory.environments.wrappers import previous_action
from repertory.launch.experiments import experiment as experiment_lib

if TYPE_CHECKING:
  from repertory.agents.interface import builder as builder_lib

# Types of entries that loading needs, and least numbers.
_ENTRIES = {
  'agent': (str, None),
  'environment': (str, None),
  'seed': (int, 0),
  'num_environments': (int, 1),
  'steps': (int, 0),
  'learner_steps': (int, 0),
  'runs': (int, 0),
}
_COUNTS = ('steps', 'learner_steps', 'runs')


def describe(
  state: Mapping[str, Any], spec: specs.EnvironmentSpec, transport: str
) -> dict[str, Any]:
  """Returns the description of the policy of a checkpoint, a JSON value.

  Args:
    state: State of the checkpoint.
    spec: Spec of the environment, as the agent observes it.
    transport: Kind of the run's transport.
  """
  sonnet = importlib.metadata.version('dm-sonnet')
  description = {
    'experiment': without_tables(state['experiment']),
    'counts': state['counts'],
    'transport': transport,
    'versions': {**versions.versions(), 'Sonnet': sonnet},
  }
  # Otherwise loading asks the environment.
  with contextlib.suppress(TypeError):
    description['spec'] = {
      name: specs.to_json(part) for name, part in spec._asdict().items()
    }
  return description


def without_tables(identity: Mapping[str, Any]) -> dict[str, Any]:
  """Returns an experiment's identity without its tables."""
  return {k: v for k, v in identity.items() if not k.startswith('table.')}


def check(saved: checkpointing.Checkpoint, directory: str) -> dict[str, Any]:
  """Checks a description; returns the identity in it, without tables.

  Args:
    saved: Result of `Checkpointer.load_policy`.
    directory: Directory of the run, for messages.

  Raises:
    ValueError: If names, seed or counts are missing, or of another type.
  """
  state = saved.state if isinstance(saved.state, Mapping) else {}
  identity, counts = state.get('experiment'), state.get('counts')
  if not (isinstance(identity, Mapping) and isinstance(counts, Mapping)):
    raise ValueError(
      f'The checkpoint in {directory} must have names and settings of its '
      f'experiment, and counts, got {identity!r} and {counts!r}. Take another.'
    )
  identity = without_tables(identity)
  for name, (kind, least) in _ENTRIES.items():
    value = (counts if name in _COUNTS else identity).get(name)
    if not isinstance(value, kind) or (least is not None and value < least):
      at_least = '' if least is None else f', at least {least}'
      raise ValueError(
        f'The checkpoint in {directory} must have {name!r} of type '
        f'{kind.__name__}{at_least}, got {value!r}. Take another.'
      )
  return identity


def read_spec(
  saved: checkpointing.Checkpoint, builder: 'builder_lib.Builder'
) -> specs.EnvironmentSpec | None:
  """Returns the spec in a description; None if it has none.

  Raises:
    CheckpointError: If it cannot be read.
  """
  found = saved.state.get('spec')
  if found is None:
    return None
  try:
    spec = specs.EnvironmentSpec(
      **{name: specs.from_json(part) for name, part in found.items()}
    )
    if builder.observes_previous_action_and_reward:
      previous_action.original(spec.observations)  # It must have one.
    return spec
  except Exception as error:  # Any other JSON may raise anything.
    raise checkpointing.CheckpointError(
      f'The spec in {saved.path} cannot be read: {type(error).__name__}: '
      f'{error}.'
    ) from error


def check_trusted(
  identity: Mapping[str, Any],
  directory: str,
  trust: bool,
  agent: str | None,
  environment: str | None,
) -> None:
  """Checks that no untrusted module would be imported, nor another one.

  Importing a module runs its code, and a checkpoint may be of unknown origin.
  So modules named in it are imported only if the caller trusts it or passes the
  same names.

  Args:
    identity: Result of `check`.
    directory: Directory of the run, for messages.
    trust: Whether to import modules named in the checkpoint.
    agent: The agent's name as given by the caller; its module is trusted.
    environment: The environment's name, likewise.
  """
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


def make_builder(
  identity: Mapping[str, Any], directory: str
) -> 'builder_lib.Builder':
  """Makes the builder of an agent, without reward model, from its identity."""
  known = [agent.name for agent in agents_registry.agents()]
  name = identity['agent']
  if name not in known and import_paths.SYNTAX.fullmatch(name) is None:
    raise ValueError(
      f'The checkpoint in {directory} must be of a baseline agent, {known}, '
      f"or {agents_registry.OWN} of a module, got '{name}'. "
      'In Python, pass the experiment instead of the directory.'
    )
  with explained(directory, identity):
    return agents_registry.make_builder(name, _changed_settings(identity))


@contextlib.contextmanager
def explained(directory: str, identity: Mapping[str, Any]) -> Iterator[None]:
  """Names the checkpoint in errors of names, arguments and settings."""
  try:
    yield
  except ValueError as error:
    missing = error.__cause__
    if isinstance(missing, import_paths.NoModuleError):
      problem = f'but {missing} Run this in its folder, or install its package.'
    elif isinstance(
      error, (argument_checks.ArgumentError, settings_lib.SettingError)
    ):
      is_name = getattr(error, 'argument', None) == 'name'
      why = error.problem if is_name else error
      problem = f'which this version cannot make: {why}'
    else:
      raise
    raise ValueError(
      f"The checkpoint in {directory} is of '{identity['agent']}' on "
      f"'{identity['environment']}', {problem}"
    ) from error


def _changed_settings(identity: Mapping[str, Any]) -> dict[str, Any]:
  """Returns the agent's settings that differ from the defaults."""
  agent = agents_registry.get(identity['agent'])
  prefix = experiment_lib.CONFIG
  found = {
    name.removeprefix(prefix): value
    for name, value in identity.items()
    if name.startswith(prefix)
  }
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
