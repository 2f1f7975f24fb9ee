"""Nodes that others call."""

import abc
import threading

from repertory.components import loopback


class Service(abc.ABC):
  """A node that serves calls from this machine until it is shut down."""

  def __init__(self):
    self._shut_down = threading.Event()

  def set_courier_server(self, server) -> None:
    """Takes the server that Launchpad made, which is then ours to start."""
    self._courier_server = server

  def run(self) -> None:
    """Takes calls, does the node's part, and ends."""
    server = self._courier_server
    server.Start()
    try:
      loopback.restrict(server.port)
      self._work()
    finally:
      server.Stop()
      server.Join()

  def shutdown(self) -> None:
    """Lets the node end."""
    self._shut_down.set()

  @abc.abstractmethod
  def _work(self) -> None:
    """Does the node's part, and returns after it was shut down."""
