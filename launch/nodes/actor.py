"""Actor with local inference."""

from collections.abc import Callable, Sequence
from typing import Any

import cloudpickle

from repertory.components import actors, transports, variables
from repertory.components.actors import environment_loop
from repertory.components.replay import local
from repertory.launch.experiments import session as session_lib
from repertory.launch.nodes import acting, node, policies


class ActorNode(acting.ActingNode):
  """Steps some of the environments with a local policy."""

  def __init__(
    self,
    context: node.Context,
    session: session_lib.Session,
    environment_ids: Sequence[int],
    *,
    network: Any,
    variable_client: variables.VariableClient,
    transport: transports.Transport,
    max_pending_items: int | None = None,
  ):
    """Makes environments, policy and adder.

    Args:
      environment_ids: Ids of its training environments, which determine seeds
        and exploration.
      transport: Transport of experience; its stop signal ends every wait.
      max_pending_items: Maximum number of items queued for replay while it
        acts; None for the agent's setting.
    """
    context.report_start('making its environments')
    self._environment = session.make_environments(
      environment_ids, context.generation
    )
    # It may be replaced.
    context.closing.callback(lambda: self._environment.close())
    context.closing.callback(variable_client.close)
    self._adder = transport.make_adder(
      len(environment_ids),
      priority=lambda: variable_client.max_priority,
      version=lambda: variable_client.version,
      max_pending_items=max_pending_items,
    )
    context.closing.callback(self._adder.close)
    context.report_start('compiling its policy')
    policy = policies.make_training_policy(context, session, network)
    self._policy_description = policy.describe(environment_ids)
    self._actor = actors.PolicyActor(
      policy,
      session.spec.observations,
      environment_ids,
      adder=self._adder,
      variables=variable_client,
      jit_compile=session.jit_compile,
      # NumPy rounds differently, so deterministic runs use TensorFlow. And
      # NumPy blocks other threads, so it needs a process without other nodes.
      in_numpy=context.is_alone and not session.experiment.deterministic,
    )
    self._loop = environment_loop.EnvironmentLoop(
      self._environment, self._actor
    )
    self._loop.read_info(session.experiment.info)
    super().__init__(context, [self._loop], environment_ids, variable_client)
    context.closing.callback(self.write_recordings)

  @property
  def description(self):
    acts_by = 'NumPy' if self._actor.runs_in_numpy else 'TensorFlow'
    return {
      **super().description,
      **self._policy_description,
      'acts_by': acts_by,
    }

  @property
  def num_items(self) -> int:
    """Number of items this node has added to replay."""
    return self._adder.num_items

  def flush(self) -> None:
    """Blocks until replay has taken all items."""
    self._adder.flush()

  def save(self) -> bytes | None:
    """Returns the state of environments, policy and open episodes.

    To be called between two steps, after `flush`.

    Returns:
      The pickled state; None, with a warning, if the environments cannot be
      pickled.
    """
    parts = {
      'loop': self._loop.save(),
      'policy': self._actor.save(),
      'adder': self._adder.save(),
    }
    try:
      # Unlike pickle, cloudpickle supports functions in environments.
      return cloudpickle.dumps(parts)
    except Exception as error:
      self._coordinator.warn(
        self.name,
        'This deterministic run cannot resume from its checkpoints, since its '
        f'environments cannot be pickled: {type(error).__name__}: {error}',
      )
      return None

  def restore(self, saved: bytes) -> None:
    """Restores the state that `save` returned.

    Raises:
      CheckpointError: If the saved state cannot be read.
    """
    with local.reading(
      'The state of actors in the checkpoint',
      '. Environments of another version may not be unpickled. Leave '
      'deterministic out to resume without their state.',
    ):
      state = cloudpickle.loads(saved)
    self._environment.close()
    self._environment = state['loop']['environment']
    self._loop.restore(state['loop'])
    self._actor.restore(state['policy'])
    self._adder.restore(state['adder'])

  def run(self) -> None:
    self._variable_client.update(wait=True)
    super().run()
    self.flush()  # The learner expects all items once actors are done.


def take_states_of(
  actor: ActorNode,
) -> Callable[[], transports.ActorState | None]:
  """Returns the source of snapshots of an actor in the learner's thread."""
  if actor.save() is None:  # The warning comes at the start, and once.
    return lambda: None

  def take():
    # An actor that failed may be in the middle of a step.
    saved = None if actor.is_in_step else actor.save()
    return None if saved is None else transports.ActorState(saved)

  return take
