"""Tests of curves over seeds."""

import numpy as np
import pytest

from repertory.components.config.settings import SettingError
from repertory.launch import results
from repertory.launch.results import curves, groups
from support.launch import written_runs


def _panels(folder, what='return', **settings):
  runs = results.find([folder]).runs
  chosen = curves.choose(what, runs)
  return curves.make_panels(results.group(runs), chosen, **settings)


def _curve(folder, what='return', **settings):
  (panel,) = _panels(folder, what, **settings)
  (curve,) = panel.curves
  return curve


def _actor_rows(*rows):
  names = ('steps', 'elapsed_seconds', 'episode_return')
  return [dict(zip(names, row)) for row in rows]


class TestCurves:
  def test_lines_between_points_at_other_places(self, tmp_path):
    written_runs.write(tmp_path / 'a', [(0, 0.0), (100, 10.0)], seed=0)
    written_runs.write(
      tmp_path / 'b', [(0, 0.0), (50, 0.0), (100, 0.0)], seed=1
    )
    curve = _curve(tmp_path)
    np.testing.assert_array_equal(curve.x, [0, 50, 100])
    np.testing.assert_array_equal(curve.middle, [0, (5 + 0) / 2, 5])

  def test_continues_with_the_seeds_that_have_more_steps(self, tmp_path):
    written_runs.write(tmp_path / 'a', [(0, 0.0), (100, 4.0)], seed=0)
    written_runs.write(
      tmp_path / 'b', [(0, 2.0), (100, 2.0), (200, 2.0)], seed=1
    )
    curve = _curve(tmp_path)
    np.testing.assert_array_equal(curve.middle, [1, 3, 2])
    np.testing.assert_array_equal(curve.num_runs, [2, 2, 1])
    # Each of two runs may be drawn twice.
    np.testing.assert_array_equal(curve.low[:2], [0, 2])
    np.testing.assert_array_equal(curve.high[:2], [2, 4])
    assert curve.size == 2
    assert np.isnan(curve.low[2])

  def test_interval_is_that_of_the_statistic(self, tmp_path):
    values = np.array([1.0, 2.0, 3.0, 100.0])
    for seed, value in enumerate(values):
      written_runs.write(tmp_path / f'{seed}', [(100, value)], seed=seed)
    for name, statistic in curves.STATISTICS.items():
      expected = results.aggregates.bootstrap_interval(values, statistic)
      curve = _curve(tmp_path, statistic=name)
      assert (curve.low, curve.high) == expected
      assert curve.middle == statistic(values)

  def test_who_ends_a_little_earlier_has_come_as_far(self, tmp_path):
    for seed, end in enumerate((100, 98, 90)):
      points = [(0, 0.0), (end, 1.0)]
      written_runs.write(tmp_path / f'{seed}', points, seed=seed)
    curve = _curve(tmp_path)
    assert list(curve.x) == [0, 90, 98, 100]
    assert list(curve.num_runs) == [3, 3, 2, 2]

  def test_many_rows_are_averaged(self, tmp_path):
    rows = [(i, i, 1.0 if i % 10 == 0 else 0.0) for i in range(1000)]
    written_runs.write(tmp_path / 'a', actors=_actor_rows(*rows))
    curve = _curve(tmp_path, 'training_return')
    assert len(curve.x) == 100
    # About ten rows share a cell.
    np.testing.assert_allclose(curve.middle[1:-1], 0.1, atol=0.11)


class TestQuantities:
  def test_steps_of_offline_runs_are_learner_steps(self, tmp_path):
    row = {'steps': 10, 'policy_lag': 2.5}
    written_runs.write(tmp_path / 'a', topology='offline')
    written_runs.write(tmp_path / 'b', agent='ppo', learner=[row])
    (panel,) = _panels(tmp_path, 'return')
    assert panel.x_title == 'steps; of offline runs, learner steps'
    (panel,) = _panels(tmp_path, 'lag')  # None of the offline run.
    assert panel.x_title == 'environment steps'

  def test_speed_is_steps_by_seconds(self, tmp_path):
    rows = _actor_rows((0, 0, 0), (100, 10, 0), (400, 20, 0))
    written_runs.write(tmp_path / 'a', actors=rows)
    curve = _curve(tmp_path, 'speed')
    np.testing.assert_array_equal(curve.x, [50, 250])
    np.testing.assert_array_equal(curve.middle, [10, 30])

  def test_speed_needs_seconds(self, tmp_path):
    rows = [{'steps': 1, 'elapsed_seconds': 'x'}, {'steps': 2}]
    written_runs.write(tmp_path / 'a', actors=rows)
    assert not _panels(tmp_path, 'speed')

  def test_losses_are_those_of_each_agent(self, tmp_path):
    row = {'steps': 1, 'loss': 1.0, 'loss_min': 0.0, 'q_value': 3.0}
    written_runs.write(tmp_path / 'a', learner=[row])
    row = {'steps': 1, 'policy_loss': 2.0, 'loss': 5.0, 'lossy': 1.0}
    written_runs.write(tmp_path / 'b', agent='ppo', learner=[row])
    assert [
      (panel.quantity.title, float(panel.curves[0].middle[0]))
      for panel in _panels(tmp_path, 'losses')
    ] == [('dqn: loss', 1), ('ppo: loss', 5), ('ppo: policy loss', 2)]

  def test_any_column_of_a_log(self, tmp_path):
    learner = [{'steps': 1, 'q_value': 3.0}]
    written_runs.write(tmp_path / 'a', learner=learner)
    assert _curve(tmp_path, 'learner.q_value').middle == 3
    with pytest.raises(SettingError, match=r"mean 'learner\.q_value'"):
      _curve(tmp_path, 'learner.q_valu')
    with pytest.raises(SettingError, match="mean 'losses'"):
      _curve(tmp_path, 'loses')

  def test_of_several_nodes_their_mean(self, tmp_path):
    rows = [
      {'steps': step, 'node': node, 'version': version}
      for step, node, version in [
        (1, 'a', 2.0), (2, 'b', 6.0), (3, 'a', 'nan'), (4, 'a', 4.0),
      ]
    ]  # fmt: skip
    written_runs.write(tmp_path / 'run', gossip=rows)
    curve = _curve(tmp_path, 'gossip.version')
    np.testing.assert_array_equal(curve.x, [1, 2, 4])
    np.testing.assert_array_equal(curve.middle, [2, (2 + 6) / 2, (6 + 4) / 2])
    with pytest.raises(SettingError, match=r"mean 'gossip\.steps'"):
      _curve(tmp_path, 'gossip.node')  # It has no numbers.


class TestScores:
  def test_scores_of_groups(self, tmp_path):
    written_runs.write(
      tmp_path / 'a', [(0, 0.0), (100, 3.0), (100, 8.0), (200, 0.0)], seed=0
    )
    written_runs.write(tmp_path / 'b', [(0, 2.0), (150, 2.0)], seed=1)
    (found,) = groups.score(results.group(results.find([tmp_path]).runs).groups)
    assert list(found.last) == [0, 2]
    assert list(found.best) == [8, 2]


def test_panels_are_of_environments_and_groups_with_the_quantity(tmp_path):
  row = {'steps': 1, 'l': 2}
  written_runs.write(tmp_path / 'a', learner=[row])
  written_runs.write(tmp_path / 'b', environment='x', agent='ppo')
  written_runs.write(tmp_path / 'c', environment='x', learner=[row])
  panels = _panels(tmp_path, 'learner.l')
  assert [
    (panel.environment, [curve.label for curve in panel.curves])
    for panel in panels
  ] == [('catch', ['dqn']), ('x', ['dqn'])]
