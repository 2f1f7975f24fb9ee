"""Checks and setup of devices named by users."""

import contextlib
import re
from collections.abc import Sequence

from repertory.components.config.settings import SettingError

_NAME = re.compile(r'(CPU|GPU|TPU):(\d+)')


def check(argument: str, names: Sequence[str]) -> None:
  """Checks that names, such as 'CPU:0' or 'GPU:1', are of this machine.

  Raises:
    SettingError: If a name is malformed, or there is no such device.
  """
  for name in names:
    if not _NAME.fullmatch(name):
      raise SettingError(
        argument, f"must be names like 'CPU:0' or 'GPU:1', got {name!r}."
      )
    import tensorflow as tf  # noqa: PLC0415  Not needed without names.

    kind, index = name.split(':')
    num_devices = len(tf.config.list_physical_devices(kind))
    if kind != 'CPU' and int(index) >= num_devices:
      raise SettingError(
        argument,
        f'must name devices of this machine, got {name}; it has {num_devices} '
        f'of kind {kind}.',
      )


def has_accelerator() -> bool:
  """Returns whether TensorFlow sees any device besides CPUs."""
  import tensorflow as tf  # noqa: PLC0415  As in `check`.

  devices = tf.config.get_visible_devices()
  return any(device.device_type != 'CPU' for device in devices)


def prepare(argument: str, names: Sequence[str]) -> None:
  """Makes sure that this process has the devices.

  A processor is one device, CPU:0. If CPU:k is named, it is split into k + 1
  logical ones, which TensorFlow allows before its first operation. For
  arguments and errors see `check`.
  """
  check(argument, names)
  last_cpu = max((int(n[4:]) for n in names if n.startswith('CPU')), default=0)
  if not last_cpu:
    return
  import tensorflow as tf  # noqa: PLC0415  As in `check`.

  with contextlib.suppress(RuntimeError):  # Already in use; checked below.
    tf.config.set_logical_device_configuration(
      tf.config.list_physical_devices('CPU')[0],
      [tf.config.LogicalDeviceConfiguration()] * (last_cpu + 1),
    )
  available = len(tf.config.list_logical_devices('CPU'))
  if last_cpu >= available:
    raise SettingError(
      argument,
      f'must name devices of this process, got CPU:{last_cpu}; it has '
      f'{available} of kind CPU. A CPU cannot be split once TensorFlow is in '
      'use. Run nodes in processes of their own (launch type local_mp, if the '
      'topology allows it).',
    )
