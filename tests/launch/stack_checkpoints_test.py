"""Tests that a run resumes from checkpoints of other stacks.

They load checkpoints that these have written, see `stack_checkpoints`. Those of
the others were written with other versions of Python, TensorFlow and Reverb
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

_each_stack = pytest.mark.parametrize('version', stacks.EACH)

_READABLE = (
  stack_checkpoints.WRITTEN
  if versions.has_reverb()
  else stack_checkpoints.WITHOUT_REVERB
)
_OF_OTHERS = [one for one in _READABLE if one.startswith(stacks.OTHERS)]


@pytest.mark.chaos
@pytest.mark.parametrize('written', _OF_OTHERS)
def test_learner_is_restored(written, tmp_path):
  case, facts = stack_checkpoints.unpack(written, tmp_path)
  # No step is left; the same state is written again, in single only.
  launch.run(case.experiment(tmp_path), 'single', display=False)
  checkpoint = stack_checkpoints.load(tmp_path)
  assert stack_checkpoints.hash_each(checkpoint.arrays) == facts['arrays']
  assert checkpoint.state['counts'] == {**facts['counts'], 'runs': 2}


@pytest.mark.parametrize(
  'written',
  rare_cases.daily(
    _OF_OTHERS, ['3.10-impala-server', '3.11-impala-reverb', '3.12-dqn-single']
  ),
)
def test_run_resumes(written, tmp_path):
  case, facts = stack_checkpoints.unpack(written, tmp_path)
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


@pytest.mark.parametrize('written', stack_checkpoints.WITHOUT_REVERB)
def test_items_are_what_they_were(written, tmp_path):
  case, facts = stack_checkpoints.unpack(written, tmp_path)
  contents = stack_checkpoints.read_items(case, tmp_path)
  assert stack_checkpoints.hash_items(contents) == facts['items']
  (counts,) = facts['tables'].values()
  assert contents.inserts == counts['inserts']
  assert contents.samples == counts['samples']


@_each_stack
def test_message_names_the_other_stack(version, tmp_path):
  case, facts = stack_checkpoints.unpack(f'{version}-dqn-single', tmp_path)
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
  case, _ = stack_checkpoints.unpack(f'{version}-dqn-single', tmp_path)
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
