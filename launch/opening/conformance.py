"""Conformance tests of topologies, to be inherited by tests of your own.

    class TestMyTopology(conformance.TopologyConformance):
      def make_topology(self): ...

Run them with pytest: they use its `tmp_path` fixture.
"""

import dataclasses
import os
import pathlib
import pickle
import threading
import time
import unittest
from collections.abc import Callable
from typing import Any

import cloudpickle

from repertory import launch
from repertory.agents import dqn
from repertory.components.config import settings
from repertory.environments.registry import registry
from repertory.launch import failures
from repertory.launch.coordination import kinds
from repertory.launch.experiments import callbacks
from repertory.launch.experiments import experiment as experiment_lib
from repertory.launch.opening import directory, plan
from repertory.launch.topologies import topology as topology_lib

# Processes start slowly on a busy machine.
_SECONDS = 120.0


class TopologyConformance:
  """Tests of the contract of `topologies.topology.Topology`.

  Attributes:
    launch_type: Name of the launcher that runs the nodes.
    max_steps: Length of the first run, in the topology's own steps; enough for
      at least one learner step.
  """

  launch_type = 'local_mt'
  max_steps = 300

  def make_topology(self) -> topology_lib.Topology:
    """Makes the topology."""
    raise NotImplementedError

  def make_experiment(
    self, directory: pathlib.Path, **changes: Any
  ) -> experiment_lib.Experiment:
    """Makes a small experiment for the topology."""
    config = dqn.DQNConfig(
      hidden_sizes=(8,), min_replay_size=50, batch_size=8,
      samples_per_insert=1.0, jit_compile=False,
    )  # fmt: skip
    chosen = {
      'max_steps': self.max_steps,
      'num_actors': 2,
      'environments_per_actor': 2,
      'evaluation_episodes': 2,
      **changes,
    }
    return experiment_lib.Experiment(
      dqn.DQNBuilder(config),
      registry.make_factory('catch'),
      directory=str(directory / 'run'),
      **chosen,
    )

  def test_describes_itself(self):
    topology = self.make_topology()
    assert topology.name and topology.help
    assert dataclasses.is_dataclass(topology)
    hash(topology)  # Its settings must be immutable.
    for setting in settings.describe(type(topology)):
      assert setting.help, f'Setting {setting.name!r} must have a help text.'
    assert pickle.loads(pickle.dumps(topology)) == topology

  def test_graph_shows_all_nodes(self, tmp_path):
    topology = self.make_topology()
    with self._open(self.make_experiment(tmp_path), topology) as session:
      graph = topology.call_graph(session)
      names = {kinds.COORDINATOR.name}
      if topology.has_program:
        for node in topology.program(session):
          names.update(node.names)
    assert names <= set(graph.nodes), (
      f'The graph must show {sorted(names)}; got {graph.nodes}.'
    )
    for pair in (*graph.calls, *graph.shared):
      assert set(pair) <= set(graph.nodes), (
        'Callers, callees and colocated nodes must be among the nodes, '
        f'{graph.nodes}; got {pair}.'
      )

  def test_program_can_be_sent(self, tmp_path):
    topology = self.make_topology()
    if not topology.has_program:
      raise unittest.SkipTest(
        'The topology runs in one thread, without a node graph.'
      )
    with self._open(self.make_experiment(tmp_path), topology) as session:
      for node in topology.program(session):
        for one in (node, *node.beside):
          # Only threads can share objects that cannot be pickled.
          if topology.launch_types is None:
            cloudpickle.dumps(one.make)
        coordinator = kinds.COORDINATOR.name
        assert node.name == coordinator or coordinator in node.calls, (
          f'{node.name!r} must call the coordinator, to send heartbeats.'
        )

  def test_runs_to_the_end_and_resumes(self, tmp_path):
    threads = threading.active_count()
    events = _Events()
    first = self.run(self.make_experiment(tmp_path, callbacks=[events]))
    self._check_steps(first)
    assert first.status.learner_steps > 0, 'There must be a learner step.'
    assert first.status.evaluation_return is not None, (
      'There must be an evaluation.'
    )
    assert os.listdir(os.path.join(first.directory, 'checkpoints'))
    events.check(False, first.status, callbacks.DONE)
    max_steps = 100 * self.max_steps
    events = _Events()
    experiment = self.make_experiment(
      tmp_path,
      max_steps=max_steps,
      evaluation_period=self.max_steps,
      stop_when=lambda status: status.evaluation_return is not None,
      callbacks=[events],
    )
    second = self.run(experiment)
    steps, reason = second.status.steps, second.stopped_early
    assert 2 * self.max_steps <= steps < max_steps, (
      f'stop_when must end the run after an evaluation; it took {steps} steps.'
    )
    assert reason == 'stop_when returned true', reason
    assert second.status.learner_steps > first.status.learner_steps
    assert second.variables_sha256 is not None, 'There must be a checkpoint.'
    events.check(True, second.status, callbacks.STOPPED_EARLY)
    deadline = time.monotonic() + _SECONDS
    while threading.active_count() > threads:
      assert time.monotonic() < deadline, 'All threads of the run must end.'
      time.sleep(0.05)

  def run(self, experiment: experiment_lib.Experiment) -> launch.Result:
    """Runs an experiment to its end."""
    return launch.run(
      experiment, self.make_topology(), self.launch_type, display=False
    )

  def _open(self, experiment, topology):
    """Yields the session of a new run."""
    checked = plan.make_plan(experiment, topology, self.launch_type)
    return directory.open_run(checked)

  def _check_steps(self, result):
    steps, max_steps = result.status.steps, self.max_steps
    # The last step of an environment batch may exceed the limit.
    assert max_steps <= steps < max_steps + 4, (
      f'There must be {max_steps} steps; got {steps}.'
    )
    states = {
      name: state
      for name, state in result.status.nodes
      if kinds.kind_of(name).phase is not None
    }
    # In one thread, nodes do not report when they are done.
    assert set(states.values()) <= {'running', 'done'}, (
      f'All nodes with a phase must be running or done; got {states}.'
    )
    assert result.interrupted is None

  def test_reports_failing_environment(self, tmp_path):
    factory = _FailingFactory(registry.make_factory('catch'))
    experiment = dataclasses.replace(
      self.make_experiment(tmp_path, max_restarts=0, evaluation_episodes=0),
      environment_factory=factory,
    )
    try:
      self.run(experiment)
    except failures.NodeError as error:
      assert kinds.kind_of(error.failure.node).acts
      assert 'out of balls' in error.failure.cause
    else:
      raise AssertionError('A failing node must end the run.')


class _Events(callbacks.Callback):
  """Records the events of a run, in order."""

  def __init__(self):
    self.events: list[Any] = []

  def on_start(self, run):
    self.events.append(run)

  def on_evaluation(self, evaluation):
    self.events.append(evaluation)

  def on_end(self, end):
    self.events.append(end)

  def check(self, is_resumed, status, outcome):
    """Checks the first and last events of a run, and its last evaluation."""
    assert self.events[0].is_resumed == is_resumed
    assert self.events[-2].mean_return == status.evaluation_return
    assert self.events[-1].outcome == outcome, self.events[-1]


@dataclasses.dataclass(frozen=True)
class _FailingFactory:
  """Makes environments that raise after 50 steps."""

  factory: Callable[[int], Any]

  def __call__(self, seed):
    environment = self.factory(seed)
    step, steps = environment.step, []

    def failing_step(action):
      steps.append(action)
      if len(steps) > 50:
        raise RuntimeError('out of balls')
      return step(action)

    environment.step = failing_step
    return environment
