"""With which policies nodes act, and of which network."""

from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from repertory.agents import builder
from repertory.components import core, programs, signals, variables
from repertory.launch.nodes import making, node
from repertory.launch.runs import session as session_lib

# Environments that evaluate together.
_BATCH_SIZE = 10


def make_training_policy(
  context: node.Context, session: session_lib.Session, network: Any
) -> programs.Policy:
  """Makes the policy that trains, for any of the environments.

  Args:
    context: The acting node's; its coordinator knows how far the run is, if
      the node was started again.
  """
  experiment, life = session.experiment, context.life
  steps = session.steps_per_environment
  if life:
    directive = context.coordinator.poll(context.name)
    steps = directive.steps // session.num_environments
  return experiment.builder.make_policy(
    network,
    builder.Acting(
      session.spec,
      session.num_environments,
      session.make_seed(session_lib.POLICY, *([life] if life else [])),
      steps_done=steps,
    ),
  )


def make_evaluation_policy(
  session: session_lib.Session, network: Any
) -> programs.Policy:
  """Makes the policy that evaluates."""
  return session.experiment.builder.make_policy(
    network,
    builder.Acting(
      session.spec,
      len(evaluation_ids(session)),
      session.make_seed(session_lib.EVALUATION_POLICY),
      steps_done=session.steps_per_environment,
      evaluation=True,
    ),
  )


def evaluation_ids(session: session_lib.Session) -> range:
  """Returns the ids of the environments that evaluate together."""
  return range(min(_BATCH_SIZE, session.experiment.evaluation_episodes))


def fetch(
  context: node.Context,
  session: session_lib.Session,
  source: core.VariableSource,
  update_period: int,
) -> tuple[Any, variables.FetchedVariables]:
  """Makes a network whose variables are fetched from a learner elsewhere.

  Args:
    context: The acting node's.
    source: The learner.
    update_period: Steps between fetches.

  Returns:
    The network, and what keeps it fresh.
  """
  experiment = session.experiment
  with making.alone(context, experiment.timeout_seconds):
    context.tell_start('making its network')
    network = experiment.builder.make_network(session.spec)
  return network, follow(
    session,
    source,
    context.stop,
    network.variables,
    update_period=update_period,
  )


def follow(
  session: session_lib.Session,
  source: core.VariableSource,
  stop: signals.StopSignal,
  followers: Sequence[tf.Variable],
  **settings: Any,
) -> variables.FetchedVariables:
  """Makes what keeps variables as fresh as those of a learner elsewhere.

  Args:
    source: The learner.
    stop: Ends every wait.
    followers: Take the values.
    **settings: What is fetched, and how often.
  """
  return variables.FetchedVariables(
    source,
    followers,
    timeout_seconds=session.experiment.timeout_seconds,
    stop=stop,
    **settings,
  )
