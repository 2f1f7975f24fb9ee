"""Tests of `components/runtime/devices.py`."""

import pytest
import tensorflow as tf

from repertory.components.runtime import devices


@pytest.mark.parametrize(
  ('kinds', 'num_updates', 'expected'),
  [
    (['CPU'], 999, False),
    (['CPU'], 1_000, True),
    (['CPU', 'CPU'], 999, False),  # A CPU that was split.
    (['CPU', 'GPU'], 1, True),
  ],
)
def test_xla_always_pays_beside_an_accelerator(
  kinds, num_updates, expected, monkeypatch
):
  physical = [
    tf.config.PhysicalDevice(f'/physical_device:{kind}:0', kind)
    for kind in kinds
  ]
  monkeypatch.setattr(tf.config, 'get_visible_devices', lambda: physical)
  found = devices.should_use_xla(num_updates, 1_000)
  assert found is expected
