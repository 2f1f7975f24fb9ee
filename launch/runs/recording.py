"""Writes what environments go through to files; needs no TensorFlow."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import dm_env

import repertory
from repertory.components import recordings, specs
from repertory.environments import pictures, previous_action

if TYPE_CHECKING:
  from repertory.launch import experiment as experiment_lib


class RecordedEnvironments:
  """An environment batch whose episodes are written to files.

  It is closed with what wraps it, and writes what is left then.
  """

  def __init__(self, environments: Any, writer: recordings.Writer):
    """Takes over the batch, see `environments.batch`, and the writer."""
    self._environments = environments
    self._writer = writer

  @property
  def batch_size(self) -> int:
    """The number of slots, B."""
    return self._environments.batch_size

  def observation_spec(self) -> Any:
    """Returns the nest of specs of one environment, without `[B]`."""
    return self._environments.observation_spec()

  def action_spec(self) -> Any:
    """Returns the nest of specs of one environment, without `[B]`."""
    return self._environments.action_spec()

  def reward_spec(self) -> specs.Array:
    """Returns the spec of one environment's reward, of shape `()`."""
    return self._environments.reward_spec()

  def discount_spec(self) -> specs.Array:
    """Returns the spec of one environment's discount, of shape `()`."""
    return self._environments.discount_spec()

  def reset(self) -> dm_env.TimeStep:
    """Starts a new episode in every slot."""
    timestep = self._environments.reset()
    self._writer.begin(timestep)
    return timestep

  def step(self, actions: Any) -> dm_env.TimeStep:
    """Steps every slot, or resets it.

    Raises:
      OSError: If what was lived cannot be written.
    """
    timestep = self._environments.step(actions)
    self._writer.add(actions, timestep)
    return timestep

  def render(self, slots: Sequence[int]) -> pictures.Pictures:
    """Returns the pictures of some slots."""
    return self._environments.render(slots)

  @property
  def render_fps(self) -> float:
    """Pictures of a slot that are a second."""
    return self._environments.render_fps

  def close(self) -> None:
    """Writes what is left, and closes the batch, whatever fails."""
    try:
      self._writer.close()
    finally:
      self._environments.close()


def wrap(environments: Any, directory: str, seed: int) -> RecordedEnvironments:
  """Lets a batch be recorded.

  Args:
    directory: Was prepared before.
    seed: Of its first environment, by which its files are called: nobody else
      has it, on this host or another.
  """
  writer = recordings.Writer(directory, f'steps_{seed:016x}')
  return RecordedEnvironments(environments, writer)


def prepare(
  experiment: 'experiment_lib.Experiment',
  spec: specs.EnvironmentSpec,
  writes: bool = True,
) -> None:
  """Makes the folder of an experiment's recording, if there is to be one.

  Args:
    spec: What the agent takes and gives.
    writes: Whether to make it, or else only to look whether it will do.

  Raises:
    SettingError: If it has recordings of something else, or other files.
    OSError: If it cannot be written to.
  """
  if experiment.record is not None:
    manifest = describe(experiment, spec)
    recordings.prepare(experiment.record, manifest, writes)


def describe(
  experiment: 'experiment_lib.Experiment', spec: specs.EnvironmentSpec
) -> recordings.Manifest:
  """Returns what a recording of an experiment's agent is of."""
  return recordings.Manifest.of(
    experiment.agent,
    experiment.environment,
    recorded_spec(experiment, spec),
    repertory.__version__,
  )


def recorded_spec(
  experiment: 'experiment_lib.Experiment', spec: specs.EnvironmentSpec
) -> specs.EnvironmentSpec:
  """Returns the spec of what is recorded: what the environments say."""
  if not experiment.builder.observes_previous_action_and_reward:
    return spec
  return spec._replace(observations=previous_action.original(spec.observations))
