"""Factories of policies."""

from typing import Any

from repertory.agents.interface import builder
from repertory.components import interfaces
from repertory.launch.experiments import session as session_lib
from repertory.launch.nodes import node

# Maximum size of an evaluation batch.
_BATCH_SIZE = 10


def make_training_policy(
  context: node.Context, session: session_lib.Session, network: Any
) -> interfaces.Policy:
  """Makes the behavior policy for all training environments.

  Args:
    context: Context of the acting node; after a restart its coordinator
      supplies the step count.
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
