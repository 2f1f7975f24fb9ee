"""Critic networks, Q(s, a), alone or as an ensemble."""

import contextlib
from collections.abc import Sequence

import sonnet as snt
import tensorflow as tf

from repertory.components import specs, types
from repertory.components.actions import action_scaling
from repertory.components.networks import torsos, trunks


class Critic(snt.Module):
  """N independent critics with K outputs each, values or logits.

  Each embeds the observation by an `ObservationTorso` without hidden layers,
  then concatenates the action. Hidden layers and heads of several critics are
  evaluated as one: their variables are stacked, weights to `[N, F, D]` and
  vectors to `[N, 1, D]`.
  """

  def __init__(
    self,
    observation_spec: types.Nest,
    hidden_sizes: Sequence[int],
    num_outputs: int,
    image_torso: str = 'nature',
    body: str = 'mlp',
    num_critics: int = 1,
    name: str = 'critic',
  ):
    """Creates the layers; the first call creates their variables.

    The arguments are those of `make_critic`, with a nest of array specs of
    observations, without a batch axis.
    """
    super().__init__(name=name)
    self._torsos, self._networks = [], []
    for i in range(num_critics):
      torso = 'observation_torso' + f'_{i}' * (i > 0)
      self._torsos.append(
        torsos.ObservationTorso(observation_spec, (), image_torso, name=torso)
      )
      layers = trunks.make_trunk(body, hidden_sizes)
      self._networks.append((layers, snt.Linear(num_outputs, name='head')))

  def __call__(
    self,
    observation: types.Nest,
    action: tf.Tensor | None = None,
    masks: tf.Tensor | None = None,
  ) -> tf.Tensor:
    """Evaluates actions.

    Args:
      observation: Nest of `[B, ...]`.
      action: `[B, D]`, or `[B, P, D]` with P actions for each observation,
        which is embedded once; None for critics of observations alone.
      masks: Dropout masks of a `NormalizedMLP`, `[B, N, S]` or `[B, P, N, S]`.

    Returns:
      Concatenated outputs of all critics, `[B, N K]` or `[B, P, N K]`.
    """
    return self._evaluate(self._torsos, observation, action, masks)

  def first(self, observation: types.Nest, action: tf.Tensor) -> tf.Tensor:
    """Evaluates actions by the first critic alone, `[B, K]`."""
    variables = _find_variables(self._networks[0])
    with contextlib.ExitStack() as stack:
      for module, name, variable in variables:
        if variable.shape.rank == 3:
          vars(module)[name] = variable[:1]
          stack.callback(vars(module).__setitem__, name, variable)
      return self._evaluate(self._torsos[:1], observation, action)

  def _evaluate(self, embed, observation, action=None, masks=None):
    features = [torso(observation) for torso in embed]  # M times [B, F]
    between = []
    if action is not None:
      *between, size = action.shape[1:]
      rows = tf.reshape(action, [-1, size])  # [B P, D]
      features = [
        tf.concat([tf.repeat(x, between[0], 0) if between else x, rows], -1)
        for x in features
      ]
    inputs = [tf.stack(features)]  # [M, B P, F]
    if masks is not None:
      masks = tf.reshape(masks, [-1, *masks.shape[-2:]])  # [B P, N, S]
      inputs.append(tf.transpose(masks, [1, 0, 2]))
    if len(self._torsos) == 1:
      inputs = [x[0] for x in inputs]
    self._stack_variables(inputs[0])
    layers, head = self._networks[0]
    outputs = head(layers(*inputs))  # [M, B P, K]
    if len(self._torsos) > 1:
      outputs = tf.transpose(outputs, [1, 0, 2])
    return tf.reshape(outputs, [-1, *between, len(embed) * outputs.shape[-1]])

  @snt.once
  def _stack_variables(self, features: tf.Tensor) -> None:
    """Creates each critic's variables; then the first has those of all."""
    if len(self._torsos) == 1:
      return
    for layers, head in self._networks:
      head(layers(features[:1]))
    for found in zip(*map(_find_variables, self._networks)):
      module, name, variable = found[0]
      if variable.shape.rank:
        values = tf.stack([each for _, _, each in found])
        if variable.shape.rank == 1:
          values = values[:, None]
        with module.name_scope:
          _, _, own_name = variable.name[: -len(':0')].rpartition('/')
          stacked = tf.Variable(values, variable.trainable, name=own_name)
        setattr(module, name, stacked)
    self._networks = self._networks[:1]


def _find_variables(
  networks: Sequence[snt.Module],
) -> list[tuple[tf.Module, str, tf.Variable]]:
  """Returns modules with the names and values of their variables."""
  return [
    (module, name, value)
    for network in networks
    for module in (network, *network.submodules)
    for name, value in sorted(vars(module).items())
    if isinstance(value, tf.Variable)
  ]


def make_critic(
  spec: specs.EnvironmentSpec,
  hidden_sizes: Sequence[int],
  num_outputs: int = 1,
  image_torso: str = 'auto',
  body: str = 'mlp',
  num_critics: int = 1,
) -> Critic:
  """Creates critics of actions in [−1, 1], with their variables.

  Args:
    spec: Environment spec with bounded continuous actions.
    hidden_sizes: Sizes of the hidden layers.
    num_outputs: K, outputs for each action, such as logits of atoms.
    image_torso: Torso for images, one of `IMAGE_TORSOS` or 'auto'.
    body: Kind of the hidden layers, one of `BODIES`.
    num_critics: N, size of the ensemble.

  Raises:
    ValueError: If observations or actions are unsupported.
  """
  critic = Critic(
    spec.observations, hidden_sizes, num_outputs, image_torso, body, num_critics
  )
  size = action_scaling.ActionScaling(spec.actions).size
  torsos.create_critic_variables(critic, spec.observations, size)
  return critic
