"""Plan: an experiment that passed all checks for its topology and launcher."""

import dataclasses
import os
from collections.abc import Mapping, Sequence
from typing import Any

import tensorflow as tf

from repertory.agents.actor_critic import additional_loss
from repertory.agents.interface import registry as agents_registry
from repertory.components import checkpoints, specs
from repertory.components.config.settings import text_of
from repertory.components.transports import experience as experience_lib
from repertory.launch.experiments import callbacks as callbacks_lib
from repertory.launch.experiments import environment_batches, preflight
from repertory.launch.experiments import experiment as experiment_lib
from repertory.launch.launchers import launcher as launcher_lib
from repertory.launch.nodes import offline_checks
from repertory.launch.topologies import topology as topology_lib


@dataclasses.dataclass(frozen=True)
class Plan:
  """A checked run, of which nothing has been written.

  Attributes:
    experiment: The experiment to run, without its callbacks.
    callback_list: The experiment's callbacks.
    topology: Its topology, with defaults that suit the launcher.
    launcher: Launcher of the nodes.
    spec: The environment's spec.
    experience: The agent's experience.
    options: Supported kinds of experience transport, the best first.
    storage: Additional store of checkpoints, if any.
    title: Title of the run, for display.
    run_layout: Topology, launcher and their settings, as plain values.
    sharding: Sharding of the run among nodes, in words.
    identity: Settings that a resumed run must share, as plain values.
  """

  experiment: experiment_lib.Experiment
  callback_list: callbacks_lib.CallbackList
  topology: topology_lib.Topology
  launcher: launcher_lib.Launcher
  spec: specs.EnvironmentSpec
  experience: experience_lib.Experience
  options: Sequence[preflight.ReplayOption]
  storage: 'checkpoints.Storage | None'
  title: str
  run_layout: Mapping[str, Any]
  sharding: str
  identity: Mapping[str, Any]


def make_plan(
  experiment: experiment_lib.Experiment,
  topology: str | topology_lib.Topology = 'single',
  launch_type: str | launcher_lib.Launcher = 'local_mt',
) -> Plan:
  """Checks an experiment for a topology and a launcher; writes nothing.

  It makes an environment and the agent's network once. Arguments are those of
  `launch.run`.

  Raises:
    ValueError: If the experiment cannot run.
  """
  if isinstance(topology, str):
    topology = topology_lib.get(topology)()
  if isinstance(launch_type, str):
    launch_type = launcher_lib.get(launch_type)()
  if not isinstance(experiment, experiment_lib.Experiment):
    raise TypeError(
      f'experiment must be a launch.Experiment, got {experiment!r}; '
      'launch.make_experiment makes one from names of agent and environment.'
    )
  experiment, callback_list = callbacks_lib.take(experiment)
  if tf.config.functions_run_eagerly():
    experiment = dataclasses.replace(experiment, eager=True)
  # May split the CPU into virtual devices, so precedes use of TensorFlow.
  topology = topology.launched_by(launch_type, experiment)
  topology_lib.check_launch(
    topology, launch_type, experiment.deterministic, experiment.eager
  )
  topology.check(experiment)
  if topology.has_program and launch_type.needs_pickles:
    callback_list.check_can_travel(launch_type.name)
  _check_tensorflow()
  spec = environment_batches.find_spec(experiment)
  _check_network(experiment, spec)
  kinds = topology.transports(experiment)
  experience, options = preflight.describe(
    experiment, spec, kinds, topology.smallest_batch(experiment)
  )
  topology.check_experience(experiment, experience, spec)
  offline_checks.check_data(experiment, experience, spec, kinds)
  return Plan(
    _with_absolute_paths(experiment),
    callback_list,
    topology,
    launch_type,
    spec,
    experience,
    options,
    _open_storage(experiment),
    title=topology.title(experiment, launch_type),
    run_layout=topology.run_layout(launch_type),
    sharding=topology.sharding(experiment),
    identity=experiment.identity(experience),
  )


def _check_tensorflow() -> None:
  """Raises ValueError if traced functions cannot leave their graph."""
  found = []

  def look():
    with tf.init_scope():
      found.append(tf.executing_eagerly())

  tf.function(look, autograph=False).get_concrete_function()
  if found[0]:
    return
  raise ValueError(
    'tensorflow must be imported before `absl.app.run` is called, but was '
    'first imported inside it, where its functions cannot create variables. '
    'Import `tensorflow` at the top of the script.'
  )


def _check_network(
  experiment: experiment_lib.Experiment, spec: specs.EnvironmentSpec
) -> None:
  """Raises ValueError unless the agent fits the environment's spec."""
  builder = experiment.builder
  additional_loss.check(builder)
  try:
    builder.make_network(spec)
  except ValueError as error:
    names = ', '.join(agents_registry.fitting(spec))
    fitting = f' Agents of the registry that fit, with their defaults: {names}.'
    raise ValueError(
      f"Agent '{experiment.agent}' does not fit environment "
      f"'{experiment.environment}': {text_of(error)}{fitting if names else ''}"
    ) from error


def _open_storage(
  experiment: experiment_lib.Experiment,
) -> 'checkpoints.Storage | None':
  if experiment.storage is None:
    return None
  return checkpoints.open_storage(experiment.storage, experiment.directory)


def _with_absolute_paths(
  experiment: experiment_lib.Experiment,
) -> experiment_lib.Experiment:
  """Returns the experiment with absolute paths, for nodes in other folders."""
  record, data = experiment.record, experiment.demonstrations
  return dataclasses.replace(
    experiment,
    record=None if record is None else os.path.abspath(record),
    demonstrations=tuple(map(os.path.abspath, data)),
  )
