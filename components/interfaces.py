"""Interfaces of an agent's TensorFlow modules: `Policy` and `Update`."""

import abc
import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import dm_env
import tensorflow as tf
import tree

from repertory.components import types

# Log columns that learners and runs add to the metrics of an update.
_LOG_COLUMNS = (
  'steps', 'learner_steps', 'elapsed_seconds', 'count', 'skipped_updates',
  'policy_lag', 'target_age',
)  # fmt: skip


class PolicyOutput(NamedTuple):
  """Output of a policy for a batch of observations.

  Attributes:
    action: `[B, ...]`, matching the environment's action spec.
    extras: Nest `[B, ...]` stored in replay with the action, `()` if empty.
    state: The policy's state after this step, `[B, ...]`.
  """

  action: types.Nest
  extras: types.Nest
  state: types.Nest


class Policy(tf.Module, abc.ABC):
  """Policy: a batched TensorFlow module without side effects.

  All that changes from step to step (recurrent state, random numbers) is in
  `state`, whose every leaf has a leading `[B]`. Row b of the output depends
  only on row b of the inputs, so rows may be batched with any others.
  """

  @abc.abstractmethod
  def initial_state(self, environment_ids: Sequence[int]) -> types.Nest:
    """Returns the state before the first step.

    Args:
      environment_ids: One id per row, in [0, num_environments). Properties of
        an environment (its ε, its random numbers) depend only on its id, so
        they are the same on every node.

    Returns:
      The state, `[len(environment_ids), ...]`.
    """

  @abc.abstractmethod
  def step(self, observation: types.Nest, state: types.Nest) -> PolicyOutput:
    """Maps observations `[B, ...]` and state `[B, ...]` to actions."""

  def act(
    self, observation: types.Nest, step_type: tf.Tensor, state: types.Nest
  ) -> PolicyOutput:
    """Takes a step in every row, with episode starts and ends.

    Args:
      observation: `[B, ...]`.
      step_type: The timestep's, int32 `[B]`. A row at LAST needs no action: its
        action is meaningless, and its state is unchanged.
      state: `[B, ...]`.

    Raises:
      ValueError: If `step` does not return a `PolicyOutput`, or creates
        variables.
    """
    first = tf.equal(step_type, int(dm_env.StepType.FIRST))
    ended = tf.equal(step_type, int(dm_env.StepType.LAST))
    state = self.reset_state(state, first)
    with no_late_variables(f'the first step of {type(self).__name__}'):
      output = self.step(observation, state)
    if not isinstance(output, PolicyOutput):
      raise ValueError(
        f'{type(self).__name__}.step must return a PolicyOutput(action, '
        f'extras, state), got {_kind_of(output)}.'
      )

    def keep_ended(before, after):
      if before is after:
        return after
      has_ended, ones = ended, [1] * (len(after.shape) - 1)
      if ones:
        has_ended = tf.reshape(ended, [-1, *ones])
      return tf.where(has_ended, before, after)

    return output._replace(
      state=tree.map_structure(keep_ended, state, output.state)
    )

  def reset_state(self, state: types.Nest, first: tf.Tensor) -> types.Nest:
    """Resets the state of rows where an episode starts.

    Args:
      state: The policy's state, `[B, ...]`.
      first: Bool `[B]`, true where the next observation is an episode's first.

    Returns:
      The state to act with. A policy without memory returns `state` itself;
      random streams continue across episodes.
    """
    del first
    return state

  def describe(self, environment_ids: Sequence[int]) -> Mapping[str, Any]:
    """Returns plain values that describe its behavior, for the log."""
    del environment_ids
    return {}


class BellmanUpdater(tf.Module, abc.ABC):
  """Computes targets of replayed items: a TensorFlow module beside the update.

  With one, the learner samples items with finished targets, see
  `Experience.with_targets`. It owns copies of networks, which follow
  those of the update, and no other state.
  """

  @property
  @abc.abstractmethod
  def variable_client(self) -> Mapping[str, Sequence[tf.Variable]]:
    """Its variables, which follow variables that the update exports.

    By the name of the export, in the same order.
    """

  @abc.abstractmethod
  def __call__(
    self, sample: types.Sample, seed: tf.Tensor
  ) -> tuple[types.Nest, types.Nest]:
    """Returns data and target of `types.SampleWithTargets`, `[B, ...]` both.

    Args:
      sample: A batch of replay items `[B]`.
      seed: Seed for stateless random operations, int32 `[2]`; new in each call.
    """


class UpdateResult(NamedTuple):
  """Results of an update.

  Attributes:
    metrics: Scalars by name.
    priorities: New priorities of the sampled items, `[B]`, or None if the table
      has none.
  """

  metrics: Mapping[str, tf.Tensor]
  priorities: tf.Tensor | None = None


class Update(tf.Module, abc.ABC):
  """Learner step: a TensorFlow module that owns all state it changes.

  It holds the online and target variables and the optimizer as attributes, so
  that a checkpoint needs `variables` only.
  """

  def __init__(self, policy_network: tf.Module | None = None):
    """Initializes the update.

    Args:
      policy_network: The network of the policy, whose variables are exported;
        None if `exports` is overridden.
    """
    super().__init__()
    self._exported = policy_network

  @abc.abstractmethod
  def __call__(self, sample: types.Sample) -> UpdateResult:
    """Updates the variables from `sample`, a batch of replay items `[B]`."""

  @property
  def exports(self) -> Mapping[str, Sequence[tf.Variable]]:
    """The variables served to other nodes, by name; always has 'policy'."""
    if self._exported is None:
      raise NotImplementedError(
        f'{type(self).__name__} must export the variables of the policy: pass '
        'its network to super().__init__, or override exports.'
      )
    return {'policy': self._exported.variables}

  @property
  def learned(self) -> Mapping[str, Sequence[tf.Variable]]:
    """The variables that another run may start from, by name.

    Networks, their targets, and statistics that belong to them; but no state of
    the run: moments of an optimizer, counts, seeds. By default the exports, and
    as 'learned' all other trainable variables.
    """
    exported = {v.ref() for vs in self.exports.values() for v in vs}
    others = [v for v in self.trainable_variables if v.ref() not in exported]
    return {**self.exports, 'learned': others}


class UpdateWrapper(Update):
  """Base of updates around another one, which has the variables."""

  def __init__(self, update: Update):
    super().__init__()
    self._update = update

  @property
  def exports(self):
    return self._update.exports

  @property
  def learned(self):
    return self._update.learned


def call_update(update: Update, sample: types.Sample) -> UpdateResult:
  """Calls an update and checks its result and the variables it created.

  In a compiled program, the checks are made while it is traced. The update may
  create untrained variables, such as the moments of Sonnet's optimizers.

  Raises:
    ValueError: If it created trainable or exported variables, if a metric is
      not a scalar or has the name of another log column, or if priorities do
      not have the shape of the items.
  """
  created: list[tf.Variable] = []
  with created_variables(created.append):
    result = update(sample)
  name = type(update).__name__
  if created:
    exported = {v.ref() for vs in update.exports.values() for v in vs}
    refuse_late(
      [v for v in created if v.trainable or v.ref() in exported],
      f'the first call of {name}',
    )
  if not isinstance(result, UpdateResult):
    raise ValueError(
      f'{name} must return an UpdateResult(metrics, priorities), got '
      f'{_kind_of(result)}.'
    )
  for metric, value in result.metrics.items():
    if metric in _LOG_COLUMNS:
      raise ValueError(
        f"Metric '{metric}' of {name} must have another name: logs have "
        f'{", ".join(_LOG_COLUMNS)} besides the metrics.'
      )
    shape = tf.convert_to_tensor(value).shape
    if shape.rank:
      raise ValueError(
        f"Metric '{metric}' of {name} must be a scalar, got shape "
        f'{shape.as_list()}. Reduce it, as by tf.reduce_mean.'
      )
  if result.priorities is not None:
    found = tf.convert_to_tensor(result.priorities).shape
    expected = tf.convert_to_tensor(sample.keys).shape
    if not found.is_compatible_with(expected):
      raise ValueError(
        f'Priorities of {name} must have the shape of the items, '
        f'{expected.as_list()}, got {found.as_list()}.'
      )
  return result


def refuse_late(variables: Sequence[tf.Variable], when: str) -> None:
  """Raises a ValueError that names variables created too late to be trained.

  `when` is the call that created them: 'the first call of DQNUpdate'.
  """
  if not variables:
    return
  names = ', '.join(f'{v.name} {v.shape.as_list()}' for v in variables)
  raise ValueError(
    'All variables must exist when make_network returns, and those of the '
    "update's own networks when make_update returns; got some that were "
    f'created only in {when}: {names}. They would not be trained or copied to '
    'actors and target networks. Let make_network call each part once: '
    'networks.create_variables(network, spec.observations) calls the network, '
    'but not a head that the network does not use, which needs a call of its '
    'own.'
  )


@contextlib.contextmanager
def no_late_variables(when: str) -> Iterator[None]:
  """Refuses all variables created inside, see `refuse_late`."""
  created: list[tf.Variable] = []
  with created_variables(created.append):
    yield
  refuse_late(created, when)


@contextlib.contextmanager
def created_variables(take: Callable[[tf.Variable], None]) -> Iterator[None]:
  """Calls a function with each variable created inside."""

  def create(next_creator, **settings):
    variable = next_creator(**settings)
    take(variable)
    return variable

  with tf.variable_creator_scope(create):
    yield


def _kind_of(value: Any) -> str:
  return 'None' if value is None else f'a {type(value).__name__}'
