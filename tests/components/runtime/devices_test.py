"""Tests of `components/runtime/devices.py`."""

import pytest

from repertory.components.runtime import devices


@pytest.mark.parametrize(
  ('kinds', 'num_updates', 'expected'),
  [
    (['CPU'], 999, False),
    (['CPU'], 1_000, True),
    (['CPU', 'CPU'], 999, False),  # A CPU that was split.
    (['CPU', 'GPU'], 999, True),
    (['CPU', 'GPU', 'GPU'], 1, True),
    (['CPU', 'TPU'], 999, True),
    (['GPU'], 1_000, True),
  ],
)
def test_xla_always_pays_beside_an_accelerator(kinds, num_updates, expected):
  found = devices.should_use_xla(num_updates, 1_000, kinds)
  assert found is expected
