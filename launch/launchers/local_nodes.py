"""Nodes in threads or processes of this host, launched without Launchpad.

Used where Launchpad is not installed. Works in any thread, since it handles no
signals.
"""

import contextlib
import functools
import os
import pickle
import subprocess
import sys
import threading
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent import futures
from typing import Any

import cloudpickle
from absl import logging

from repertory.components.runtime import network_interfaces
from repertory.launch.launchers import (
  local_workers,
  node_process,
  node_runner,
  polled_workers,
  rpc,
)
from repertory.launch.launchers import node_graph as node_graph_lib
from repertory.launch.platform import child_processes, printed
from repertory.launch.platform import ports as ports_lib


@contextlib.contextmanager
def launch_threads(
  program: node_graph_lib.NodeGraph, log_directory: str
) -> Iterator[local_workers.ThreadWorkers]:
  """Launches nodes in threads of this process; see `Launcher.launch`."""
  printed.set_aside(log_directory)
  hosts, threads, outcomes = node_runner.NodeRunners(), {}, {}
  with contextlib.ExitStack() as stack:  # Ends all that was started.
    stack.enter_context(node_runner.shared_interpreter())
    ports = stack.enter_context(held_ports(program))
    stack.callback(lambda: hosts.end(list(threads.values())))
    rpc_name = rpc.chosen()
    for name, launch_spec in _load(program, ports, rpc_name).items():
      outcomes[name] = futures.Future()
      thread = threading.Thread(
        target=_run,
        args=[launch_spec, ports.get(name), hosts, outcomes[name]],
        name=name,
        daemon=True,
      )
      thread.start()
      threads[name] = thread  # Only after a successful start.
    clients = _clients_of(program, ports, rpc_name)
    workers = local_workers.ThreadWorkers(program, clients, threads, outcomes)
    stack.callback(end, workers, hosts)
    yield workers


@contextlib.contextmanager
def launch_processes(
  program: node_graph_lib.NodeGraph, log_directory: str
) -> Iterator[local_workers.LocalProcesses]:
  """Launches nodes in processes of this host; see `Launcher.launch`."""
  printed.set_aside(log_directory)
  environment, processes = make_environment(), {}
  with contextlib.ExitStack() as stack:  # Ends all that was started.
    ports = stack.enter_context(held_ports(program))
    rpc_name = rpc.chosen()
    given = {
      name: pickle.dumps((ports.get(name), network_interfaces.LOOPBACK))
      + cloudpickle.dumps(launch_spec)
      for name, launch_spec in _load(program, ports, rpc_name).items()
    }
    paths = paths_of(program, log_directory)
    stack.callback(lambda: end_processes(processes.values(), environment))
    for name in program.names:
      processes[name] = child_processes.start(
        child_processes.node_command(name),
        environment,
        paths[name],
        given[name],
      )
    clients = _clients_of(program, ports, rpc_name)
    workers = local_workers.LocalProcesses(
      program, clients, processes, paths, environment, given
    )
    stack.callback(end, workers)
    yield workers


@contextlib.contextmanager
def held_ports(
  program: node_graph_lib.NodeGraph,
) -> Iterator[Mapping[str, int]]:
  """Yields a reserved port for each serving node, by name; see `ports.held`."""
  with contextlib.ExitStack() as stack:
    yield {
      name: stack.enter_context(ports_lib.held()) for name in program.served
    }


def make_environment() -> dict[str, str]:
  """Returns additional environment variables of the processes of a launch."""
  return {
    # Child processes must find the same modules as this process.
    'PYTHONPATH': os.pathsep.join(path for path in sys.path if path),
    child_processes.LAUNCHER_VARIABLE: str(os.getpid()),
    child_processes.RUN_VARIABLE: uuid.uuid4().hex,
  }


def paths_of(
  program: node_graph_lib.NodeGraph, log_directory: str
) -> dict[str, str]:
  """Returns the output file of each node's process, by name."""
  return {
    name: os.path.join(log_directory, label)
    for name, label in program.labels.items()
  }


def end(
  workers: polled_workers.PolledWorkers,
  hosts: node_runner.NodeRunners | None = None,
) -> None:
  """Ends nodes, and warns of those that do not end.

  Args:
    workers: The nodes.
    hosts: Node runners in threads, which are ended afterwards; None for
      processes.
  """
  if hosts is not None:
    hosts.is_forced = workers.is_forced
  for name in workers.end():
    logging.warning('%s did not end.', name)


def end_processes(
  processes: Iterable[subprocess.Popen], environment: Mapping[str, str]
) -> None:
  """Ends all started processes, and their orphans."""
  for process in processes:
    # The process id of an ended process may have been reused.
    if process.poll() is None:
      child_processes.kill_tree(process)
  child_processes.kill_orphans(environment[child_processes.RUN_VARIABLE], set())


def _load(
  program: node_graph_lib.NodeGraph, ports: Mapping[str, int], rpc_name: str
) -> dict[str, node_process.NodeLaunchSpec]:
  """Returns the launch spec of each node, by name."""
  addresses = _addresses_of(ports)
  return {
    name: node_process.NodeLaunchSpec.of(
      program,
      name,
      {callee: addresses[callee] for callee in program.callees_of(name)},
      rpc_name,
    )
    for name in program.names
  }


def _addresses_of(ports: Mapping[str, int]) -> dict[str, str]:
  return {
    n: network_interfaces.LOOPBACK.address(port) for n, port in ports.items()
  }


def _clients_of(
  program: node_graph_lib.NodeGraph, ports: Mapping[str, int], rpc_name: str
) -> dict[str, Callable[[], Any]]:
  """Returns a client factory of each serving node, by name."""
  make = rpc.get(rpc_name).make_client
  seconds = program.call_timeout_seconds
  return {
    name: functools.partial(make, address, seconds, program.token)
    for name, address in _addresses_of(ports).items()
  }


def _run(
  launch_spec: node_process.NodeLaunchSpec,
  port: int | None,
  hosts: node_runner.NodeRunners,
  outcome: futures.Future,
) -> None:
  """Runs a node in a thread, and stores its exception."""
  try:
    host = launch_spec.make_host(generation=0, can_restart=False)
    hosts.add(launch_spec.plan.kind, host)
    launch_spec.run(host, port)
    outcome.set_result(None)
  except BaseException as error:
    outcome.set_exception(error)
