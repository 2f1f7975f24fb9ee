"""Start of threads and processes by Launchpad.

The only module that depends on Launchpad and its private parts.
"""

import contextlib
import io
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import launchpad as lp
from absl import flags
from launchpad.launch.run_locally import launch_local_output_to_files
from launchpad.nodes.python import local_multi_processing

from repertory.launch.platform import interrupts


@contextlib.contextmanager
def started(
  labels: Mapping[str, str],
  runs: Mapping[str, Callable[[], None]],
  log_directory: str,
  environment: Mapping[str, str] | None = None,
) -> Iterator[dict[str, Any]]:
  """Starts nodes; forgets them when the block ends.

  Yields:
    Processes by name; for threads, nothing.
  """
  program = lp.Program('repertory')
  for name, run in runs.items():
    program.add_node(lp.PyNode(run), label=labels[name].split('/')[0])
  if not flags.FLAGS.is_parsed():
    # Keeps Launchpad from parsing command lines of programs with other flags,
    # such as pytest's `-v`.
    flags.FLAGS.mark_as_parsed()
  with contextlib.ExitStack() as stack:
    settings = {'launch_type': 'local_mt'}
    if environment is not None:
      # Where the next run can remove the files of a killed one.
      directory = os.path.join(log_directory, '.programs')
      shutil.rmtree(directory, ignore_errors=True)
      os.makedirs(directory)
      stack.callback(shutil.rmtree, directory, ignore_errors=True)
      settings = {
        'launch_type': 'local_mp',
        'local_resources': {
          label: local_multi_processing.PythonProcess(env=environment)
          for label in program.groups
        },
        'terminal': 'output_to_files',
      }
    manager = _launch(program, settings, log_directory)
    workers = manager._active_workers
    # Otherwise Launchpad would wait for them at exit, and report their ends.
    stack.callback(workers.clear)
    if environment is None:
      yield {}
    else:
      yield {name: workers[label][0] for name, label in labels.items()}


def _launch(
  program: lp.Program, settings: Mapping[str, Any], log_directory: str
) -> Any:
  """Returns the worker manager of a launch; changes no signal handlers."""
  with contextlib.ExitStack() as stack:
    stack.enter_context(interrupts.restored())
    if 'local_resources' in settings:
      # Not for threads, of which the first may print already.
      stack.enter_context(contextlib.redirect_stdout(io.StringIO()))
      stack.callback(setattr, tempfile, 'tempdir', tempfile.tempdir)
      tempfile.tempdir = os.path.join(log_directory, '.programs')
      # Read from the environment only when it is imported.
      launch_local_output_to_files._LOGGING_DIR = log_directory
    return lp.launch(program, **settings)
