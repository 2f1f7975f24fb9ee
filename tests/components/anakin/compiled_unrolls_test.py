"""Compares unrolls made inside a program with those of adders."""

import numpy as np
import pytest
import tensorflow as tf
import tree

from repertory.components import replay
from repertory.components.anakin import unrolls
from repertory.components.config import settings
from repertory.components.transports import experience as experience_lib
from support.replay import scripted_rollouts, sequence_twin


def _make_transport(num_environments, batch_size, **items):
  items = sequence_twin.make_sequences(
    **{'length': 5, 'across_episodes': True, **items}
  )
  table = replay.queue(items.signature(sequence_twin.SPEC), max_size=100)
  experience = experience_lib.Experience(items, [table], batch_size)
  return unrolls.UnrollTransport(experience, num_environments), items


def _act_with_versions_of_iterations(histories, num_steps):
  """Returns histories whose variables change every `num_steps` steps only."""
  return [
    [
      moment._replace(version=np.int64(7 * (t // num_steps) + 3))
      for t, moment in enumerate(history)
    ]
    for history in histories
  ]


# Three batches per iteration; one of three unrolls of each environment; and one
# of single steps.
@pytest.mark.parametrize(
  ('num_environments', 'batch_size', 'length', 'steps', 'updates'),
  [(6, 2, 5, 4, 3), (2, 6, 5, 12, 1), (3, 3, 2, 1, 1)],
)
def test_batches_equal_those_of_the_adder(
  num_environments, batch_size, length, steps, updates
):
  transport, items = _make_transport(
    num_environments, batch_size, length=length
  )
  assert transport.num_steps == steps
  assert transport.max_updates == updates
  num_turns = 24 // steps
  histories = _act_with_versions_of_iterations(
    sequence_twin.make_histories(
      num_turns * steps + 1,
      ([[1], [100], [1, 2, 3, 7]] * 2)[:num_environments],
      seed=num_environments,
    ),
    steps,
  )
  script = scripted_rollouts.Script(histories)
  made, counts = scripted_rollouts.record(items, histories)
  assert counts[-1] == len(made) == num_turns * batch_size * updates

  @tf.function(autograph=False)
  def run_iteration(carry, version):
    carry, held, episodes = transport.collect(
      script.act, carry, version, tf.constant(1.0, tf.float64)
    )
    samples = [transport.sample(held, tf.constant(j)) for j in range(updates)]
    return carry, samples, episodes

  carry, found = script.carry(0), []
  num_steps, num_ended = 0, 0
  for turn in range(num_turns):
    version = script.versions[turn * steps]
    carry, samples, episodes = run_iteration(carry, tf.constant(version))
    for sample in samples:
      tree.map_structure(
        lambda leaf, spec: spec.shape.assert_is_compatible_with(leaf.shape),
        sample,
        transport.sample_spec,
      )
      data = tree.map_structure(lambda leaf: leaf.numpy(), sample.data)
      leaves = tree.flatten(data)
      found += [
        tree.unflatten_as(data, [leaf[b] for leaf in leaves])
        for b in range(batch_size)
      ]
    assert episodes.ended.shape == [steps, num_environments]
    num_steps += int(episodes.num_steps.numpy().sum())
    num_ended += int(episodes.ended.numpy().sum())
  sequence_twin.assert_equal(found, made)
  moments = [moment for history in histories for moment in history[:-1]]
  assert num_steps == sum(bool(moment.mask) for moment in moments)
  following = [moment for history in histories for moment in history[1:]]
  assert num_ended == sum(not moment.mask for moment in following)


@pytest.mark.parametrize(
  ('parts', 'items', 'message'),
  [
    ((4, 6), {}, 'batch_size must be a multiple or a divisor .* got 6 and 4'),
    ((6, 4), {}, 'batch_size must be a multiple or a divisor .* got 4 and 6'),
    ((4, 4), {'across_episodes': False}, 'across_episodes must be true'),
    ((4, 4), {'burn_in': 1}, 'across_episodes must be true, without burn-in'),
    ((4, 4), {'period': 2}, 'across_episodes .* without .* overlap'),
  ],
)
def test_mismatches_are_refused_by_name(parts, items, message):
  with pytest.raises(settings.SettingError, match=message):
    _make_transport(*parts, **items)
