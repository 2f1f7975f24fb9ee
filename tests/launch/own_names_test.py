"""Tests of runs of an agent and an environment of the user's own, by name."""

import json
import sys

import pytest

from repertory import launch
from repertory.launch.experiments import policy_description
from support.launch import log_files

_ENVIRONMENT = """
  from repertory.environments.games import catch

  def make(seed, rows: int = 6):
    return catch.Catch(rows=rows, columns=5, seed=seed)
"""

_AGENT = """
  import dataclasses
  from repertory.agents import dqn
  from repertory.components.config import settings

  @dataclasses.dataclass(frozen=True)
  class Config(dqn.DQNConfig):
    min_replay_size: int = 4
    jit_compile: bool | None = False
    mood: str = settings.field('calm', 'How it feels.')
    table: dict = dataclasses.field(default_factory=lambda: {1: 2})

  class Builder(dqn.DQNBuilder):
    config: Config

  PRESETS = {'wild': {'mood': 'wild'}}
"""

_NAMES = '--agent=own_agent:Builder', '--env=own_environment:make?rows=7'
_DIRECTORY = 'runs/own_agent-Builder/own_environment-make-rows-7/seed_0'


def _forget(monkeypatch, folder):
  """Unloads modules of a folder, as in a new process."""
  path = [place for place in sys.path if place != str(folder)]
  monkeypatch.setattr(sys, 'path', path)
  for name in ('own_agent', 'own_environment'):
    sys.modules.pop(name, None)


@pytest.fixture
def modules(write_module):
  write_module('own_environment', _ENVIRONMENT)
  write_module('own_agent', _AGENT)


class TestCommands:
  def test_train_resume_and_evaluate(
    self, modules, run_command, tmp_path, monkeypatch
  ):
    del modules
    train = 'train', *_NAMES, '--preset=wild', '--evaluation_episodes=1'
    code, _, err = run_command(*train, '--steps=20')
    assert code == 0, err
    (learner,) = (
      node
      for node in log_files.nodes(tmp_path / _DIRECTORY)
      if node['node'] == 'learner'
    )
    assert learner['config']['config.mood'] == 'wild'
    # The same command resumes, other settings do not.
    code, out, _ = run_command(*train, '--steps=40')
    assert code == 0
    assert 'resumed from checkpoint' in out
    code, _, err = run_command(*train, '--steps=60', '--config.mood=calm')
    assert code == 2
    assert 'config.mood: wild in the checkpoint, calm now' in err
    for arguments in ((), ('--best',)):
      code, out, err = run_command(
        'evaluate', f'--directory={_DIRECTORY}', '--episodes=3',
        *_NAMES, *arguments,
      )  # fmt: skip
      assert code == 0, err
      assert 'own_agent:Builder on own_environment:make?rows=7, learner' in out
      assert '3 episodes' in out

    # From elsewhere it is said where the modules are.
    _forget(monkeypatch, tmp_path)
    (tmp_path / 'elsewhere').mkdir()
    monkeypatch.chdir(tmp_path / 'elsewhere')
    directory = tmp_path / _DIRECTORY
    evaluate = 'evaluate', f'--directory={directory}', '--trust'
    code, _, err = run_command(*evaluate)
    assert code == 2
    assert "is of 'own_agent:Builder' on 'own_environment:make?rows=7'" in err
    assert f"no module 'own_agent', neither in {tmp_path}/elsewhere nor" in err
    assert 'Run this in its folder, or install' in err
    monkeypatch.chdir(tmp_path)
    assert run_command(*evaluate)[0] == 0

  def test_agents_lists_the_settings(self, modules, run_command):
    del modules
    code, out, _ = run_command('agents', 'own_agent:Builder')
    assert code == 0
    assert '--config.mood=calm  (str)\n    How it feels.\n' in out
    assert '--config.min_replay_size=4  (int)' in out
    assert '--preset=wild\n    mood=wild\n' in out
    code, _, err = run_command('agents', 'own_agent:Bilder')
    assert code == 2
    assert "Did you mean 'Builder'?" in err

  @pytest.mark.parametrize(
    ('arguments', 'message'),
    [
      (
        ['--agent=own_agnt:Builder'],
        "--agent got 'own_agnt:Builder', but there is no module 'own_agnt'",
      ),
      (['--agent=own_agent.Builder'], 'or <module>:<Builder> for a custom'),
      (
        ['--agent=own_agent:Builder', '--config.moood=wild'],
        "--config.moood is not a setting of agent 'own_agent:Builder'. Did you "
        "mean 'mood'? `repertory agents own_agent:Builder` lists its settings.",
      ),
      (
        ['--agent=own_agent:Builder', '--preset=wilt'],
        "be one of auto, none, wild; got 'wilt'. Did you mean 'wild'?",
      ),
      (
        ['--env=own_environment:make?row=7'],
        "got 'row'. Did you mean 'rows'?",
      ),
    ],
  )
  def test_wrong_names(self, modules, run_command, arguments, message):
    del modules
    code, _, err = run_command('train', *arguments)
    assert code == 2
    assert message in err


class TestFromIdentity:
  def identity(self, **config):
    experiment = launch.make_experiment(
      'own_agent:Builder', 'own_environment:make', max_steps=1, config=config
    )
    assert experiment.directory == (
      'runs/own_agent-Builder/own_environment-make/seed_0'
    )
    return json.loads(json.dumps(experiment.identity()))

  def test_what_json_lacks_is_what_it_is_by_default(self, modules):
    del modules
    same = policy_description.make_builder(self.identity(mood='wild'), 'unused')
    assert (same.config.mood, same.config.table) == ('wild', {1: 2})
    changed = self.identity(table={'a': 5})
    same = policy_description.make_builder(changed, 'unused')
    assert same.config.table == {'a': 5}

  def test_own_builders_without_a_name(self, modules):
    del modules
    identity = {**self.identity(), 'agent': 'own agent'}
    with pytest.raises(ValueError, match='or <module>:<Builder> of a module'):
      policy_description.make_builder(identity, 'unused')
