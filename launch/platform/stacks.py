"""Stack traces of threads."""

import faulthandler
import tempfile


def of_this_process() -> str:
  """Returns the stack traces of all threads of this process."""
  with tempfile.TemporaryFile('w+') as file:
    faulthandler.dump_traceback(file, all_threads=True)
    file.seek(0)
    return file.read()
