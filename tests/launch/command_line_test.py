"""Tests of command lines, mostly wrong ones."""

import os
import re
import shutil

import gymnasium
import numpy as np
import pytest

from repertory.launch.cli import command, flags
from support.system import rare_cases, real_disk_errors

# Just enough for the learner to take steps.
_FEW_STEPS = (
  '--steps=20', '--config.min_replay_size=4', '--config.jit_compile=false'
)  # fmt: skip


@pytest.fixture(autouse=True)
def empty_folder(tmp_path, monkeypatch):
  monkeypatch.chdir(tmp_path)


@pytest.fixture
def own_environment():
  """A user's environment, `gym:Own-v0`."""

  class Own(gymnasium.Env):
    observation_space = gymnasium.spaces.Box(0, 1, (2,), np.float32)
    action_space = gymnasium.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
      del seed, options
      return np.zeros(2, np.float32), {}

    def step(self, action):
      del action
      return np.zeros(2, np.float32), 0.0, True, False, {}

  gymnasium.register('Own-v0', entry_point=Own)
  yield Own
  del gymnasium.registry['Own-v0']


@pytest.mark.parametrize('kind', [ValueError, ImportError, TimeoutError])
def test_an_error_without_a_text_has_its_class(run_command, monkeypatch, kind):
  def run(*arguments):
    del arguments
    raise kind

  silent = command.Command('', '', (), run)
  monkeypatch.setattr(command.REGISTRY, 'get', lambda name: silent)
  code, _, err = run_command('silent')
  assert code != 0
  assert err == f'repertory: {kind.__name__}\n'


class TestTrain:
  def test_ends_early_if_that_is_enough(self, run_command):
    code, out, _ = run_command(
      'train', '--directory=here', *_FEW_STEPS, '--steps=1000',
      '--evaluation_period=30', '--evaluation_episodes=2',
      '--stop_at_return=-1',
    )  # fmt: skip
    assert code == 0
    expected = (
      'Stopped early: after 30 steps an evaluation had a mean return of '
    )
    assert expected in out
    assert '30 of 1,000 steps' in out

  @pytest.mark.chaos
  def test_says_that_the_last_checkpoint_could_not_be_written(
    self, run_command
  ):
    arguments = ('train', '--env=catch', '--directory=here', *_FEW_STEPS)
    with real_disk_errors.file_size_limit(20_000):
      code, out, err = run_command(*arguments, '--evaluation_episodes=0')
    assert code == 3
    assert 'No checkpoint could be written' in err
    assert '20 of 20 steps' in out
    # With a checkpoint to resume from.
    assert run_command(*arguments)[0] == 0
    with real_disk_errors.file_size_limit(20_000):
      code, _, err = run_command(*arguments, '--steps=60')
    assert code == 3
    assert re.search('the newest, 00000001, has [0-9]+ of [0-9]+ updates', err)

  @pytest.mark.parametrize(
    ('arguments', 'messages'),
    [
      (
        ['--agent=dqm'],
        [
          "--agent must be the name of an agent, got 'dqm'. Did you mean 'dqn'?"
          ' Choose one of bc, crr, d4pg, ',
        ],
      ),
      (['--agent=tqc'], ["got 'tqc'. It is a preset of sac: use that agent "]),
      (
        ['--env=cath'],
        [
          "--env: expected a known name, got 'cath'. Did you mean 'catch'? "
          'Known names: catch[:<rows>x<columns>], ',
          '`repertory env',
        ],
      ),
      (['--env=Ant-v4'], ["got 'Ant-v4'. Did you mean 'gym:Ant-v4'? Known"]),
      (
        ['--topology=anakin', '--env=catch'],
        ["got 'catch'. Did you mean 'tensor:catch'? Use one of tensor:catch["],
      ),
      (
        ['--config.learning_rat=1'],
        ['--config.learning_rat is', "Did you mean 'learning_rate'"],
      ),
      (['--config.n_step=1e1'], ['--config.n_step', "'1e1'. Write 10."]),
      (
        ['--config.learning_rate=-1'],
        ['--config.learning_rate must be positive, got -1'],
      ),
      (['--config.learning_rate'], ['--config.learning_rate', 'value']),
      (['--steps=many'], ["--steps must be an integer, got 'many'.\n"]),
      (
        ['--steps=1e4'],
        ["--steps must be an integer, got '1e4'. Write 10000.\n"],
      ),
      (['--fresh=x'], ["--fresh must be true or false, got 'x'"]),
      (
        ['--preset=atri'],
        [
          "--preset of agent 'dqn' must be one of auto, none, atari, cql, "
          "dqfd, minatar, rainbow, rainbow_small; got 'atri'.",
          "Did you mean 'atari'?",
        ],
      ),
      (
        ['--stop_at_return=nan'],
        ['--stop_at_return must be a finite number; got nan.'],
      ),
      (
        ['--stop_at_return=1', '--evaluation_episodes=0'],
        ['--stop_at_return must be left out', 'evaluation_episodes is 0'],
      ),
      (['--wandb_project='], ["--wandb_project must be the name of a pro"]),
      (['--stepz=3'], ["Unknown flag '--stepz'. Did you mean '--steps'?"]),
      (['--algo=ppo'], ["Unknown flag '--algo'. Did you mean '--agent'?"]),
      (['--n-timesteps', '1'], ["'--n-timesteps'. Did you mean '--steps'?"]),
      (
        ['--agent=ppo', '--lr=1'],
        ["Unknown flag '--lr'. Did you mean '--config.learning_rate'?"],
      ),
      (['--config.gamma=1'], ["config.gamma is", "Did you mean 'discount'"]),
      (['--nowhere'], ["Unknown flag '--nowhere'.", '--help']),
      (['--config', '3'], ["flag '--config'. Settings of the agent are --con"]),
      (
        ['--steps=201'],
        ['--steps must be higher', 'min_replay_size = 200', '201'],
      ),
      # Agent and environment that do not fit.
      (
        ['--env=gym:Pendulum-v1'],
        ['DiscreteArray', 'BoundedArray', "'dqn' does", 'impala, iql, mpo'],
      ),
      (
        ['--agent=td3', '--env=catch'],
        ["Agent 'td3' does not fit environment 'catch'", 'impala, mpo, ppo, p'],
      ),
      (
        [
          '--topology=central', '--learner_devices=CPU:0,CPU:1',
          '--inference_devices=CPU:0',
        ],
        ['--learner_devices must', 'it off (--config.jit_compile=false)'],
      ),
      (
        [
          '--agent=sac', '--preset=crossq', '--env=tensor:pendulum',
          '--config.jit_compile=false', '--topology=sebulba',
          '--learner_devices=CPU:0,CPU:1',
        ],
        ['--learner_devices must be one', 'normalize over the whole batch'],
      ),
      (
        ['--agent=bc', '--reward_model=rnd', '--topology=offline'],
        ['--reward_model must be left out for BCBuilder', 'from rewards'],
      ),
      (
        ['--env=atari:Pong?lives=1', '--preset=none'],
        ["--env: in 'atari:Pong?lives=1', ex"],
      ),
    ],
  )  # fmt: skip
  def test_bad_input_is_reported_and_nothing_written(
    self, run_command, arguments, messages
  ):
    code, out, err = run_command('train', *arguments)
    assert code == 2
    assert not out
    for message in messages:
      assert message in err
    assert 'Traceback' not in err
    assert os.listdir() == []

  def test_directory_without_permission_is_reported(self, run_command):
    # Nobody may make folders there, not even the superuser.
    code, _, err = run_command('train', '--directory=/proc/run')
    assert code == 2
    assert 'directory' in err
    assert '/proc' in err

  @pytest.mark.parametrize('place', ['__init__', 'step'])
  @pytest.mark.parametrize(
    'kind',
    rare_cases.daily(
      [ValueError, RuntimeError, ImportError, TimeoutError],
      [ValueError, TimeoutError],
    ),
  )
  def test_exceptions_of_users_are_printed_as_they_are(
    self, run_command, own_environment, kind, place
  ):
    text = (
      'seed=True is empty, max_steps must be `rows`: config.n_step of 3,\n'
      "agent must be one of two (fresh=True) or topology='single'."
    )

    def fail(*arguments, **settings):
      raise kind(text)

    setattr(own_environment, place, fail)
    arguments = ('train', '--env=gym:Own-v0', *_FEW_STEPS)
    code, _, err = run_command(*arguments)
    assert code == (1 if place == 'step' or kind is TimeoutError else 2)
    assert err.endswith(f'{text}\n')
    if (place, kind) == ('__init__', RuntimeError):
      assert "'gym:Own-v0' cannot be made:\nTraceback" in err
    if (place, kind) == ('__init__', ValueError):
      assert err == f'repertory: {text}\n'

  @pytest.mark.parametrize(
    ('name', 'function', 'reported'),
    [
      (
        'reset',
        lambda self, seed=None, options=None: np.zeros(2, np.float32),
        'Return `observation, {}`.',
      ),
      (
        'step',
        lambda self, action: (np.zeros(2, np.float32), 0.0, None, False, {}),
        'terminated: expected True or False, found None.',
      ),
    ],
    ids=['info', 'none'],
  )
  def test_old_gym_is_bad_input(
    self, run_command, own_environment, name, function, reported
  ):
    function.__qualname__ = f'Own.{name}'
    setattr(own_environment, name, function)
    code, _, err = run_command('train', '--env=gym:Own-v0', *_FEW_STEPS)
    assert code == 2
    assert reported in err
    assert 'Traceback' not in err
    assert 'keep to its specs' not in err

  @pytest.mark.parametrize(
    ('shape', 'option', 'reported'),
    [
      ((84, 84, 3), '?channels_first=true', 'which looks like [height, width'),
      ((84, 84), '?channels_first=true', 'of shape (84, 84) and dtype uint8.'),
      ((3, 84, 84), '', "environment 'gym:Own-v0': The observation must be an"),
    ],
    ids=['last', 'gray', 'first'],
  )
  def test_layouts_of_images(
    self, run_command, own_environment, shape, option, reported
  ):
    own_environment.observation_space = gymnasium.spaces.Box(
      0, 255, shape, np.uint8
    )
    code, _, err = run_command('train', f'--env=gym:Own-v0{option}')
    assert code == 2
    assert reported in err
    assert err.count('\n') == 1
    assert 'that fit' not in err
    if option:
      assert err.startswith('repertory: --env: expected')


@pytest.mark.parametrize(
  'flag', ['--replay_server', '--replay_server=true', '--replay=reverb']
)
def test_the_earlier_form_of_replay_is_read(flag):
  values = command.define_flags(command.REGISTRY.get('train').flag_table)
  assert command.read_arguments('train', [flag], values) == ({}, [])
  assert values.replay == 'reverb'


def test_train_and_evaluate(run_command):
  _, out, _ = run_command(
    'train', *_FEW_STEPS, '--directory=run', '--evaluation_episodes=1'
  )
  assert re.search(
    r'^Best evaluation: -?1, after .* `repertory evaluate run --best`',
    out,
    re.M,
  )
  for printed in ('run/logs', 'run/checkpoints', '20 of 20 steps'):
    assert printed in out
  evaluate = 'evaluate', '--directory=run', '--episodes=5'
  for best in ((), ('--best',)):
    code, out, _ = run_command(*evaluate, *best)
    assert code == 0
    figures = dict(re.findall(r'^(\w+) +(-?[\d.]+)$', out, re.MULTILINE))
    assert figures.keys() == {'mean', 'deviation', 'minimum', 'maximum'}
    low, mean, high = (
      float(figures[k]) for k in ('minimum', 'mean', 'maximum')
    )
    assert -1 <= low <= mean <= high <= 1
  shutil.rmtree('run/best')
  for arguments, message in (
    (evaluate[:1], '--directory'),
    ((*evaluate, '--episodes=0'), '--episodes'),
    ((*evaluate, '--config.n_step=2'), 'n_step'),
    (
      (*evaluate, '--best'),
      'must hold the policy of an evaluation, found none',
    ),
  ):
    code, out, err = run_command(*arguments)
    assert (code, out) == (2, '')
    assert message in err


class TestOthers:
  def test_help_of_train_begins_with_what_is_needed(self, run_command):
    _, out, _ = run_command('train', '--help')
    assert re.findall(r'(?m)^  --(\w+)', out)[:3] == ['agent', 'env', 'steps']
    headings = re.findall(r'(?m)^([A-Z][\w, ]*):$', out)
    assert headings == list(flags.TRAIN_GROUPS)

  def test_help_of_sweep_names_each_flag_once(self, run_command):
    _, out, _ = run_command('sweep', '--help')
    names = re.findall(r'(?m)^  --(?:\[no\])?(\w+)', out)
    assert names[:3] == ['directory', 'seeds', 'parallel']
    of_sweep = {'seeds', 'parallel', 'study', 'study_seed'}
    assert sorted(names) == sorted(flags.TRAIN_NAMES | of_sweep)

  def test_unknown_command_is_reported(self, run_command):
    code, _, err = run_command('trian')
    assert code == 2
    assert "Did you mean 'train'" in err

  def test_agents_and_their_settings(self, run_command):
    assert 'dqn' in run_command('agents')[1]
    out = run_command('agents', 'dqn')[1]
    assert '--config.n_step=3  (int)\n    n of n-step transitions: ' in out
    assert '--config.learning_rate=0.001  (float; or a schedule)\n' in out
    assert '--environments_per_actor=1 ' in out
    assert '--environments_per_actor=8 ' in run_command('agents', 'ppo')[1]
    code, _, err = run_command('agents', 'dpn')
    assert code == 2
    assert (
      'repertory: agent must be the name of an agent' in err
    )  # It is no flag of this command.
