"""Actors with a policy of their own."""

import contextlib
from collections.abc import Sequence
from typing import Any

import cloudpickle

from repertory.components import actors, environment_loop, roads, variables
from repertory.components.replay import local
from repertory.launch.nodes import acting, node, policies
from repertory.launch.runs import session as session_lib


class ActorNode(acting.ActingNode):
  """Acts for some of the environments, with a policy of its own."""

  def __init__(
    self,
    context: node.Context,
    session: session_lib.Session,
    environment_ids: Sequence[int],
    *,
    network: Any,
    followed: variables.FollowedVariables,
    road: roads.Road,
    max_pending_items: int | None = None,
    leases: Any = None,
  ):
    """Makes the environments and all that acts for them.

    Args:
      context: This node's, 'actor/<index>'.
      environment_ids: Which of all training environments it steps; seeds and
        exploration follow from them.
      followed: Keeps the network's variables fresh.
      road: Takes what was lived; its stop signal ends every wait.
      max_pending_items: Items that may be on their way to replay while it acts;
        None for what the agent says.
      leases: Grants steps; None for the coordinator.
    """
    self._followed = followed
    self._adder = road.make_adder(
      len(environment_ids),
      priority=lambda: followed.max_priority,
      version=lambda: followed.version,
      max_pending_items=max_pending_items,
    )
    context.tell_start('making its environments')
    self._environment = session.make_environments(environment_ids, context.life)
    context.tell_start('compiling its policy')
    policy = policies.make_training_policy(context, session, network)
    self._acting_with = policy.describe(environment_ids)
    self._actor = actors.PolicyActor(
      policy,
      session.spec.observations,
      environment_ids,
      adder=self._adder,
      variables=followed,
      jit_compile=session.jit_compile,
      # Its rounding is not TensorFlow's, by which others repeat a run.
      # While it computes other threads wait, as for TensorFlow they do not.
      in_numpy=context.is_alone and not session.experiment.deterministic,
    )
    self._loop = environment_loop.EnvironmentLoop(
      self._environment, self._actor
    )
    self._loop.read_info(session.experiment.info)
    super().__init__(context, [self._loop], environment_ids, leases)

  @property
  def description(self):
    acts_by = 'NumPy' if self._actor.runs_in_numpy else 'TensorFlow'
    return {**super().description, **self._acting_with, 'acts_by': acts_by}

  @property
  def num_items(self) -> int:
    """Items this node has added to replay."""
    return self._adder.num_items

  def flush(self) -> None:
    """Waits until replay has taken all items."""
    self._adder.flush()

  def save(self) -> bytes | None:
    """Returns where environments, policy and open episodes are.

    Between two steps, with all items in the table: see `flush`.

    Returns:
      None if the environments cannot be pickled, which is told as a warning.
    """
    parts = {
      'loop': self._loop.save(),
      'policy': self._actor.save(),
      'adder': self._adder.save(),
    }
    try:
      # Environments may hold functions, which pickle alone cannot.
      return cloudpickle.dumps(parts)
    except Exception as error:
      self._coordinator.warn(
        self.name,
        'This deterministic run cannot go on from its checkpoints, for its '
        f'environments cannot be pickled: {type(error).__name__}: {error}',
      )
      return None

  def restore(self, saved: bytes) -> None:
    """Continues where `save` was called.

    Raises:
      CheckpointError: If the saved state cannot be read.
    """
    with local.reading('The state of actors in the checkpoint'):
      state = cloudpickle.loads(saved)
    self._environment.close()
    self._environment = state['loop']['environment']
    self._loop.restore(state['loop'])
    self._actor.restore(state['policy'])
    self._adder.restore(state['adder'])

  def run(self) -> None:
    self._followed.update(wait=True)
    super().run()
    self.flush()  # The learner counts on all items when actors are done.

  def close(self) -> None:
    """Hands over what is complete and ends all threads."""
    with contextlib.ExitStack() as stack:  # Whichever of them fails.
      stack.callback(self._environment.close)
      stack.callback(self._followed.close)
      stack.callback(self._adder.close)
      stack.callback(self.write_recordings)

  def _variables_in_use(self) -> tuple[int, float]:
    age_seconds = self._followed.age_seconds
    if age_seconds is None:  # They are the learner's own.
      return super()._variables_in_use()
    return self._followed.version, age_seconds
