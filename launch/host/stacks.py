"""Where threads are."""

import faulthandler
import tempfile


def of_this_process() -> str:
  """Returns where the threads of this process are."""
  with tempfile.TemporaryFile('w+') as file:
    faulthandler.dump_traceback(file, all_threads=True)
    file.seek(0)
    return file.read()
