"""Tests of `launch/experiments/experiment.py`."""

import dataclasses
import pathlib

import numpy as np
import pytest

from repertory import launch
from repertory.agents.interface import registry
from repertory.components.config.settings import SettingError
from repertory.launch.experiments import policy_description
from support.agents import known_agents


def _make(agent='dqn', **settings):
  settings = {'max_steps': 1, 'directory': 'unused', **settings}
  return launch.make_experiment(agent, 'catch', **settings)


class TestEnvironmentsPerActor:
  @pytest.mark.parametrize('agent', known_agents.NAMES)
  def test_are_by_default_what_the_agent_advises(self, agent):
    number = known_agents.AGENTS[agent].environments_per_actor
    experiment = _make(agent)
    assert experiment.num_environments_per_actor == number
    assert experiment.num_environments == number
    assert _make(agent, num_actors=3).num_environments == 3 * number
    config_class = registry.get(agent).config_class
    assert config_class.default_environments_per_actor == number
    # It is no setting, which a checkpoint would hold.
    names = {field.name for field in dataclasses.fields(config_class)}
    assert 'default_environments_per_actor' not in names

  def test_a_checkpoint_knows_how_many_there_were(self):
    experiment = _make('impala', num_actors=2, environments_per_actor=4)
    identity = experiment.identity()
    assert identity['num_environments'] == experiment.num_environments == 8
    same = policy_description.make_builder(identity, 'unused')
    assert same.config == experiment.builder.config


@pytest.mark.parametrize(
  ('name', 'value', 'message'),
  [
    ('environments_per_actor', 0, 'at least 1, got 0'),
    ('environments_per_actor', '8', "an integer or None, got '8'"),
    ('checkpoints_to_keep', 1.5, 'an integer, got 1.5'),
    ('checkpoint_errors', 'ignore', "one of warn, raise, got 'ignore'"),
    ('checkpoint_period_seconds', 0.0, 'positive, got 0'),
    ('storage', '', 'a path or URL, or left out'),
    ('demonstrations', 'a', 'folders, a list'),
  ],
)
def test_wrong_fields_are_named(name, value, message):
  with pytest.raises(SettingError, match=f'{name} must be {message}'):
    _make(**{name: value})


def test_fields_are_plain_values():
  experiment = _make(seed=np.int64(3), directory=pathlib.Path('a'))
  assert (type(experiment.seed), experiment.directory) == (int, 'a')
