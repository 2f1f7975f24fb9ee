"""Tests of environment variables set by importing the package."""

import os
import subprocess
import sys

import pytest

_DEFAULTS = {'TF_FORCE_GPU_ALLOW_GROWTH': 'true', 'TF_ENABLE_ONEDNN_OPTS': '1'}


@pytest.mark.parametrize('before', [{}, dict.fromkeys(_DEFAULTS, 'false')])
def test_are_set_unless_they_were(before):
  others = {k: v for k, v in os.environ.items() if k not in _DEFAULTS}
  found = subprocess.run(
    [
      sys.executable,
      '-c',
      'import os, repertory, sys\n'
      "assert 'tensorflow' not in sys.modules, 'reads them when imported'\n"
      f'print(*(os.environ[name] for name in {list(_DEFAULTS)}))',
    ],
    env={**others, **before},
    check=True,
    capture_output=True,
    text=True,
    timeout=120,
  )
  assert found.stdout.split() == list({**_DEFAULTS, **before}.values())
