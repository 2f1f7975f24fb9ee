"""A topology as a Mermaid graph, read off its wiring."""

from repertory.launch import experiment as experiment_lib
from repertory.launch import running
from repertory.launch.runs import session as session_lib
from repertory.launch.topologies import central, distributed, single


def mermaid(
  experiment: experiment_lib.Experiment,
  topology: str,
  placement: central.Placement | None = None,
) -> str:
  """Returns the graph of an experiment; an arrow points from caller to called.

  Args:
    experiment: What would run.
    topology: As `launch.run` takes it.
    placement: Of 'central'.

  Raises:
    ValueError: If the experiment could not run or the topology is unknown.
  """
  running.check_topology(topology)
  spec = session_lib.check(experiment)
  lines = ['flowchart LR']
  if topology == 'single':
    lines.append('  subgraph thread [one thread]')
    lines += [f'    {caller} --> {called}' for caller, called in single.CALLS]
    lines.append('  end')
    return '\n'.join(lines)
  session = session_lib.Session(experiment, spec, {'runs': 0}, 0.0, False)
  if topology == 'central':
    program, services = central.make_program(
      session, '', placement or central.Placement()
    )
  else:
    program, services = distributed.make_program(session, '')
  nodes, calls = distributed.describe(program, services)
  lines += [f'  {_identifier(node)}["{node}"]' for node in nodes]
  lines += [
    f'  {_identifier(caller)} --> {_identifier(called)}'
    for caller, called in calls
  ]
  return '\n'.join(lines)


def _identifier(node: str) -> str:
  return node.replace('/', '_')
