"""Tests of runs whose agent is wrapped."""

import pytest

from repertory import launch
from repertory.agents import dqn
from repertory.agents.reward_models import rnd
from repertory.components.checkpoints import checkpointing
from repertory.launch.cli import commands, sweep_command
from support.replay import recorded_episodes

_CONFIG = {
  'hidden_sizes': (8,), 'min_replay_size': 50, 'batch_size': 8,
  'samples_per_insert': 4.0, 'error_buffer': 12.0, 'n_step': 1,
  'jit_compile': False,
}  # fmt: skip
_WRAPS = {
  'gail': {'hidden_sizes': (4,), 'reward': 'airl'},
  'rnd': {'hidden_sizes': (4,), 'embedding_size': 3},
  'sqil': {},
}


@pytest.fixture(scope='module')
def data(tmp_path_factory):
  directory = str(tmp_path_factory.mktemp('data') / 'catch')
  recorded_episodes.play_randomly(directory, 'catch', 200)
  return directory


def _run(
  directory, data, wrap, topology='single', max_steps=70, agent='dqn', **changes
):
  chosen = {
    'config': _CONFIG,
    'reward_model_config': _WRAPS[wrap],
    'deterministic': topology in ('single', 'anakin'),
  }
  if wrap != 'rnd':
    chosen.update(demonstrations=(data,), demonstration_fraction=0.5)
  experiment = launch.make_experiment(
    agent, 'catch', reward_model=wrap, directory=str(directory),
    max_steps=max_steps, evaluation_episodes=0, **{**chosen, **changes},
  )  # fmt: skip
  return launch.run(experiment, topology, display=False)


def test_a_run_tells_how_it_is_wrapped(tmp_path, data):
  status = _run(tmp_path, data, 'gail').status
  # Each of 20 items beyond the first 50 is drawn four times, in eights.
  assert status.learner_steps == 20 * 4 // 8
  # Acting needs no reward model.
  trained = launch.trained.loading.read(str(tmp_path))
  assert isinstance(trained.builder, dqn.DQNBuilder)
  assert trained.identity['reward_model'] == 'gail'
  changed = {**_WRAPS['gail'], 'reward': 'gail'}
  with pytest.raises(
    checkpointing.CheckpointError,
    match=r'reward_model\.reward: airl in the checkpoint, gail now\. Use',
  ):
    _run(tmp_path, data, 'gail', reward_model_config=changed)


@pytest.mark.chaos
@pytest.mark.parametrize('wrap', sorted(_WRAPS))
def test_a_run_goes_on_exactly(tmp_path, data, wrap):
  straight = _run(tmp_path / 'straight', data, wrap, max_steps=90)
  _run(tmp_path / 'halves', data, wrap)
  halves = _run(tmp_path / 'halves', data, wrap, max_steps=90)
  assert halves.variables_sha256 == straight.variables_sha256


@pytest.mark.chaos
@pytest.mark.parametrize('topology', ['distributed', 'central', 'sebulba'])
@pytest.mark.parametrize('wrap', sorted(_WRAPS))
def test_in_nodes_of_their_own(tmp_path, data, wrap, topology):
  status = _run(tmp_path, data, wrap, topology).status
  assert status.steps >= 70
  # The learner may be ahead by twelve samples, of which it takes four at once.
  assert 9 <= status.learner_steps <= 13


@pytest.mark.chaos
@pytest.mark.parametrize('agent', ['dqn', 'pqn'])
def test_rnd_in_a_compiled_program(tmp_path, data, agent):
  config = {
    'unroll_length': 8, 'hidden_sizes': (8,), 'batch_size': 2,
    'num_minibatches': 1,
  } if agent == 'pqn' else {**_CONFIG, 'error_buffer': 16.0}  # fmt: skip
  experiment = launch.make_experiment(
    agent, 'tensor:catch', reward_model='rnd',
    reward_model_config=_WRAPS['rnd'], config=config,
    directory=str(tmp_path), max_steps=100, environments_per_actor=2,
    evaluation_episodes=0,
  )  # fmt: skip
  assert launch.run(experiment, 'anakin', display=False).status.learner_steps


@pytest.mark.chaos
@pytest.mark.parametrize('wrap', sorted(_WRAPS))
def test_an_agent_that_observes_what_it_did(tmp_path, data, wrap):
  config = {
    'hidden_sizes': (8,), 'core_size': 4, 'unroll_length': 5,
    'sequence_period': 3, 'burn_in_length': 2, 'min_replay_size': 20,
    'batch_size': 4, 'jit_compile': False,
  }  # fmt: skip
  changes = {'config': config, 'agent': 'r2d2', 'max_steps': 150}
  assert _run(tmp_path, data, wrap, **changes).status.learner_steps


@pytest.mark.chaos
def test_begins_with_what_was_learned_without(tmp_path, data):
  _run(tmp_path / 'rnd', data, 'rnd')
  experiment = launch.make_experiment(
    'dqn', 'catch', config=_CONFIG, directory=str(tmp_path / 'plain'),
    max_steps=70, evaluation_episodes=0, initial_from=str(tmp_path / 'rnd'),
  )  # fmt: skip
  assert launch.run(experiment, display=False).status.learner_steps == 10


@pytest.mark.parametrize(
  ('flags', 'message'),
  [
    ('=rmd', "--reward_model must be one of gail, rnd, sqil, got 'rmd'"),
    ('.reward=gail', '--reward_model must be given with its settings reward'),
    ('=gail .rewart=gail', '--reward_model.rewart is not a setting of'),
    ('=gail .reward=x', '--reward_model.reward must be one of'),
    ('=rnd .embedding_size=0', '--reward_model.embedding_size must'),
    ('=rnd .embedding_size', 'must be given a value'),
    ('=rnd --config.n_step=2', '--config.n_step must be 1'),
    ('=sqil', '--demonstrations must name the folders of episodes'),
    ('=gail --topology=offline', '--topology must be another one'),
    (
      '=sqil --topology=anakin --env=tensor:catch',
      '--topology must be another one for SQILBuilder',
    ),
  ],
)
def test_what_is_typed_wrong(tmp_path, capsys, flags, message):
  flags = [
    one if one.startswith('--') else f'--reward_model{one}'
    for one in flags.split()
  ]
  arguments = [
    'train', '--env=catch', '--config.n_step=1',
    f'--directory={tmp_path / "run"}', *flags,
  ]  # fmt: skip
  assert commands.run(arguments) == 2
  assert message in capsys.readouterr().err
  assert not (tmp_path / 'run').exists()


def test_what_there_is_is_listed(capsys):
  assert commands.run(['reward_models']) == 0
  assert 'rnd      Exploration' in capsys.readouterr().out
  assert commands.run(['wrappers', 'gail']) == 0
  assert (
    '--reward_model.learning_rate=0.001  (float)' in capsys.readouterr().out
  )


@pytest.mark.parametrize('flag', ['reward_model', 'wrap'])
def test_sweeps_read_reward_models_by_both_names(flag):
  found = sweep_command.read_settings(
    [f'--{flag}=rnd', f'--{flag}.embedding_size=3']
  )
  assert found['reward_model'] == 'rnd'
  assert found['reward_model.embedding_size'] == 3
  assert found['reward_model.learning_rate'] == rnd.RNDConfig().learning_rate
