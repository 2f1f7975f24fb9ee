"""Tests of `launch/launchers/ray_cluster.py` that need no cluster."""

import pytest

from repertory.components.config import settings

pytest.importorskip('ray')

from repertory.launch.launchers import ray_cluster


@pytest.mark.parametrize(
  ('error', 'address'),
  [
    (
      'The actor died unexpectedly. pid: 182 namespace: 4 ip: 10.78.0.2 The '
      'actor is dead because its worker process has died.',
      '10.78.0.2',
    ),
    ('pid: 7 namespace: 4 ip: fd78::2. It is dead.', 'fd78::2'),
    ('The actor is unschedulable: its zip: file is missing.', ''),
  ],
)
def test_address_is_that_of_the_host(error, address):
  assert ray_cluster.address_in_error(error) == address


def test_an_error_of_ray_without_a_text_has_its_class():
  message = r"must be that of a Ray cluster, got 'here:1': ConnectionError$"
  with (
    pytest.raises(settings.SettingError, match=message),
    ray_cluster._setting_errors('here:1'),
  ):
    raise ConnectionError
