"""Environment batches of nodes; needs no TensorFlow."""

import contextlib
import dataclasses
import traceback
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeAlias

import dm_env
import tree
from absl import logging

from repertory.components import offline, specs
from repertory.components.config import settings
from repertory.environments import wrappers
from repertory.environments.batches import batch, recorded, vector_batch
from repertory.environments.registry import registry
from repertory.environments.values import argument_checks
from repertory.launch.platform import interrupts, watchdog

_EVALUATION_FACTORY = 'evaluation_environment_factory'

EnvironmentBatch: TypeAlias = (
  vector_batch.VectorBatch | vector_batch.BatchWrapper
)


@dataclasses.dataclass(frozen=True)
class EnvironmentSettings:
  """Picklable settings of an environment batch.

  Attributes:
    factory: Function from a seed to an environment. Its method `make_batch`, if
      any, maps seeds to an environment batch of single precision, and is
      preferred.
    observes_previous_action_and_reward: Whether observations include the
      previous action and reward.
    record: Folder to record steps to; None to record nothing.
    info: Names of entries of the environments' info to log for episodes.
    are_independent: Whether each slot may depend on its own seed only. Among
      batches of `make_batch`, only tensor environments guarantee that; others
      are then stepped one by one.
  """

  factory: Callable[[int], dm_env.Environment]
  observes_previous_action_and_reward: bool
  are_independent: bool = False
  record: str | None = None
  info: Sequence[str] = ()

  def make_environments(self, seeds: Sequence[int]) -> EnvironmentBatch:
    """Makes a batch of one environment for each seed."""
    make_batch = getattr(self.factory, 'make_batch', None)
    if self.are_independent:
      try:
        registry.make_tensor_environment(self.factory)
      except ValueError:
        make_batch = None
    environments: Any = (
      batch.EnvironmentBatch([self.factory(seed) for seed in seeds])
      if make_batch is None
      else make_batch(seeds)
    )
    if self.info and environments.info(0) is None:
      environments.close()
      raise settings.SettingError(
        'info',
        'must be left out: these environments have no `info`, unlike those of '
        'Gymnasium and those of dm_env with an attribute of that name; got '
        f'{", ".join(self.info)}.',
      )
    if self.record is not None:
      # The seed of the first one is unique, on this host and others.
      name = f'steps_{seeds[0]:016x}'
      writer = offline.RecordingWriter(self.record, name)
      environments = recorded.RecordedEnvironments(environments, writer)
    if self.observes_previous_action_and_reward:
      return wrappers.previous_action.PreviousActionAndReward(environments)
    return environments


def settings_of(
  experiment: Any, evaluates: bool = False
) -> EnvironmentSettings:
  """Returns an `Experiment`'s settings of training or evaluation."""
  factory = experiment.environment_factory
  if evaluates and experiment.evaluation_environment_factory is not None:
    factory = experiment.evaluation_environment_factory
  return EnvironmentSettings(
    factory,
    experiment.builder.observes_previous_action_and_reward,
    experiment.deterministic,
    None if evaluates else experiment.record,
    tuple(experiment.info),
  )


def renew(seeds: Sequence[int], *lives: int) -> list[int]:
  """Returns other seeds in every generation of a node, so episodes differ.

  `lives` are numbers of earlier starts; if all are 0, seeds are unchanged.
  """
  if not any(lives):
    return list(seeds)
  return [argument_checks.combine_seeds([seed, *lives]) for seed in seeds]


def find_spec(experiment: Any) -> specs.EnvironmentSpec:
  """Makes an `Experiment`'s environments once, and returns their spec.

  Raises:
    ValueError: If they cannot be made, or those of evaluations have another
      spec.
  """
  name, seed = f"environment '{experiment.environment}'", experiment.seed
  trained = settings_of(experiment)
  spec = read_spec(name, trained, seed)
  if experiment.evaluation_environment_factory is not None:
    evaluated = settings_of(experiment, evaluates=True)
    name = f'environment of {_EVALUATION_FACTORY}'
    compare(_EVALUATION_FACTORY, spec, read_spec(name, evaluated, seed))
  return spec


def read_spec(
  name: str, environment: EnvironmentSettings, seed: int
) -> specs.EnvironmentSpec:
  """Makes an environment, named in errors, and closes it; returns its spec."""
  with making(name):
    environments = environment.make_environments([seed])
    try:
      return specs.make_environment_spec(environments)
    finally:
      try:
        environments.close()
      except Exception:  # Its spec is known already.
        logging.exception('The environment that was tried cannot be closed:')


@contextlib.contextmanager
def making(name: str) -> Iterator[None]:
  """Names an environment whose code may hang, or raise any error."""
  seconds = watchdog.START_SECONDS
  late = TimeoutError(f'Waited {seconds:g} seconds for {name} to be made.')
  try:
    with (
      interrupts.interruptible() as demand,
      watchdog.watching(lambda: None, seconds, lambda waited: demand(late)),
    ):
      yield
  except (ValueError, ImportError, TimeoutError, KeyboardInterrupt):
    raise  # Their messages say what to do.
  except BaseException as error:  # Including SystemExit and StopIteration.
    raise ValueError(
      f'{name[0].upper()}{name[1:]} cannot be made:\n'
      + ''.join(traceback.format_exception(error))
    ) from error


def compare(
  setting: str, trained: specs.EnvironmentSpec, found: specs.EnvironmentSpec
) -> None:
  """Raises SettingError if a policy of one spec cannot act in the other."""
  for what, expected, got in zip(trained._fields, trained, found):
    # Bounds of observations have no effect on the policy.
    one, other = (expected, got) if what == 'actions' else (
      tree.map_structure(lambda leaf: (leaf.shape, leaf.dtype), nest)
      for nest in (expected, got)
    )  # fmt: skip
    if one != other:
      raise settings.SettingError(
        setting,
        f'must make environments with the {what} of those that are trained '
        f'on, {expected}; got {got}.',
      )
