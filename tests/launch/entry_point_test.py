"""Tests of start and end of the process of `repertory`."""

import os
import pathlib
import platform
import signal
import subprocess
import sys
import time

import pytest

from repertory.components.runtime import notices, versions
from support.launch import log_files, written_runs
from support.system import program, rare_cases

_CODE = 'from repertory.launch.cli import entry_point; entry_point.main()'


def test_ends_quietly_when_nobody_reads(tmp_path):
  reader, writer = os.pipe()
  os.close(reader)
  ended = subprocess.run(
    [sys.executable, '-c', _CODE, 'agents'],
    cwd=tmp_path,
    stdout=writer,
    stderr=subprocess.PIPE,
    text=True,
    timeout=60,
  )
  os.close(writer)
  assert ended.returncode == 128 + signal.SIGPIPE
  assert 'Traceback' not in ended.stderr
  assert 'BrokenPipe' not in ended.stderr


def test_paths_that_are_not_utf8_are_printed(tmp_path):
  written_runs.write(tmp_path / 'runs/a')
  ended = subprocess.run(
    [sys.executable, '-c', _CODE, 'report', 'runs', b'--output=\xff.html'],
    cwd=tmp_path,
    env={**os.environ, 'PYTHONIOENCODING': 'utf-8:strict'},
    capture_output=True,
    text=True,
    timeout=60,
  )
  assert (ended.returncode, ended.stderr) == (0, '')
  assert ended.stdout == 'Report: \\udcff.html\n'


_WITHOUT_TENSORFLOW = """
import sys
from repertory.launch.cli import commands
code = commands.run(sys.argv[1:])
slow = {'tensorflow', 'sonnet', 'reverb', 'launchpad'} & set(sys.modules)
sys.exit(f'imports {slow}' if slow else code)
"""


_STACK = (
  f'{versions.describe(versions.installed())}, '
  f'on {platform.system()} {platform.machine()}'
)

# By arguments: the exit code and the message.
_LOOKED_AT_FIRST = {
  '--version': (0, f'with Python {platform.python_version()}, {_STACK}\n'),
  'agents ppo': (0, '--config.num_epochs='),
  'environments': (0, '?frame_stack=None'),
  'runs .': (0, 'no run in it'),
  'export . new': (2, 'must hold a checkpoint, found none in .. Train first.'),
  'export new --from_zoo=dqn/none': (2, '--from_zoo must be <agent>/<env'),
  'train --env=tensor:catsh': (2, "'tensor:catch'"),
  'train --topology=single --lp_launch_type=local_mp': (2, 'must be local_mt'),
  'train --config.batch_size=0': (2, '--config.batch_size must be'),
  'sweep --directory=new --config.batch_size=1,0': (2, 'at least 1, got 0'),
  'graph --topology=central --double_buffering=2': (2, 'true or false'),
}


@pytest.mark.parametrize(
  'arguments', rare_cases.daily(_LOOKED_AT_FIRST, [*_LOOKED_AT_FIRST][1::2])
)
def test_flags_are_looked_at_before_tensorflow(arguments, tmp_path):
  code, message = _LOOKED_AT_FIRST[arguments]
  ended = subprocess.run(
    [sys.executable, '-c', _WITHOUT_TENSORFLOW, *arguments.split()],
    cwd=tmp_path,
    capture_output=True,
    text=True,
    timeout=60,
  )
  assert message in ended.stdout + ended.stderr
  assert ended.returncode == code, ended.stderr


# With a later Reverb in its first folder, whatever is installed otherwise.
_LATER_REVERB = """
import sys
sys.path.insert(0, sys.argv[1])
from repertory import launch
from repertory.launch.cli import commands
from repertory.launch.topologies import topology
commands.run(['--version'])
experiment = launch.make_experiment('dqn', 'catch', max_steps=1, directory='')
laid_out, _ = topology.lay_out(experiment, 'distributed', 'local_mp')
print(*laid_out.transports(experiment))
"""


def test_reverb_is_used_where_it_is_installed(tmp_path):
  (tmp_path / 'reverb').mkdir()
  (tmp_path / 'reverb/__init__.py').touch()
  (tmp_path / 'dm_reverb-0.15.0.dist-info').mkdir()
  (tmp_path / 'dm_reverb-0.15.0.dist-info/METADATA').write_text(
    'Metadata-Version: 2.1\nName: dm-reverb\nVersion: 0.15.0\n'
  )
  ended = subprocess.run(
    [sys.executable, '-c', _LATER_REVERB, str(tmp_path)],
    cwd=tmp_path,
    capture_output=True,
    text=True,
    timeout=300,
  )
  assert ended.returncode == 0, ended.stderr
  version, transports = ended.stdout.splitlines()
  assert ', Reverb 0.15.0, ' in version
  assert transports == 'reverb served'


# Modules with code that a run of DQN imports, beside packages.
_CLOSURE = """
import sys
from repertory import launch
experiment = launch.make_experiment(
  'dqn', 'catch', max_steps=300, directory='run', evaluation_episodes=0
)
launch.run(experiment, display=False)
assert 'reverb' not in sys.modules
files = [
  sys.modules[name].__file__
  for name in sys.modules
  if name.startswith('repertory.')
]
print(*(file for file in files if not file.endswith('__init__.py')), sep='\\n')
"""


def test_run_imports_only_what_it_uses(tmp_path):
  ended = subprocess.run(
    [sys.executable, '-c', _CLOSURE],
    cwd=tmp_path,
    capture_output=True,
    text=True,
    timeout=300,
  )
  assert ended.returncode == 0, ended.stderr
  imported = ended.stdout.split()
  assert any(file.endswith('agents/dqn/config.py') for file in imported)
  assert len(imported) <= 150, '\n'.join(imported)


@pytest.mark.chaos
def test_training_continues_when_nobody_reads(tmp_path):
  flags = ['--agent=dqn', '--env=catch', '--steps=300', '--directory=run']
  errors = tmp_path / 'errors.txt'
  with errors.open('w') as file:
    training = subprocess.Popen(
      [sys.executable, '-c', _CODE, 'train', *flags],
      cwd=tmp_path,
      stdout=subprocess.PIPE,
      stderr=file,
      # Other libraries let TensorFlow warn by default.
      env={**os.environ, 'TF_CPP_MIN_LOG_LEVEL': '2'},
    )
  try:
    head = subprocess.run(
      ['head', '-1'], stdin=training.stdout, capture_output=True, timeout=60
    )
    training.stdout.close()
    code = training.wait(60)
  finally:
    training.kill()
    training.wait()
  assert head.stdout.startswith(b'dqn on catch')
  assert (code, errors.read_text()) == (0, '')
  assert log_files.rows(tmp_path / 'run', 'replay')[-1]['steps'] >= 300
  assert os.listdir(tmp_path / 'run' / 'checkpoints')


def test_interrupt_during_imports(tmp_path):
  running = program.repertory('train', cwd=tmp_path)
  maps = pathlib.Path(f'/proc/{running.pid}/maps')
  # TensorFlow's library is mapped early in its import, which continues.
  deadline = time.monotonic() + 60
  while 'tensorflow' not in maps.read_text():
    assert time.monotonic() < deadline
    time.sleep(0.01)
  running.interrupt()
  ended = running.wait(60)
  assert ended.code == 128 + signal.SIGINT
  assert ended.output == 'repertory: interrupted\n'
  assert os.listdir(tmp_path) == [
    name for name in os.listdir(tmp_path) if name.startswith('output-')
  ]


def test_interrupt_before_the_run_is_set_up(tmp_path):
  code = """
import os, signal
from repertory.launch.cli import entry_point
from repertory.launch.experiments import environment_batches

def find_spec(experiment):
  os.kill(os.getpid(), signal.SIGINT)

environment_batches.find_spec = find_spec
entry_point.main()
"""
  ended = program.Program(
    ['-c', code, 'train', '--directory=run'], str(tmp_path)
  ).wait(60)
  assert ended.code == 128 + signal.SIGINT
  assert ended.output == 'repertory: interrupted\n'
  assert not (tmp_path / 'run').exists()


def test_tensorflow_is_imported_without_notices(tmp_path):
  code = (
    'from repertory.components.runtime import notices; '
    'notices.drop(); import tensorflow'
  )
  ended = subprocess.run(
    [sys.executable, '-c', code],
    cwd=tmp_path,
    env={**os.environ, 'TF_CPP_MIN_LOG_LEVEL': '2'},
    capture_output=True,
    text=True,
    timeout=300,
  )
  assert (ended.returncode, ended.stderr) == (0, '')


def test_only_notices_are_dropped(capfd):
  with notices.dropped():
    os.write(2, b'I0000 00:00 port.cc:153] oneDNN custom operations are on.\n')
    os.write(2, b'E0000 00:00 cuda.cc:1] failed\nImportError: I0000\n')
    print('and Python', file=sys.__stderr__)
  expected = 'E0000 00:00 cuda.cc:1] failed\nImportError: I0000\nand Python\n'
  assert capfd.readouterr().err == expected
