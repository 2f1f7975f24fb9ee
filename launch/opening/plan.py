"""Plan: an experiment that passed all checks for its topology and launcher."""

import dataclasses
import os
from collections.abc import Mapping, Sequence
from typing import Any

import tensorflow as tf

from repertory.agents.interface import registry as agents_registry
from repertory.components import checkpoints, offline, specs
from repertory.components.transports import experience as experience_lib
from repertory.launch.experiments import callbacks as callbacks_lib
from repertory.launch.experiments import environment_batches, preflight
from repertory.launch.experiments import experiment as experiment_lib
from repertory.launch.launchers import launcher as launcher_lib
from repertory.launch.topologies import topology as topology_lib


@dataclasses.dataclass(frozen=True)
class Plan:
  """A checked run, of which nothing has been written.

  Attributes:
    experiment: The experiment to run.
    topology: Its topology, with defaults that suit the launcher.
    launcher: Launcher of the nodes.
    spec: The environment's spec.
    experience: The agent's experience.
    options: Supported kinds of experience transport, the best first.
    recording: Manifest of the recording of experience, if there is one.
    storage: Additional store of checkpoints, if any.
  """

  experiment: experiment_lib.Experiment
  topology: topology_lib.Topology
  launcher: launcher_lib.Launcher
  spec: specs.EnvironmentSpec
  experience: experience_lib.Experience
  options: Sequence[preflight.ReplayOption]
  recording: 'offline.RecordingManifest | None'
  storage: 'checkpoints.Storage | None'

  @property
  def identity(self) -> Mapping[str, Any]:
    """Settings that a resumed run must share, as plain values."""
    return self.experiment.identity(self.experience)


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
  if not isinstance(experiment, experiment_lib.Experiment):
    raise TypeError(
      f'experiment must be a launch.Experiment, got {experiment!r}; '
      'launch.make_experiment makes one from names of agent and environment.'
    )
  experiment = dataclasses.replace(
    experiment,
    eager=experiment.eager or tf.config.functions_run_eagerly(),
    # Nodes may be in other folders.
    record=experiment.record and os.path.abspath(experiment.record),
    demonstrations=tuple(map(os.path.abspath, experiment.demonstrations)),
  )
  # May split the CPU into virtual devices, so precedes use of TensorFlow.
  topology, launcher = topology_lib.lay_out(experiment, topology, launch_type)
  if topology.has_program and launcher.needs_pickles:
    callbacks_lib.check_can_travel(experiment, launcher.name)
  _check_tensorflow()
  spec = environment_batches.find_spec(experiment)
  agents_registry.check_fits(
    experiment.builder, spec, experiment.agent, experiment.environment
  )
  kinds = topology.transports(experiment)
  experience, options = preflight.describe(
    experiment, spec, kinds, topology.smallest_batch(experiment)
  )
  topology.check_experience(experiment, experience, spec)
  recording = preflight.check_data(experiment, experience, spec, kinds)
  storage = None
  if experiment.storage is not None:
    storage = checkpoints.Storage(experiment.storage, experiment.directory)
  return Plan(
    experiment,
    topology,
    launcher,
    spec,
    experience,
    options,
    recording,
    storage,
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
