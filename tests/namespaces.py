"""Network namespaces, with which one machine plays several."""

import shutil
import subprocess

# Makes one, even without privileges, which dies with the test.
WITHIN_ONE = (
  'unshare', '--map-root-user', '--net', '--mount', '--fork', '--kill-child',
)  # fmt: skip


def can_be_made() -> bool:
  """Returns whether this machine lets us."""
  if not shutil.which('unshare') or not shutil.which('ip'):
    return False
  trial = [*WITHIN_ONE, 'ip', 'link', 'set', 'lo', 'up']
  return subprocess.run(trial, check=False, timeout=20).returncode == 0
