"""Settings of devices, shared by topologies."""

import contextlib
import dataclasses
from collections.abc import Iterator

from repertory import components
from repertory.components.config import settings
from repertory.components.config.settings import SettingError
from repertory.components.runtime import devices
from repertory.launch.topologies import topology


@dataclasses.dataclass(frozen=True, kw_only=True)
class LearnerDevicesTopology(topology.Topology):
  """Topology whose learner can be placed on chosen devices."""

  learner_devices: tuple[str, ...] = settings.field(
    (),
    'devices of the learner, in anakin of the whole loop; several shard the '
    'batch rows of its networks, and the rest is on the first; default: '
    "TensorFlow's choice.",
  )

  def check(self, experiment):
    super().check(experiment)
    names = self.learner_devices
    devices.check('learner_devices', names)
    if len(set(names)) < len(names):
      raise SettingError('learner_devices', f'must differ, got {list(names)}.')
    if len(names) > 1 and experiment.builder.needs_whole_batches:
      raise SettingError(
        'learner_devices',
        f"must be one for agent '{experiment.agent}' with these settings, "
        'which normalize over the whole batch, but its rows would be sharded; '
        f'got {list(names)}.',
      )
    if len(names) > 1 and experiment.builder.config.jit_compile is not False:
      raise SettingError(
        'learner_devices',
        'must be one unless jit_compile is off, since XLA compiles updates for '
        f'one device; got {list(names)}. Turn it off.',
        jit_compile=False,
      )

  @contextlib.contextmanager
  def on_learner_devices(self) -> Iterator[None]:
    """Places a learner on its devices, sharding the rows of its networks."""
    names = self.learner_devices
    devices.prepare('learner_devices', names)
    with (
      components.runtime.compilation.on_device(next(iter(names), None)),
      components.runtime.data_parallel.over_devices(names),
    ):
      yield


@dataclasses.dataclass(frozen=True, kw_only=True)
class InferenceDevicesTopology(LearnerDevicesTopology):
  """Topology that acts on devices apart from the learner's."""

  inference_devices: tuple[str, ...] = settings.field(
    (),
    'devices of the inference servers or actor threads, round-robin, like '
    "GPU:1; default: TensorFlow's choice.",
  )

  def check(self, experiment):
    super().check(experiment)
    devices.check('inference_devices', self.inference_devices)

  def inference_device(self, index: int) -> str | None:
    """Returns the device of an inference server or actor thread."""
    names = self.inference_devices
    return names[index % len(names)] if names else None
