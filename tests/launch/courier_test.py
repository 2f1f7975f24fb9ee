"""Courier, as this project relies on it."""

import concurrent.futures

import numpy as np
import pytest

import stacks

courier = pytest.importorskip('courier', reason=stacks.NO_LAUNCHPAD)
courier_utils = pytest.importorskip('launchpad.nodes.courier.courier_utils')


class _Service:
  def double(self, array):
    return 2 * array


class TestCourier:
  @pytest.mark.parametrize('dtype', [np.float32, np.int64, np.uint8])
  def test_numpy_arguments_come_back_within_the_deadline(self, dtype):
    # Some published versions of Launchpad never answer a call like this.
    server = courier_utils.make_courier_server(_Service())
    server.Start()
    try:
      client = courier.Client(f'localhost:{server.port}', call_timeout=20)
      array = np.arange(32 * 8).reshape(32, 8).astype(dtype)
      for _ in range(10):
        call = client.futures.double(array)
        done, _ = concurrent.futures.wait([call], timeout=20)
        assert done, 'Courier did not answer.'
        result = call.result()
        np.testing.assert_array_equal(result, 2 * array)
        assert result.dtype == dtype
    finally:
      server.Stop()
      server.Join()
