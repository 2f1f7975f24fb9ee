"""What the command `repertory` starts, before the imports that take seconds."""

import contextlib
import importlib
import os
import signal
import sys
from collections.abc import Iterator

from repertory.launch.host import lost_readers

_SIGNAL_BASE = 128  # Plus the number of the signal.


def main() -> None:
  """Runs a command and exits: 0 done, 1 failed, 2 bad input, 3 not saved."""
  # TensorFlow's remarks on the machine are no answer to what was asked.
  os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '2')
  with _exiting_on_interrupt():
    commands = importlib.import_module('repertory.launch.commands.commands')
  try:
    code = commands.run(sys.argv[1:])
    print(end='', flush=True)  # Here, where its failure can be caught.
  except BrokenPipeError:
    # Python writes what is left when it ends.
    if not lost_readers.let_go():
      raise
    code = _SIGNAL_BASE + signal.SIGPIPE
  sys.exit(code)


@contextlib.contextmanager
def _exiting_on_interrupt() -> Iterator[None]:
  """Lets Ctrl-C end the process at once, while there is nothing to save.

  An exception would go through imports of others, which may turn it into
  another one or drop it.
  """

  def leave(number, frame):
    del frame
    os.write(2, b'repertory: interrupted\n')
    os._exit(_SIGNAL_BASE + number)

  old_handler = signal.signal(signal.SIGINT, leave)
  try:
    yield
  finally:
    signal.signal(signal.SIGINT, old_handler)
