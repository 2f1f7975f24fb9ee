"""On which devices it is learned."""

import contextlib
from collections.abc import Iterator, Sequence

from repertory import components
from repertory.components import devices
from repertory.components.settings import SettingError
from repertory.launch import experiment as experiment_lib


def check(names: Sequence[str]) -> None:
  """Refuses what are no devices, or not different ones.

  Raises:
    SettingError: Naming them.
  """
  devices.check('learner_devices', names)
  if len(set(names)) < len(names):
    raise SettingError('learner_devices', f'must differ, got {list(names)}.')


def check_dividing(
  names: Sequence[str], experiment: experiment_lib.Experiment
) -> None:
  """Refuses several devices for what is compiled for one.

  Raises:
    SettingError: Naming what would help.
  """
  if len(names) > 1 and experiment.builder.needs_whole_batches:
    raise SettingError(
      'learner_devices',
      f"must be one for agent '{experiment.agent}' with these settings, which "
      'normalize by the whole batch, and its rows would be divided; got '
      f'{list(names)}.',
    )
  if len(names) > 1 and experiment.builder.config.jit_compile is not False:
    raise SettingError(
      'learner_devices',
      'must be one unless jit_compile is off, for XLA compiles an update for '
      f'one device; got {list(names)}. Turn that off.',
      jit_compile=False,
    )


@contextlib.contextmanager
def on_devices(names: Sequence[str]) -> Iterator[None]:
  """Places what learns: the rows of its networks are divided among devices.

  Args:
    names: All else is on the first; none for TensorFlow's choice.
  """
  devices.prepare('learner_devices', names)
  with (
    components.compilation.on_device(next(iter(names), None)),
    components.data_parallel.over_devices(names),
  ):
    yield
