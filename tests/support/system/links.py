"""A local network link that can be cut."""

import contextlib
import socket
import threading


class Link:
  """Proxy of TCP connections to a port."""

  def __init__(self, port: int):
    self._to = port
    self._entrance = socket.create_server(('127.0.0.1', 0))
    self.port = self._entrance.getsockname()[1]
    self.carried = threading.Semaphore(0)
    self._ends: list[socket.socket] = []
    self._is_silent = threading.Event()  # Sockets of the connections so far.
    self._threads = [threading.Thread(target=self._accept)]

  def __enter__(self):
    self._threads[0].start()
    return self

  def __exit__(self, *error):
    self._entrance.shutdown(socket.SHUT_RDWR)
    self._threads[0].join()
    self.cut()
    for thread in self._threads:
      thread.join()
    for end in (self._entrance, *self._ends):
      end.close()

  def cut(self):
    """Closes all connections, which both sides notice."""
    for end in self._ends:
      with contextlib.suppress(OSError):
        end.shutdown(socket.SHUT_RDWR)

  def fall_silent(self):
    """Silently drops all data of the connections so far."""
    self._is_silent.set()
    self._is_silent = threading.Event()

  def _accept(self):
    while True:
      try:
        near, _ = self._entrance.accept()
      except OSError:  # The proxy is shut down.
        return
      self._ends.append(near)
      try:
        far = socket.create_connection(('127.0.0.1', self._to))
      except OSError:  # The target does not listen.
        near.shutdown(socket.SHUT_RDWR)
        continue
      self._ends.append(far)
      for ends in ((near, far), (far, near)):
        thread = threading.Thread(
          target=self._carry, args=[*ends, self._is_silent]
        )
        self._threads.append(thread)
        thread.start()
      self.carried.release()

  def _carry(self, source, target, is_silent):
    with contextlib.suppress(OSError):
      while data := source.recv(1 << 16):
        if not is_silent.is_set():
          target.sendall(data)
    for end in (source, target):
      with contextlib.suppress(OSError):
        end.shutdown(socket.SHUT_RDWR)
