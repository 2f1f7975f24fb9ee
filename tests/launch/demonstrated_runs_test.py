"""Tests of runs whose batches have a share of demonstrations."""

import pytest

from repertory import launch
from repertory.launch.cli import commands
from support.replay import recorded_episodes

_CONFIG = {
  'hidden_sizes': (8,), 'min_replay_size': 50, 'batch_size': 8,
  'samples_per_insert': 4.0, 'error_buffer': 12.0, 'n_step': 1,
  'jit_compile': False,
}  # fmt: skip


@pytest.fixture(scope='module')
def data(tmp_path_factory):
  directory = str(tmp_path_factory.mktemp('data') / 'catch')
  recorded_episodes.play_randomly(directory, 'catch', 200)
  return directory


def _run(directory, data, topology='single', max_steps=130, **changes):
  experiment = launch.make_experiment(
    'dqn', 'catch', config=_CONFIG, directory=str(directory),
    max_steps=max_steps, evaluation_episodes=0, demonstrations=(data,),
    **{'demonstration_fraction': 0.25, **changes},
  )  # fmt: skip
  return launch.run(experiment, topology, display=False)


@pytest.fixture(scope='module')
def straight(tmp_path_factory, data):
  """A run without a stop: its folder, and how it ended."""
  directory = tmp_path_factory.mktemp('straight') / 'run'
  return directory, _run(directory, data, deterministic=True)


def test_learner_steps_stay_and_a_run_goes_on_exactly(tmp_path, data, straight):
  _, result = straight
  # Each of 80 items beyond the first 50 is drawn four times, in eights.
  assert result.status.learner_steps == 80 * 4 // 8
  _run(tmp_path, data, max_steps=90, deterministic=True)
  halves = _run(tmp_path, data, deterministic=True)
  assert halves.variables_sha256 == result.variables_sha256
  # What was learned is read without the data.
  assert launch.load_policy(str(tmp_path)).learner_steps == 40


@pytest.mark.chaos
def test_data_that_changed_are_drawn_anew_unless_it_must_go_on(
  tmp_path, straight
):
  directory, _ = straight
  other = str(tmp_path / 'other')
  recorded_episodes.play_randomly(other, 'catch', 100, seed=5)
  with pytest.raises(launch.NodeError, match='have changed'):
    _run(directory, other, max_steps=140, deterministic=True)
  status = _run(directory, other, max_steps=140).status
  assert status.steps == 140
  assert 'data restarts' in (directory / 'logs/nodes.jsonl').read_text()


@pytest.mark.chaos
def test_in_nodes_of_their_own(tmp_path, data):
  status = _run(tmp_path, data, 'distributed').status
  # The learner may be ahead by twelve samples, of which it takes six at once.
  assert 39 <= status.learner_steps <= 42


_MARGIN = ('--preset=dqfd', '--demonstrations=')
_SHARE = '--demonstration_fraction=0.25'


@pytest.mark.parametrize(
  ('flags', 'message'),
  [
    (_MARGIN, '--demonstrations must name the folders of episodes for'),
    (
      [*_MARGIN, '--topology=anakin', '--env=tensor:catch'],
      '--topology must be another',
    ),
    (
      [*_MARGIN, '--reward_model=rnd', '--config.n_step=1'],
      '--demonstrations must name',
    ),
    ([], '--demonstration_fraction must be above 0'),
    (['--demonstration_fraction=1'], 'must be at least 0 and below 1'),
    (['--demonstration_fraction=0.01'], 'must leave items of both'),
    ([_SHARE, '--demonstrations=nowhere'], '--demonstrations cannot be'),
    ([_SHARE, '--env=memory_chain'], '--demonstrations cannot be learned from'),
    ([_SHARE, '--agent=impala'], "'impala' cannot learn from data"),
    (
      [_SHARE, '--topology=anakin', '--env=tensor:catch'],
      '--demonstrations must be',
    ),
    (
      [_SHARE, '--topology=offline', '--data=DATA'], '--demonstrations must be'
    ),
  ],
)  # fmt: skip
def test_what_is_typed_wrong(tmp_path, data, capsys, flags, message):
  arguments = [
    'train', '--env=catch', f'--directory={tmp_path / "run"}',
    f'--demonstrations={data}', *(one.replace('DATA', data) for one in flags),
  ]  # fmt: skip
  assert commands.run(arguments) == 2
  assert message in capsys.readouterr().err
  assert not (tmp_path / 'run').exists()
