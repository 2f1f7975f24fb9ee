"""Peer libraries: their installation, measured processes, and flags."""

import contextlib
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import figures
from absl import app, flags

CASES = flags.DEFINE_list(
  'cases', None, 'Names of the cases to run; default all.'
)
SCALE = flags.DEFINE_float(
  'scale', 1.0, 'Factor of the lengths of runs.', lower_bound=0.001
)
CHECKOUTS = flags.DEFINE_string(
  'checkouts',
  None,
  'Folder with checkouts `cleanrl` and `purejaxrl`; without one, their cases '
  'are omitted.',
)
_CORES = flags.DEFINE_integer(
  'cores', 1, 'Cores per run; 0 for all.', lower_bound=0
)
_PYTHON = flags.DEFINE_string(
  'peer_python', None, 'Python of the peers; default `python3.11` or `python3`.'
)

_HERE = pathlib.Path(__file__).resolve().parent
_PEERS = _HERE.parent / 'build' / 'peers'
_INSTALL_SECONDS = 1800
_MAX_WORDS = 300  # Maximum length of an error message, in characters.

_BASELINES = (
  'stable-baselines3==2.9.2',
  'gymnasium[classic-control]==1.4.0',
  'torch==2.13.0',
)
_REQUIREMENTS = {
  'stable_baselines3': (
    *_BASELINES,
    'ale-py==0.12.1',
    'box2d==2.3.10',
    'opencv-python-headless',
  ),
  'sbx': (
    *_BASELINES,
    'sbx-rl==0.28.0',
    'flax==0.12.8',
    'jax==0.10.2',
    'optax==0.2.8',
  ),
  # For the scripts since July 2025. They expect `final_observation` from a
  # vector environment, which Gymnasium 1 no longer has, so they fail at the
  # first time limit; and 0.29 does not work with NumPy 2.
  'cleanrl': (
    'flax==0.10.7',
    'gymnasium[classic-control]==0.29.1',
    'jax==0.6.2',
    'numpy==1.26.4',
    'optax==0.2.5',
    'tensorboard==2.21.0',
    'torch==2.13.0',
    'tyro==1.0.17',
  ),
  # Later versions of gymnax return other values from a step.
  'purejaxrl': (
    'brax==0.14.2',
    'distrax==0.1.5',
    'flax==0.11.2',
    'gymnax==0.0.9',
    'jax==0.6.2',
    'navix==0.7.4',
    'optax==0.2.8',
  ),
  # The newest versions that fit dm-acme, which needs TensorFlow with CUDA. Its
  # adders need this Reverb: 0.7.2 lacks an argument they use.
  'dm_acme': (
    'dm-acme==0.4.0',
    'dm-launchpad==0.5.0',
    'dm-reverb==0.7.0',
    'dm-sonnet==2.0.2',
    'gym==0.25.2',
    'jax==0.4.13',
    'jaxlib==0.4.13',
    'numpy==1.23.5',
    'pygame==2.6.1',
    'protobuf==3.19.6',
    'setuptools<70',
    'tensorflow-cpu==2.8.4',
    'tensorflow-probability==0.15.0',
    'trfl==1.2.0',
  ),
}
# TensorFlow 2.8 has no wheels for newer versions of Python.
_NEEDS_OUR_PYTHON = ('dm_acme',)
# SBX has the interface of Stable-Baselines3.
_SCRIPTS = {
  'repertory': 'repertory_run.py',
  'repertory_newest': 'repertory_run.py',
  'stable_baselines3': 'stable_baselines3_run.py',
  'sbx': 'stable_baselines3_run.py',
  'dm_acme': 'dm_acme_run.py',
  'purejaxrl': 'purejaxrl_run.py',
}
# Scripts in a folder of the library's name, of a checkout.
_CHECKED_OUT = ('cleanrl', 'purejaxrl')
# Packages whose versions are printed.
_PACKAGES = (
  'dm-acme', 'flax', 'gymnasium', 'jax', 'numpy', 'sbx-rl', 'stable-baselines3',
  'tensorflow', 'tensorflow-cpu', 'torch',
)  # fmt: skip
_PRINT_VERSIONS = (
  'import importlib.metadata, platform, sys; '
  'found = {one.name.replace("_", "-"): one.version '
  'for one in importlib.metadata.distributions()}; '
  'print(f"Python {platform.python_version()}", '
  '*(f"{n} {found[n]}" for n in sys.argv[1:] if n in found), sep=", ")'
)


class CannotRunError(Exception):
  """Raised if a measurement is not possible; the message has the reason."""


class Costs(NamedTuple):
  """Cost of a process, in seconds.

  Attributes:
    cpu_seconds: Processor time of all its threads and children.
    seconds: Time from start to end.
    report: Contents of its report.
  """

  cpu_seconds: float
  seconds: float
  report: Mapping[str, Any]


class Machine(NamedTuple):
  """Resources of the measured processes.

  Attributes:
    cores: Number of cores; 0 for all.
    seconds: Time limit of a process.
    python: Python of the peers; None for `python3.11` or `python3`.
    checkouts: Folder with checkouts of libraries that are no packages, or None.
    newest: Python with Repertory and the newest TensorFlow, or None.
  """

  cores: int
  seconds: float
  python: str | None
  checkouts: str | None
  newest: str | None


def choose_cases(
  arguments: Sequence[str], known: Sequence[str], default: Sequence[str]
) -> list[str]:
  """Returns the names of --cases, each once.

  Raises UsageError for others, and for arguments that are not flags.
  """
  if unexpected := arguments[1:]:
    raise app.UsageError(f'Arguments must be flags; got {unexpected}.')
  names = default if CASES.value is None else list(dict.fromkeys(CASES.value))
  unknown = sorted(set(names) - set(known))
  if unknown or not names:
    raise app.UsageError(
      f'--cases must be of {", ".join(known)}; got '
      f'{", ".join(unknown) or "none"}.'
    )
  return [*names]


def make_machine(seconds: float, newest: str | None = None) -> Machine:
  """Returns the resources of the flags, and those given."""
  return Machine(_CORES.value, seconds, _PYTHON.value, CHECKOUTS.value, newest)


def install(library: str, machine: Machine) -> str:
  """Creates the library's virtual environment, if any; returns its Python.

  Raises:
    CannotRunError: If it cannot be created.
  """
  if library == 'repertory':
    return sys.executable
  if library == 'repertory_newest':
    if machine.newest is None:
      raise CannotRunError('no Python was named: --newest_python=<path>')
    return os.path.abspath(machine.newest)
  if library in _CHECKED_OUT:
    find_scripts(library, machine)
  directory = _PEERS / library
  python = str(directory / 'bin' / 'python')
  done = directory / '.done'
  requirements = '\n'.join(_REQUIREMENTS[library])
  if done.exists() and done.read_text() == requirements:
    return python
  base = sys.executable
  if library not in _NEEDS_OUR_PYTHON:
    names = [machine.python] if machine.python else ['python3.11', 'python3']
    base = next(filter(None, map(shutil.which, names)), None)
    if base is None:
      raise CannotRunError(f'no Python is called {" or ".join(names)}')
  print(f'Installing {library} into {directory}, by {base} …', flush=True)
  for command in (
    [base, '-m', 'venv', '--clear', str(directory)],
    [python, '-m', 'pip', 'install', '--quiet', *_REQUIREMENTS[library]],
  ):
    _call(command, seconds=_INSTALL_SECONDS)
  done.write_text(requirements)
  return python


def versions(library: str, machine: Machine) -> str:
  """Returns the installed versions of Python and of the main packages.

  Raises:
    CannotRunError: If the library cannot be installed.
  """
  python = install(library, machine)
  command = [python, '-c', _PRINT_VERSIONS, *_PACKAGES]
  return _call(command, machine.seconds).strip()


def run(
  library: str, settings: Mapping[str, Any], steps: int, machine: Machine
) -> Costs:
  """Runs a training in its own process.

  Args:
    library: Name of the library.
    settings: Settings of its script, besides the steps; for CleanRL, `script`
      and `flags`. With `is_warm`, a first run fills XLA's cache; in all others
      it is empty.
    steps: Environment steps.

  Raises:
    CannotRunError: If it fails or exceeds the time limit.
  """
  python = install(library, machine)
  variables, scripts = {}, _HERE / 'peers'
  if library in _CHECKED_OUT:
    scripts = find_scripts(library, machine)
    variables['PYTHONPATH'] = f'{scripts}{os.pathsep}{scripts.parent}'
  with tempfile.TemporaryDirectory() as directory:
    variables['REPERTORY_XLA_CACHE'] = os.path.join(directory, 'xla')
    report = pathlib.Path(directory, 'report.jsonl')
    before = started = 0.0
    for _ in range(2 if settings.get('is_warm') else 1):
      report.write_text('')
      before, started = figures.children_seconds(), time.monotonic()
      if library == 'cleanrl':
        flags = {**settings['flags'], 'total-timesteps': steps}
        script = scripts / settings['script']
        arguments = [f'--{name}={value}' for name, value in flags.items()]
      else:
        case = {
          'seed': 1,
          **settings,
          'library': library,
          'steps': steps,
          'started': started,
          'report': str(report),
        }
        script = _HERE / 'peers' / _SCRIPTS[library]
        arguments = [json.dumps(case)]
      command = [python, str(script), *arguments]
      _call(command, machine.seconds, machine, directory, variables)
    costs = figures.children_seconds() - before, time.monotonic() - started
    values = {'steps': steps}
    for line in report.read_text().splitlines():
      values.update(json.loads(line))
  return Costs(*costs, values)


def find_scripts(library: str, machine: Machine) -> pathlib.Path:
  """Returns the folder of the scripts of a checkout.

  Raises:
    CannotRunError: If there is no such folder.
  """
  if machine.checkouts is None:
    raise CannotRunError('no checkouts were named: --checkouts=<folder>')
  scripts = pathlib.Path(machine.checkouts, library, library).absolute()
  if not scripts.is_dir():
    raise CannotRunError(f'there is no folder {scripts}')
  return scripts


def _call(
  command: Sequence[str],
  seconds: float,
  machine: Machine | None = None,
  directory: str | None = None,
  variables: Mapping[str, str] | None = None,
) -> str:
  """Returns the output of a command; kills all its processes on time-out.

  Args:
    command: The command.
    seconds: Time limit.
    machine: Resources of the process; None for all cores.
    directory: Working directory; None for that of this process.
    variables: Additional environment variables.

  Raises:
    CannotRunError: If it fails or exceeds the time limit, with the last line
      that names an error.
  """
  environment = dict(os.environ)
  environment['CUDA_VISIBLE_DEVICES'] = ''
  environment.pop('VIRTUAL_ENV', None)
  cores = machine.cores if machine else 0
  if cores:
    environment['OMP_NUM_THREADS'] = str(cores)
  environment.update(variables or {})
  chosen = sorted(os.sched_getaffinity(0))[-cores:]
  with tempfile.TemporaryFile('w+') as errors:
    process = subprocess.Popen(
      command,
      stdout=subprocess.PIPE,
      stderr=errors,
      stdin=subprocess.DEVNULL,
      cwd=directory,
      env=environment,
      text=True,
      start_new_session=True,
      preexec_fn=lambda: os.sched_setaffinity(0, chosen),
    )
    try:
      output, _ = process.communicate(timeout=seconds)
    except BaseException as error:
      # With all its descendants.
      with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
      process.wait()
      if isinstance(error, subprocess.TimeoutExpired):
        raise CannotRunError(f'took more than {seconds:g} s') from None
      raise
    if process.returncode:
      errors.seek(0)
      lines = errors.read().strip().splitlines() or ['no word']
      named = [line for line in lines if re.match(r'[\w.]*Error\b', line)]
      raise CannotRunError(
        f'{os.path.basename(command[0])} ended with {process.returncode}: '
        f'{(named or lines)[-1][:_MAX_WORDS]}'
      )
  return output
