"""Fixtures for tests of commands, and of calls between nodes."""

import pytest

from repertory.launch.cli import commands
from repertory.launch.platform import ports
from support.launch import called


@pytest.fixture
def run_command(capsys):
  """Runs a `repertory` command; returns its exit code, output and errors."""

  def run(*arguments: str) -> tuple[int, str, str]:
    code = commands.run(arguments)
    captured = capsys.readouterr()
    return code, captured.out, captured.err

  return run


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
def _client(library, port, service):
  """Calls `service`, by the test's own `library`."""
  with called.serving(library, port, service):
    yield library.make_client(f'localhost:{port}', called.SECONDS, called.TOKEN)
    service.release.set()
