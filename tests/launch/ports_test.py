"""Tests of reserved ports."""

import contextlib
import socket

import pytest

from repertory.launch.launchers import rpc
from repertory.launch.platform import ports


@pytest.fixture(name='library')
def _carrier(each_carrier):
  return rpc.get(each_carrier)


def _serve(stack, library, port, answer):
  served = {'answer': lambda: answer}
  stack.enter_context(
    library.serving(port, served, num_threads=1, token='the token')
  )


def test_nobody_else_is_given_it():
  with contextlib.ExitStack() as stack:
    held = [stack.enter_context(ports.held()) for _ in range(200)]
    assert len(set(held)) == 200
    for family, address in (
      (socket.AF_INET, '127.0.0.1'),
      (socket.AF_INET6, '::1'),
    ):
      with socket.socket(family) as other, pytest.raises(OSError, match='use'):
        other.bind((address, held[0]))


def test_a_server_gets_it_and_after_its_end_another(library):
  with ports.held() as port:
    for answer in (42, 43):
      with contextlib.ExitStack() as stack:
        _serve(stack, library, port, answer)
        client = library.make_client(f'localhost:{port}', 20, 'the token')
        assert client.answer() == answer


def test_a_second_server_is_refused(library):
  with ports.held() as port, contextlib.ExitStack() as stack:
    _serve(stack, library, port, 42)
    with pytest.raises(Exception, match=r'Failed to (start Courier|bind)'):
      _serve(stack, library, port, 43)
    client = library.make_client(f'localhost:{port}', 20, 'the token')
    assert client.answer() == 42
