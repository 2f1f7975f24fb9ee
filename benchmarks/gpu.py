"""Speed of a GPU compared with the CPU of the same machine.

Run it with nothing else on the machine; it takes about an hour:

    make benchmark-gpu

Or in an environment with the extra `gpu`: `python benchmarks/gpu.py`. It prints
a Markdown table to stdout and its progress to stderr. Each row is measured on
both devices alternately, by two processes, one of which sees no GPU. In
parentheses are the minimum and the maximum of the ratio over the turns.

To try it without a GPU, on parts of the CPU, which takes several minutes:

    .venv/bin/python benchmarks/gpu.py --devices=CPU:0,CPU:1 --smallest
"""

import concurrent.futures
import contextlib
import multiprocessing
import os
import platform
import shutil
import statistics
import subprocess
import sys
import time
import traceback
from collections.abc import Iterator, Sequence

import repertory  # Before TensorFlow: see its first lines.

# isort: split
import figures
import gpu_cases
import tensorflow as tf
from absl import app, flags

from repertory.components.config.settings import SettingError
from repertory.components.runtime import devices, versions

_DEVICES = flags.DEFINE_list(
  'devices',
  ['CPU:0', 'GPU:0'],
  'Two devices; the ratio is that of the second to the first. CPU:0,CPU:1 '
  'are parts of a CPU, for a trial without a GPU.',
)
_PARTS = flags.DEFINE_list(
  'parts', None, 'Of acting, updates, central, podracers; default all.'
)
_TURNS = flags.DEFINE_integer(
  'turns', 3, 'Measurements per device.', lower_bound=1
)
_SECONDS = flags.DEFINE_float(
  'seconds', 2.0, 'Approximate duration of a measurement.'
)
_SMALLEST = flags.DEFINE_bool(
  'smallest', False, 'Only the smallest case of each part, as a trial.'
)

_NO_GPU = """\
--devices must be two that this machine has, got {names}: {error}

TensorFlow {version} sees {count} GPU(s). So that it sees one:
  - `nvidia-smi` must list it; if not, install NVIDIA's driver.
  - The extra must be `gpu`, not `cpu`: `make benchmark-gpu` has both it and
    CUDA installed into .venv_gpu, with Python 3.11. With Python 3.10 the
    machine must have CUDA 11.2 and cuDNN 8.1.
  - CUDA_VISIBLE_DEVICES must not hide it; it is {visible!r}.
For a trial without a GPU: --devices=CPU:0,CPU:1 --smallest"""


class Worker:
  """Process that measures on one device."""

  def __init__(self, device: str):
    self._device = device
    self._executor = self._start()

  def _start(self) -> concurrent.futures.ProcessPoolExecutor:
    executor = concurrent.futures.ProcessPoolExecutor(
      1,
      multiprocessing.get_context('spawn'),
      initializer=devices.prepare,
      initargs=('devices', [self._device]),
    )
    with _hidden_gpus(self._device.startswith('CPU')):
      executor.submit(time.time).result()  # Starts the process now.
    return executor

  def measure(self, case: gpu_cases.Case, seconds: float) -> float | None:
    """Returns the figure of a case; on failure logs it and returns None."""
    try:
      return self._executor.submit(case.measure, self._device, seconds).result()
    except Exception as error:  # The other rows are still useful.
      traceback.print_exc()
      _log(getattr(error, 'stderr', None) or '')
      if isinstance(error, concurrent.futures.BrokenExecutor):
        self.close()
        self._executor = self._start()
      return None

  def close(self) -> None:
    self._executor.shutdown()


@contextlib.contextmanager
def _hidden_gpus(hides: bool) -> Iterator[None]:
  """Hides all GPUs from processes that start meanwhile, if `hides`."""
  name = 'CUDA_VISIBLE_DEVICES'
  before = os.environ.get(name)
  if hides:
    os.environ[name] = '-1'
  try:
    yield
  finally:
    if before is not None:
      os.environ[name] = before
    elif hides:
      del os.environ[name]


def describe_machine(names: Sequence[str]) -> list[str]:
  """Returns lines about the machine, its devices and its software."""
  build = tf.sysconfig.get_build_info()
  lines = [
    f'Repertory {repertory.__version__}, TensorFlow {tf.__version__}, Python '
    f'{platform.python_version()}',
    f'CPU: {versions.num_cpus()} cores of {figures.processor()}',
  ]
  gpus = tf.config.list_physical_devices('GPU')
  for gpu in gpus:
    details = tf.config.experimental.get_device_details(gpu)
    lines.append(
      f'{gpu.name.removeprefix("/physical_device:")}: '
      f'{details.get("device_name", "unknown")}, compute capability '
      f'{".".join(map(str, details.get("compute_capability", ["unknown"])))}'
    )
  if gpus:
    lines.append(
      f'NVIDIA driver {_driver()}; TensorFlow was built with CUDA '
      f'{build.get("cuda_version", "unknown")}, cuDNN '
      f'{build.get("cudnn_version", "unknown")}'
    )
  else:
    lines.append('No GPU')
  growth = os.environ['TF_FORCE_GPU_ALLOW_GROWTH']
  lines.append(
    f'{names[1]} beside {names[0]}; single precision; '
    f'TF_FORCE_GPU_ALLOW_GROWTH={growth}'
  )
  return lines


def _driver() -> str:
  """Returns the version of the driver, which TensorFlow does not report."""
  command = shutil.which('nvidia-smi')
  if not command:
    return 'unknown'
  found = subprocess.run(
    [command, '--query-gpu=driver_version', '--format=csv,noheader'],
    check=False,
    capture_output=True,
    text=True,
    timeout=60,
  )
  return found.stdout.partition('\n')[0].strip() or 'unknown'


def choose_cases(
  parts: Sequence[str] | None, smallest: bool
) -> list[gpu_cases.Case]:
  """Returns the selected cases.

  Raises:
    app.UsageError: If a part is unknown.
  """
  for part in parts or ():
    if part not in gpu_cases.CASES:
      raise app.UsageError(
        f'--parts must be of {", ".join(gpu_cases.CASES)}; got {part!r}.'
      )
  # Tiny cases are only for a trial, where other parts have their own.
  return [
    case
    for part in parts or gpu_cases.CASES
    for case in gpu_cases.CASES[part]()
    if (case.is_small if smallest else 'tiny' not in case.name)
  ]


def check_devices(names: Sequence[str]) -> None:
  """Exits unless two devices are named, and the machine has both."""
  try:
    devices.check('devices', names)
    if len(names) != 2:
      raise SettingError('devices', f'must be two, got {len(names)}.')
  except SettingError as error:
    sys.exit(
      _NO_GPU.format(
        names=','.join(names) or 'none',
        error=error,
        version=tf.__version__,
        count=len(tf.config.list_physical_devices('GPU')),
        visible=os.environ.get('CUDA_VISIBLE_DEVICES', 'not set'),
      )
    )


def _row(case: gpu_cases.Case, rates: Sequence[Sequence[float | None]]) -> str:
  """Returns a row of the table from the rates of each turn."""
  cells = []
  for i in range(2):
    known = [rate for pair in rates if (rate := pair[i]) is not None]
    cells.append(f'{statistics.median(known):,.1f}' if known else 'failed')
  ratios = [b / a for a, b in rates if a is not None and b is not None]
  cells.append(figures.spread(ratios, 2) if ratios else '')
  return f'| {" | ".join([case.part, case.name, case.unit, *cells])} |'


def _log(text: str | bytes) -> None:
  if isinstance(text, bytes):
    text = text.decode(errors='replace')
  if text:
    print(text, file=sys.stderr, flush=True)


def main(_) -> None:
  """Prints the machine and a table, line by line."""
  names = _DEVICES.value
  cases = choose_cases(_PARTS.value, _SMALLEST.value)
  check_devices(names)
  for line in describe_machine(names):
    print(f'- {line}')
  print(f'\n| part | case | unit | {names[0]} | {names[1]} | ratio |')
  print('| --- | --- | --- | --- | --- | --- |', flush=True)
  has_failed = False
  workers = [Worker(name) for name in names]
  try:
    for number, case in enumerate(cases, 1):
      _log(f'{number} of {len(cases)}: {case.part}, {case.name}')
      rates = [
        [worker.measure(case, _SECONDS.value) for worker in workers]
        for _ in range(_TURNS.value)
      ]
      has_failed |= any(None in pair for pair in rates)
      print(_row(case, rates), flush=True)
  finally:
    for worker in workers:
      worker.close()
  if has_failed:
    sys.exit('Some cases failed: see the errors above. Report them, too.')


if __name__ == '__main__':
  app.run(main)
