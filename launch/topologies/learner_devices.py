"""Placement of the learner on devices."""

import contextlib
from collections.abc import Iterator, Sequence

from repertory import components
from repertory.components.config.settings import SettingError
from repertory.components.runtime import devices
from repertory.launch.experiments import experiment as experiment_lib


def check(names: Sequence[str]) -> None:
  """Checks that these are distinct device names."""
  devices.check('learner_devices', names)
  if len(set(names)) < len(names):
    raise SettingError('learner_devices', f'must differ, got {list(names)}.')


def check_dividing(
  names: Sequence[str], experiment: experiment_lib.Experiment
) -> None:
  """Checks that an experiment supports these devices, if they are several."""
  if len(names) > 1 and experiment.builder.needs_whole_batches:
    raise SettingError(
      'learner_devices',
      f"must be one for agent '{experiment.agent}' with these settings, which "
      'normalize over the whole batch, but its rows would be sharded; got '
      f'{list(names)}.',
    )
  if len(names) > 1 and experiment.builder.config.jit_compile is not False:
    raise SettingError(
      'learner_devices',
      'must be one unless jit_compile is off, since XLA compiles updates for '
      f'one device; got {list(names)}. Turn it off.',
      jit_compile=False,
    )


@contextlib.contextmanager
def on_devices(names: Sequence[str]) -> Iterator[None]:
  """Places a learner on devices, sharding the batch rows of its networks."""
  devices.prepare('learner_devices', names)
  with (
    components.runtime.compilation.on_device(next(iter(names), None)),
    components.runtime.data_parallel.over_devices(names),
  ):
    yield
