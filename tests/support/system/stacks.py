"""The stacks of versions that tests run with."""

import importlib.util
import pathlib
import subprocess
import sys

import pytest

from repertory.components.runtime import versions
from repertory.launch.launchers import rpc
from support.system import program, rare_cases

NO_LAUNCHPAD = 'about Launchpad, which does not support this Python'
HAS_LAUNCHPAD = importlib.util.find_spec('launchpad') is not None

# Constraints files by Python version.
CONSTRAINTS = {
  '3.10': 'constraints.txt',
  '3.11': 'constraints-3.11.txt',
  '3.12': 'constraints-3.12.txt',
  '3.13': 'constraints-3.12.txt',
}

HERE = '{}.{}'.format(*sys.version_info[:2])
# A Python of each stack, and those of stacks that come with Reverb.
EACH = ('3.10', '3.11', '3.12')
WITH_REVERB = EACH[:2]
# The stacks to which runs move from this one.
OTHERS = tuple(v for v in EACH if CONSTRAINTS[v] != CONSTRAINTS[HERE])

# The implementation of remote calls that daily tests with `each_carrier` use.
usual_carrier = pytest.mark.parametrize(
  'each_carrier',
  rare_cases.daily([rpc.COURIER, rpc.GRPC], [rpc.chosen()]),
  indirect=True,
)

_ROOT = pathlib.Path(__file__).resolve().parents[3]
# Prints the version of a Python that has this checkout.
_TELL = (
  'import sys, repertory; '
  "print('{}.{}'.format(*sys.version_info[:2]), *repertory.__path__)"
)


def require_reverb() -> None:
  """Skips a test about Reverb where it is not installed."""
  if not versions.has_reverb():
    pytest.skip('about Reverb, which is not installed')


def find(wanted: str) -> str:
  """Returns a Python of a version, whose stack is installed if missing."""
  for python in sorted(_ROOT.glob('.venv*/bin/python')):
    if _is(wanted, str(python)):
      return str(python)
  folder = f'.venv_{wanted}'
  program.run(
    _ROOT / '.ci' / 'set_up',
    cwd=_ROOT,
    PYTHON=wanted,
    VENV=folder,
    EXTRAS='cpu',
  )
  python = str(_ROOT / folder / 'bin' / 'python')
  assert _is(wanted, python)
  return python


def _is(wanted: str, python: str) -> bool:
  output = subprocess.run(
    [python, '-c', _TELL],
    cwd='/',
    stdout=subprocess.PIPE,
    stderr=subprocess.DEVNULL,
    text=True,
    timeout=300,
  ).stdout
  version, *places = output.split() or ['']
  return version == wanted and any(
    pathlib.Path(place).resolve() == _ROOT for place in places
  )
