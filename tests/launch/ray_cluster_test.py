"""Tests of `launch/launchers/ray_cluster.py` that need no cluster."""

import pytest

from repertory.components.config import settings

pytest.importorskip('ray')

from repertory.launch.launchers import ray_cluster


def test_an_error_of_ray_without_a_text_has_its_class():
  message = r"must be that of a Ray cluster, got 'here:1': ConnectionError$"
  with (
    pytest.raises(settings.SettingError, match=message),
    ray_cluster._setting_errors('here:1'),
  ):
    raise ConnectionError
