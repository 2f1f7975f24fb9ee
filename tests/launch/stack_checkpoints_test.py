"""Tests that a run resumes from checkpoints of other stacks.

They load checkpoints that these have written, see `stack_checkpoints`. Those of
another one were written with other versions of Python, TensorFlow and Reverb
than these tests use. Runs resume from those only; other tests resume from their
own.
"""

import pytest

from repertory import launch
from repertory.components.checkpoints import checkpointing
from repertory.components.runtime import versions
from support.launch import sessions, stack_checkpoints
from support.system import rare_cases, stacks

_MORE_STEPS = 40

_each_stack = pytest.mark.parametrize('version', stack_checkpoints.VERSIONS)


def _cases(*, daily=stack_checkpoints.CASES, servers=True):
  cases = stack_checkpoints.CASES
  in_process = [name for name in cases if cases[name].is_in_process]
  names = cases if servers and versions.has_reverb() else in_process
  return pytest.mark.parametrize('name', rare_cases.daily(names, daily))


@pytest.mark.chaos
@_cases()
def test_learner_is_restored(name, tmp_path):
  case = stack_checkpoints.CASES[name]
  facts = stack_checkpoints.unpack(stacks.OTHER, name, tmp_path)
  # No step is left; the same state is written again, in single only.
  launch.run(case.experiment(tmp_path), 'single', display=False)
  checkpoint = stack_checkpoints.load(tmp_path)
  assert stack_checkpoints.hash_each(checkpoint.arrays) == facts['arrays']
  assert checkpoint.state['counts'] == {**facts['counts'], 'runs': 2}


@_cases(daily=('dqn-single', 'impala-distributed'))
def test_run_resumes(name, tmp_path):
  case = stack_checkpoints.CASES[name]
  facts = stack_checkpoints.unpack(stacks.OTHER, name, tmp_path)
  before = stack_checkpoints.load(tmp_path)
  counters = stack_checkpoints.counters(before.arrays)
  assert any(name.startswith('other/') for name in counters)
  experiment = case.experiment(tmp_path, _MORE_STEPS)
  status = launch.run(experiment, case.topology, display=False).status
  assert status.message.startswith('resumed from checkpoint 00000001')
  assert 'empty' not in status.message
  assert status.steps == case.num_steps + _MORE_STEPS
  assert status.learner_steps > facts['counts']['learner_steps']
  (table,) = status.tables
  assert table.inserts > facts['tables'][table.name]['inserts']
  after = stack_checkpoints.load(tmp_path)
  assert after.state['versions'] == dict(versions.versions())
  # The optimizer's count continued, and both it and the networks have changed.
  assert stack_checkpoints.counters(after.arrays) == counters
  hashes = stack_checkpoints.hash_each(after.arrays)
  assert hashes.keys() == facts['arrays'].keys()
  changed = [key for key in hashes if hashes[key] != facts['arrays'][key]]
  assert {'policy', 'other'} <= {key.split('/')[0] for key in changed}, changed


@_each_stack
@_cases(servers=False)
def test_items_are_what_they_were(version, name, tmp_path):
  case = stack_checkpoints.CASES[name]
  facts = stack_checkpoints.unpack(version, name, tmp_path)
  contents = stack_checkpoints.read_items(case, tmp_path)
  assert stack_checkpoints.hash_items(contents) == facts['items']
  (counts,) = facts['tables'].values()
  assert contents.inserts == counts['inserts']
  assert contents.samples == counts['samples']


@_each_stack
def test_message_names_the_other_stack(version, tmp_path):
  case = stack_checkpoints.CASES['dqn-single']
  facts = stack_checkpoints.unpack(version, 'dqn-single', tmp_path)
  opened = sessions.open_session(case.experiment(tmp_path, 1), 'single')
  with opened as session:
    message = session.message
  if version == stacks.HERE:
    assert message == 'resumed from checkpoint 00000001'
    return
  now = versions.versions()
  written = versions.describe(
    {k: v for k, v in facts['versions'].items() if v != now[k]}
  )
  assert message.startswith(
    f'resumed from checkpoint 00000001; written with {written}, and this is '
    f'Python {stacks.HERE}'
  )


@_each_stack
def test_deterministic_run_is_refused(version, tmp_path):
  case = stack_checkpoints.CASES['dqn-single']
  stack_checkpoints.unpack(version, 'dqn-single', tmp_path)
  problem = (
    'lacks the state of the environments'
    if version == stacks.HERE
    else f'was written with Python {version}, '
  )
  opened = sessions.open_session(
    case.experiment(tmp_path, deterministic=True), 'single'
  )
  with (
    pytest.raises(checkpointing.CheckpointError, match=problem) as raised,
    opened,
  ):
    pass
  assert raised.value.remedy == {'fresh': True}
