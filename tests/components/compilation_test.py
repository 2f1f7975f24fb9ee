"""Tests of what compiled functions ask XLA for."""

import os

import pytest

from repertory.components import compilation

_FAST = '--xla_llvm_disable_expensive_passes'
_THREADS = '--xla_cpu_multi_thread_eigen'


@pytest.mark.parametrize(
  ('before', 'cores', 'after'),
  [
    (None, 2, f'{_FAST}=true {_THREADS}=false'),
    ('', 1, f'{_FAST}=true {_THREADS}=false'),
    (None, 3, f'{_FAST}=true'),
    ('--other=1', 4, f'--other=1 {_FAST}=true'),
    # What is set already stays, whatever it is.
    (f'{_THREADS}=true', 2, f'{_THREADS}=true {_FAST}=true'),
    (f'{_FAST}=false', 2, f'{_FAST}=false {_THREADS}=false'),
  ],
)
def test_flags(monkeypatch, before, cores, after):
  monkeypatch.setattr(os, 'sched_getaffinity', lambda _: set(range(cores)))
  # Whatever becomes of it is undone only if it was there.
  monkeypatch.setenv('XLA_FLAGS', before or '')
  if before is None:
    monkeypatch.delenv('XLA_FLAGS')
  for _ in range(2):  # Once is as good as twice.
    compilation.set_xla_flags()
    assert os.environ['XLA_FLAGS'] == after
