"""Conformance tests of topologies, to be inherited by tests of your own.

    class TestMyTopology(conformance.TopologyConformance):
      def make_topology(self): ...

Run them with pytest: they use its `tmp_path` fixture.
"""

import dataclasses
import gc
import os
import pathlib
import pickle
import threading
import time
import unittest
import weakref
from collections.abc import Callable, Mapping
from typing import Any

import cloudpickle
import numpy as np

from repertory.agents import dqn
from repertory.components.actors import episode_metrics
from repertory.components.config import settings
from repertory.environments.registry import registry
from repertory.launch.coordination import kinds
from repertory.launch.experiments import callbacks, failures
from repertory.launch.experiments import experiment as experiment_lib
from repertory.launch.nodes import node as node_lib
from repertory.launch.opening import resuming
from repertory.launch.running import run
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
    experiment = self.make_experiment(tmp_path)
    topology.check(experiment)
    transports = topology.transports(experiment)
    with resuming.open_session(experiment, kinds=transports) as session:
      graph = topology.call_graph(session)
      names = {kinds.COORDINATOR.name}
      if topology.has_program:
        for plan in topology.program(session, 'title'):
          names.update(one.name for one in (plan, *plan.beside))
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
    with resuming.open_session(self.make_experiment(tmp_path)) as session:
      for plan in topology.program(session, 'title'):
        for one in (plan, *plan.beside):
          # Only threads can share objects that cannot be pickled.
          if topology.launch_types is None:
            cloudpickle.dumps(one.make)
        coordinator = kinds.COORDINATOR.name
        assert plan.name == coordinator or coordinator in plan.calls, (
          f'{plan.name!r} must call the coordinator, to send heartbeats.'
        )

  def test_runs_to_the_end_and_resumes(self, tmp_path):
    threads, nodes = threading.active_count(), _find_nodes()
    first, callback = self._run_observed(tmp_path)
    self._check_steps(first, self.max_steps)
    assert first.status.learner_steps > 0, 'There must be a learner step.'
    assert first.status.evaluation_return is not None, (
      'There must be an evaluation.'
    )
    assert os.listdir(os.path.join(first.directory, 'checkpoints'))
    callback.check(first.status, callbacks.DONE)
    max_steps = 100 * self.max_steps
    second, callback = self._run_observed(
      tmp_path,
      max_steps=max_steps,
      evaluation_period=self.max_steps,
      stop_when=lambda status: status.evaluation_return is not None,
    )
    steps, reason = second.status.steps, second.stopped_early
    assert 2 * self.max_steps <= steps < max_steps, (
      f'stop_when must end the run after an evaluation; it took {steps} steps.'
    )
    assert reason == 'stop_when returned true', reason
    assert callback.started[0].is_resumed, 'The second run must resume.'
    assert second.status.learner_steps > first.status.learner_steps
    assert second.variables_sha256 is not None, 'There must be a checkpoint.'
    callback.check(second.status, callbacks.STOPPED_EARLY)
    _wait(
      lambda: threading.active_count() <= threads,
      'all threads of the run to end',
    )
    # Otherwise their networks and tables would leak.
    _wait(lambda: _find_nodes() <= nodes, 'all nodes to be garbage collected')

  def run(self, experiment: experiment_lib.Experiment) -> run.Result:
    """Runs an experiment to its end."""
    return run.run(
      experiment, self.make_topology(), self.launch_type, display=False
    )

  def _run_observed(self, directory, **changes):
    """Runs an experiment; returns its result and an observer of it."""
    callback = _Callback()
    experiment = self.make_experiment(
      directory,
      callbacks=[callback],
      evaluation_metrics={'counted': _CountedSteps},
      **changes,
    )
    return self.run(experiment), callback

  def _check_steps(self, result, max_steps):
    steps = result.status.steps
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


def _find_nodes() -> weakref.WeakSet[node_lib.Node]:
  """Returns the live node objects of this process."""
  gc.collect()
  # Not `isinstance`, which fails on weak proxies of deleted objects.
  return weakref.WeakSet(
    one for one in gc.get_objects() if issubclass(type(one), node_lib.Node)
  )


class _Callback(callbacks.Callback):
  """Records all callbacks."""

  def __init__(self):
    self.started: list[callbacks.RunEvent] = []
    self.ended: list[callbacks.EndEvent] = []
    self.lengths: list[np.ndarray] = []
    self.rows: list[Mapping[str, Any]] = []
    self.evaluations: list[callbacks.EvaluationEvent] = []

  def on_start(self, run):
    self.started.append(run)

  def on_episodes(self, episodes):
    assert len(self.started) == 1
    self.lengths.append(episodes.lengths)

  def on_learner_row(self, row):
    self.rows.append(row)

  def on_evaluation(self, evaluation):
    self.evaluations.append(evaluation)

  def on_end(self, end):
    self.ended.append(end)

  def check(self, status, outcome):
    """Compares the recorded callbacks with the last status of the run."""
    (run,), (end,) = self.started, self.ended
    assert end.outcome == outcome, f'The outcome must be {outcome}; got {end}.'
    num_episodes = sum(map(len, self.lengths))
    assert run.episodes + num_episodes == status.episodes, (
      f'There must be {status.episodes - run.episodes} episodes; got '
      f'{num_episodes}.'
    )
    assert sum(row['count'] for row in self.rows) == (
      status.learner_steps - run.learner_steps
    ), 'The counts of learner rows must add up to the learner steps.'
    last = self.evaluations[-1]
    assert last.mean_return == status.evaluation_return
    assert (last.metrics['counted'] == last.lengths).all(), (
      f'Metrics must see all steps, {last.lengths}; got {last.metrics}.'
    )


class _CountedSteps(episode_metrics.EpisodeMetric):
  """Counts the steps of an episode."""

  def begin(self, timestep):
    assert timestep.first()
    self._count = 0

  def step(self, action, timestep):
    assert np.shape(action) == () and not timestep.first()
    self._count += 1

  def value(self):
    return self._count


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


def _wait(condition: Callable[[], Any], what: str) -> None:
  deadline = time.monotonic() + _SECONDS
  while not condition():
    assert time.monotonic() < deadline, f'Waited {_SECONDS:g} s for {what}.'
    time.sleep(0.05)
