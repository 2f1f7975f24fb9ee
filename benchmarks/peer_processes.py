"""Installation of peer libraries, and processes that are measured."""

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
    'opencv-python-headless',
  ),
  'sbx': (
    *_BASELINES,
    'sbx-rl==0.28.0',
    'flax==0.12.8',
    'jax==0.10.2',
    'optax==0.2.8',
  ),
  # For the scripts of 2023 and later. They expect `final_observation` from a
  # vector environment, which Gymnasium 1 no longer has, so they fail at the
  # first time limit; and 0.29 does not work with NumPy 2.
  'cleanrl': (
    'flax==0.10.7',
    'gymnasium[classic-control]==0.29.1',
    'jax==0.6.2',
    'numpy==1.26.4',
    'optax==0.2.5',
    'stable-baselines3==2.3.2',  # The replay buffer of some scripts.
    'tensorboard==2.20.0',
    'torch==2.13.0',
    'tyro==1.0.17',
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
  'stable_baselines3': 'stable_baselines3_run.py',
  'sbx': 'stable_baselines3_run.py',
  'dm_acme': 'dm_acme_run.py',
}


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
    cleanrl: Checkout of CleanRL, or None.
  """

  cores: int
  seconds: float
  python: str | None
  cleanrl: str | None


def install(library: str, machine: Machine) -> str:
  """Creates the library's virtual environment; returns its Python.

  Raises:
    CannotRunError: If it cannot be created.
  """
  if library == 'repertory':
    return sys.executable
  if library == 'cleanrl':
    _check_cleanrl(machine.cleanrl)
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


def run(
  library: str, settings: Mapping[str, Any], steps: int, machine: Machine
) -> Costs:
  """Runs a training in its own process.

  Args:
    library: Name of the library.
    settings: Settings of its script, besides the steps; for CleanRL, `script`
      and `flags`.
    steps: Environment steps.

  Raises:
    CannotRunError: If it fails or exceeds the time limit.
  """
  python = install(library, machine)
  with tempfile.TemporaryDirectory() as directory:
    report = os.path.join(directory, 'report.jsonl')
    before, started = figures.children_seconds(), time.monotonic()
    path = None
    if library == 'cleanrl':
      path = os.path.abspath(_check_cleanrl(machine.cleanrl))
      flags = {**settings['flags'], 'total-timesteps': steps}
      script = os.path.join(path, 'cleanrl', settings['script'])
      command = [python, script, *(f'--{n}={v}' for n, v in flags.items())]
    else:
      case = {
        'seed': 1,
        **settings,
        'library': library,
        'steps': steps,
        'started': started,
        'report': report,
      }
      script = str(_HERE / 'peers' / _SCRIPTS[library])
      command = [python, script, json.dumps(case)]
    _call(command, machine.seconds, machine, directory, path)
    costs = figures.children_seconds() - before, time.monotonic() - started
    report_values = {'steps': steps}
    if os.path.exists(report):
      with open(report) as file:
        for line in file:
          report_values.update(json.loads(line))
  return Costs(*costs, report_values)


def _check_cleanrl(checkout: str | None) -> str:
  """Returns the path of the checkout if it exists."""
  if checkout is None:
    raise CannotRunError('no checkout was named: --cleanrl=<path>')
  if not os.path.isdir(os.path.join(checkout, 'cleanrl')):
    raise CannotRunError(f'no checkout of CleanRL: {checkout}')
  return checkout


def _call(
  command: Sequence[str],
  seconds: float,
  machine: Machine | None = None,
  directory: str | None = None,
  path: str | None = None,
) -> str:
  """Returns the output of a command; kills all its processes on time-out.

  Args:
    command: The command.
    seconds: Time limit.
    machine: Resources of the process; None for all cores.
    directory: Working directory; None for that of this process.
    path: Additional search path for Python modules, or None.

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
  if path is not None:
    environment['PYTHONPATH'] = path
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
