"""Fixtures for tests of calls between nodes."""

import pytest

import called
from repertory.launch.platform import ports


@pytest.fixture(name='port')
def _port():
  """A port that is free for a server."""
  with ports.held() as port:
    yield port


@pytest.fixture(name='service')
def _service():
  """A service for calls, which answers those that wait at the end."""
  service = called.Service()
  yield service
  service.release.set()


@pytest.fixture(name='client')
def _client(rpc_name, port, service):
  """Calls `service`, by the test's own `rpc_name`."""
  with called.serving(rpc_name, port, service):
    yield rpc_name.make_client(
      f'localhost:{port}', called.SECONDS, called.TOKEN
    )
    service.release.set()
