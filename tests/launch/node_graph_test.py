"""Tests of node graphs and kinds of nodes."""

import pytest

from repertory.launch.coordination import kinds
from repertory.launch.launchers import launcher as launcher_lib


def _plan(name, calls=(), beside=()):
  return launcher_lib.PlannedNode(name, lambda context: None, calls, beside)


@pytest.fixture(name='program')
def _program():
  program = launcher_lib.NodeGraph(60.0)
  program.add(_plan('coordinator'))
  program.add(_plan('replay', ['coordinator']))
  program.add(
    _plan(
      'learner',
      ['replay', 'coordinator'],
      [_plan('inference/0', ['coordinator']), _plan('inference/1')],
    )
  )
  program.add(_plan('actor/0', ['learner', 'coordinator']))
  return program


def test_order_and_parts(program):
  assert program.names == ['coordinator', 'replay', 'learner', 'actor/0']
  assert program.served == ['coordinator', 'replay', 'learner']
  assert program['actor/0'].kind is kinds.ACTOR
  # Two of each of the four, and 16.
  assert program.rpc.num_threads == 24


def test_owner_is_in_whose_process_a_node_is(program):
  assert program.owner_of('inference/1') == 'learner'
  assert program.owner_of('actor/0') == 'actor/0'


@pytest.mark.parametrize(
  ('plan', 'message'),
  [
    (_plan('replay'), "must differ, got 'replay'"),
    (_plan('learner/1', beside=[_plan('actor/0')]), "got 'actor/0'"),
    (_plan('actor/1', ['replay/1']), "got 'replay/1'"),
    # Nobody answers there.
    (_plan('actor/1', ['actor/0']), "got 'actor/0'"),
    (_plan('actor/1', ['inference/0']), "got 'inference/0'"),
    (_plan('critic'), "got 'critic'"),
    (
      _plan('learner/1', beside=[_plan('actor/9')]),
      "must have no part in a phase.*got 'actor/9'",
    ),
  ],
)
def test_bad_nodes_are_refused(program, plan, message):
  names = program.names
  with pytest.raises(ValueError, match=message):
    program.add(plan)
  assert program.names == names
