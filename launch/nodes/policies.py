"""Factories of policies, and of networks with variable clients."""

from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from repertory.agents.interface import builder
from repertory.components import core, interfaces, variables
from repertory.components.runtime import signals
from repertory.launch.nodes import initialization_lock, node
from repertory.launch.opening import session as session_lib

# Maximum size of an evaluation batch.
_BATCH_SIZE = 10


def make_training_policy(
  context: node.Context, session: session_lib.Session, network: Any
) -> interfaces.Policy:
  """Makes the behavior policy for all training environments.

  Args:
    context: Context of the acting node; after a restart its coordinator
      supplies the step count.
    session: Session of the run.
    network: Network of the policy.
  """
  experiment, generation = session.experiment, context.generation
  steps = session.steps_per_environment
  if generation:
    reply = context.coordinator.poll(context.name)
    steps = reply.steps // session.num_environments
  return experiment.builder.make_policy(
    network,
    builder.Acting(
      session.spec,
      session.num_environments,
      session.make_seed(
        session_lib.POLICY, *([generation] if generation else [])
      ),
      steps_done=steps,
    ),
  )


def make_evaluation_policy(
  session: session_lib.Session, network: Any
) -> interfaces.Policy:
  """Makes the evaluation policy."""
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
  """Returns the ids of the environments in an evaluation batch."""
  return range(min(_BATCH_SIZE, session.experiment.evaluation_episodes))


def fetch(
  context: node.Context,
  session: session_lib.Session,
  source: core.VariableSource,
  update_period: int,
) -> tuple[Any, variables.RemoteVariableClient]:
  """Makes a network, and a client that fetches its variables remotely.

  Args:
    context: Context of the acting node.
    session: Session of the run.
    source: Remote learner.
    update_period: Steps between fetches.

  Returns:
    The network, and its variable client.
  """
  experiment = session.experiment
  with initialization_lock.held(context, experiment.timeout_seconds):
    context.report_start('making its network')
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
) -> variables.RemoteVariableClient:
  """Makes a client that fetches variables from a remote learner.

  Args:
    session: Session of the run.
    source: Remote learner.
    stop: Signal that ends every wait.
    followers: Variables that take the values.
    **settings: Further arguments of `variables.RemoteVariableClient`.
  """
  return variables.RemoteVariableClient(
    source,
    followers,
    timeout_seconds=session.experiment.timeout_seconds,
    stop=stop,
    **settings,
  )
