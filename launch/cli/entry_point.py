"""Entry point of the command `repertory`, before slow imports."""

import importlib
import io
import os
import signal
import sys
from collections.abc import Sequence

from repertory.components.runtime import notices
from repertory.launch.platform import interrupts, terminal


def train(arguments: Sequence[str]) -> None:
  """Runs `repertory train` with arguments, and exits."""
  sys.argv = ['repertory', 'train', *arguments]
  main()


def main() -> None:
  """Runs a command and exits: 0 done, 1 failed, 2 bad input, 3 not saved."""
  # Suppresses TensorFlow's log messages about the machine.
  if os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '2') != '0':
    notices.drop()
  # Paths may have bytes that are not UTF-8, which print rejects by default.
  if isinstance(sys.stdout, io.TextIOWrapper):
    sys.stdout.reconfigure(errors='backslashreplace')
  with interrupts.exiting_on_interrupt():
    commands = importlib.import_module('repertory.launch.cli.commands')
  try:
    code = commands.run(sys.argv[1:])
    print(end='', flush=True)  # Raises here, where errors are caught.
  except BrokenPipeError:
    # Python would flush the rest at exit.
    if not terminal.let_go():
      raise
    code = interrupts.EXIT_BASE + signal.SIGPIPE
  sys.exit(code)
