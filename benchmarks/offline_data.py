"""Cost of recording, reading and sampling a million steps.

Prints a Markdown table: seconds of processor time, additional memory, and
batches of 256 per second of processor time. Episodes of 200 steps have vectors
of three numbers, as Pendulum has; `--images` takes frames of 84 × 84 × 4 bytes,
and fewer steps.
"""

import multiprocessing
import os
import tempfile
import time
from collections.abc import Callable

import dm_env
import numpy as np
import psutil
from absl import app, flags

from repertory.agents import sac
from repertory.components import adders, offline, specs, transports
from repertory.components.transports import experience

_STEPS = flags.DEFINE_integer('steps', 1_000_000, 'Steps to record.')
_IMAGES = flags.DEFINE_bool('images', False, 'Whether observations are images.')

_EPISODE, _SLOTS, _BATCHES = 200, 8, 2_000
_ACTIONS = specs.BoundedArray((1,), np.float32, -2, 2)


def main(_):
  observations = specs.Array((3,), np.float32)
  if _IMAGES.value:
    observations = specs.BoundedArray((84, 84, 4), np.uint8, 0, 255)
  spec = specs.EnvironmentSpec(
    observations=observations,
    actions=_ACTIONS,
    rewards=specs.Array((), np.float32),
    discounts=specs.BoundedArray((), np.float32, 0, 1),
  )
  described = sac.SACBuilder().experience(spec, 1)
  print('| | |\n| --- | --- |')
  with tempfile.TemporaryDirectory() as directory:
    # In another process, so that its memory is not reused for reading.
    context = multiprocessing.get_context('fork')
    with context.Pool(1) as pool:
      arguments = directory, spec, _STEPS.value, _IMAGES.value
      seconds, _ = pool.apply(_measure, (_record, *arguments))
    files = [os.path.join(directory, name) for name in os.listdir(directory)]
    size = sum(os.path.getsize(file) for file in files)
    print(f'| steps | {_STEPS.value:,} |')
    print(f'| record | {seconds:.1f} s |')
    print(f'| files | {len(files)}, {size / 1e6:,.0f} MB |')
    for name, items in (
      ('transitions', described.items),
      ('transitions of 5 steps', adders.Transitions(5, 0.99)),
    ):
      _read(name, directory, items, spec, described)


def _read(
  name: str,
  directory: str,
  items: adders.ItemSpec,
  spec: specs.EnvironmentSpec,
  described: experience.Experience,
) -> None:
  """Reads all steps as items of a kind, and samples batches."""
  table = described.with_table(signature=items.signature(spec)).table
  described = experience.Experience(items, [table], batch_size=256)

  def load() -> transports.OfflineTransport:
    data = offline.open_data(directory)
    data.check(spec)
    transport = transports.OfflineTransport(
      described, transports.make_adder, data.lengths, seed=0
    )
    transport.fill(data.read(spec))
    return transport

  before = _resident()
  seconds, transport = _measure(load)
  print(f'| {name}: read | {seconds:.1f} s |')
  end = transport.make_learner_side()
  size = next(iter(end.statuses().values())).size
  print(f'| {name}: items | {size:,} |')
  print(f'| {name}: memory | {(_resident() - before) / 1e6:,.0f} MB |')
  batches = end.batches

  def draw() -> None:
    for _ in range(_BATCHES):
      next(batches)

  seconds, _ = _measure(draw)
  print(f'| {name}: batches per second | {_BATCHES / seconds:,.0f} |')


def _record(
  directory: str, spec: specs.EnvironmentSpec, num_steps: int, images: bool
) -> None:
  """Records random numbers, or a frame that changes slightly."""
  manifest = offline.RecordingManifest.of('benchmark', 'numbers', spec, '')
  offline.prepare(directory, manifest)
  writer = offline.RecordingWriter(directory, 'steps')
  random = np.random.default_rng(0)
  shape, dtype = (_SLOTS, *spec.observations.shape), spec.observations.dtype
  for t in range(num_steps // _SLOTS * (_EPISODE + 1) // _EPISODE):
    moment = t % (_EPISODE + 1)
    step_type = 0 if moment == 0 else 2 if moment == _EPISODE else 1
    observation = np.zeros(shape, dtype)
    observation[..., : max(1, shape[-1] - 1)] = random.integers(9)
    if not images:
      observation = random.standard_normal(shape, np.float32)
    timestep = dm_env.TimeStep(
      np.full([_SLOTS], step_type, np.int32),
      np.zeros([_SLOTS], np.float32),
      np.ones([_SLOTS], np.float32),
      observation,
    )
    if t == 0:
      writer.begin(timestep)
    else:
      writer.add(np.zeros([_SLOTS, 1], np.float32), timestep)
  writer.close()


def _measure(function: Callable, *arguments):
  """Returns seconds of processor time, and the result of a function."""
  start = time.process_time()
  result = function(*arguments)
  return time.process_time() - start, result


def _resident() -> int:
  return psutil.Process().memory_info().rss


if __name__ == '__main__':
  app.run(main)
