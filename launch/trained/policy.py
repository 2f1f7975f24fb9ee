"""A trained policy, to act with."""

import os
from collections.abc import Sequence

import numpy as np
import tree

from repertory.agents import builder as builder_lib
from repertory.components import actors, roads, types
from repertory.launch import experiment as experiment_lib
from repertory.launch.runs import directories, session
from repertory.launch.trained import loading, observations, previous


def load_policy(
  run: str | os.PathLike[str] | experiment_lib.Experiment,
  *,
  best: bool = False,
  explore: bool = False,
  seed: int = 0,
  trust: bool = False,
) -> 'TrainedPolicy':
  """Loads what a run has learned, to act with; writes nothing.

    policy = launch.load_policy('runs/catch')
    action = policy.act(observation)

  Args:
    run: The directory of a run whose agent and environment are in the
      registries, or the experiment that it is of, whatever these are.
    best: Whether to take the policy that did best in an evaluation of training,
      or else the newest checkpoint.
    explore: Whether to act as in training, or else as in evaluations.
    seed: Seeds what it draws. In evaluations most agents draw nothing.
    trust: Whether to import modules that the directory names, such as
      'my_module:MyBuilder', which runs their code.

  Raises:
    ValueError: If there is none, or it is of another experiment, or names a
      module that is not trusted.
  """
  return TrainedPolicy(loading.read(run, best, trust), explore, seed)


# Of a policy that explores as late in a run.
_MANY_STEPS = 2**30


class TrainedPolicy:
  """Acts, for one environment or several at once.

  It keeps a memory, if the agent has one, from one call to the next; so tell it
  with `reset` where an episode begins. One thread at a time may use it.

  Attributes:
    agent: The agent's name.
    environment: The environment's.
    steps: Environment steps that training had taken.
    learner_steps: Updates that made it.
    checkpoint: The folder that it is from.
    spec: Observations that it takes, actions that it gives, and rewards.
    has_memory: Whether an action may depend on more than the observation.
  """

  def __init__(
    self, trained: loading.Trained, explore: bool = False, seed: int = 0
  ):
    """Compiles it, see `load_policy`."""
    experiment, builder = trained.experiment, trained.experiment.builder
    self.agent, self.environment = experiment.agent, experiment.environment
    self.steps, self.learner_steps = trained.steps, trained.learner_steps
    self.checkpoint = trained.checkpoint.path
    self._inner_spec = trained.spec
    # Evaluations are alike for however many environments.
    num_environments = (
      experiment.num_environments
      if explore
      else actors.saved_model.MAX_DIFFERING_ROWS
    )

    steps_done = trained.steps // experiment.num_environments
    if session.road_of(trained.checkpoint) == roads.DATA:
      # Its steps are the learner's: nothing explores as it does at first.
      steps_done = _MANY_STEPS

    def make_policy(seed: int):
      return builder.make_policy(
        trained.network,
        builder_lib.Acting(
          trained.spec,
          num_environments,
          seed,
          steps_done=steps_done,
          evaluation=not explore,
        ),
      )

    self._policy = make_policy(seed)
    self._initial_states = actors.InitialStates(
      make_policy, num_environments, seed
    )
    self._rows = actors.PolicyRows(
      self._policy, trained.spec.observations, self._initial_states
    )
    self.spec, self._previous = trained.spec, None
    if builder.observes_previous_action_and_reward:
      shown = trained.spec.observations['observation']
      self.spec = trained.spec._replace(observations=shown)
      self._previous = previous.PreviousActionAndReward(self.spec)
    self._observations = observations.Observations(self.spec.observations)
    self.has_memory = self._rows.has_memory or self._previous is not None
    self._num_rows = 0

  def __repr__(self) -> str:
    return (
      f'<policy of {self.agent} on {self.environment}, after {self.steps} '
      f'steps and {self.learner_steps} updates>'
    )

  def act(
    self, observation: types.Nest, reward: np.ndarray | float | None = None
  ) -> types.Nest:
    """Chooses an action, or one for each row of a batch.

    Args:
      observation: One, as the spec has it, or a batch `[B, ...]`. Row b is the
        same environment each time.
      reward: What the last action of each row was rewarded with, `[B]`, or a
        number. Agents that observe it need it from the second step of an
        episode on; no other looks at it.

    Returns:
      The action, as the spec has it, or `[B, ...]`.

    Raises:
      ValueError: If the observation does not fit the spec, the reward is
        missing, or a policy with a memory is shown another number of rows.
    """
    leaves, is_batch = self._observations.flatten(observation)
    num_rows = len(leaves[0])
    if num_rows != self._num_rows:
      self._resize(num_rows)
    if self._previous is not None:
      leaves += self._previous.observe(self._rows.first, reward)
    action = self._rows.act(*leaves)
    if self._previous is not None:
      self._previous.note(action)
    if is_batch:
      return action
    return tree.map_structure(lambda leaf: leaf[0], action)

  def reset(self, rows: Sequence[int] | np.ndarray | None = None) -> None:
    """Lets an episode begin with the next observation.

    Args:
      rows: Where: numbers of rows, or a mask `[B]`. None for all; then there
        may be another number of rows next.

    Raises:
      ValueError: If there are no such rows.
    """
    if rows is None:
      self._rows.begin()
      self._num_rows = 0
      return
    chosen = np.asarray(rows)
    if not chosen.size:
      return
    if chosen.dtype == bool:
      is_fitting = chosen.shape == (self._num_rows,)
    else:
      is_fitting = chosen.dtype.kind in 'iu' and bool(
        ((chosen >= 0) & (chosen < self._num_rows)).all()
      )
    if not is_fitting:
      raise ValueError(
        f'rows: expected numbers below {self._num_rows}, which is how many '
        f'acted last, or a mask of that length; found {rows!r}.'
      )
    self._rows.begin(chosen)

  def export_saved_model(self, path: str) -> None:
    """Writes the policy as a SavedModel, which runs without this package.

    Its signature 'serving_default' maps observation and state to action and
    next state, `[B, ...]` each, for any B. If there is a state, the signature
    'initial_state' maps 'batch_size' to it; where an episode begins, put in a
    row of that. Leaves of nests are called by their paths, as in
    'observation_camera'. An agent that observes them also takes
    'previous_action' and 'previous_reward'.

    Args:
      path: Names a folder that is not there, or empty.

    Raises:
      ValueError: If there is something.
      OSError: If it cannot be written; then nothing is left of it.
    """
    directories.check_new(path)
    inner = self._inner_spec.observations
    root = () if self._previous is not None else ('observation',)
    actors.saved_model.export(
      self._policy,
      inner,
      actors.saved_model.name_leaves(inner, *root),
      self._initial_states,
      path,
    )

  def _resize(self, num_rows: int) -> None:
    if self._num_rows and self.has_memory:
      raise ValueError(
        f'observation: expected {self._num_rows} rows, as before, found '
        f'{num_rows}: the policy has a memory of each. Call `reset` first.'
      )
    self._rows.resize(num_rows)
    self._num_rows = num_rows
