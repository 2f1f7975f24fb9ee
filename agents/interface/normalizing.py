"""Normalization of observations around the factories of builders."""

import contextlib
import functools
import threading
from collections.abc import Callable, Iterator
from typing import Any

from repertory.agents.interface import config_checks
from repertory.components import adders, learners
from repertory.components.networks import normalization

_scope = threading.local()


def wrap(method: Callable[..., Any]) -> Callable[..., Any]:
  """Wraps a factory method of a builder, as its settings ask for.

  With `normalize_observations`, `make_network` returns a `NormalizedNetwork`.
  `make_update` gets the network inside, and the networks that it makes have no
  normalizer either, as `NormalizedUpdate` normalizes its batches. `experience`
  and `make_update` refuse settings that would be without effect.
  """
  wrapper = _WRAPPERS.get(method.__name__)
  return functools.wraps(method)(wrapper(method)) if wrapper else method


def _wrap_network(method):
  def make_network(self, spec):
    if not _adds_normalizer(self):
      return method(self, spec)
    with _without_normalizers():
      network = method(self, spec)
    normalizer = normalization.ObservationNormalizer(spec.observations)
    return normalization.NormalizedNetwork(network, normalizer)

  return make_network


def _wrap_update(method):
  def make_update(self, network, spec):
    if _adds_normalizer(self):
      if not isinstance(network, normalization.NormalizedNetwork):
        raise ValueError(
          f'The network of {type(self).__name__}.make_update must be of '
          'make_network, which adds the normalizer of normalize_observations, '
          f'got a {type(network).__name__}.'
        )
      with _without_normalizers():
        update = method(self, network.network, spec)
      update = learners.NormalizedUpdate(update, network)
    else:
      update = method(self, network, spec)
    if self.config.normalize_rewards:
      config_checks.check(
        self.config,
        'normalize_rewards',
        any(isinstance(m, learners.RunningScale) for m in update.submodules),
        f'False for {type(self).__name__}, whose update has no RunningScale',
      )
    return update

  return make_update


def _wrap_experience(method):
  def experience(self, spec, num_environments):
    found, config = method(self, spec, num_environments), self.config
    for name in ('normalize_observations', 'normalize_rewards'):
      config_checks.check(
        config,
        name,
        found.with_targets is None or not getattr(config, name),
        'False if Bellman updaters compute targets: they do not have the '
        'statistics',
      )
    config_checks.check(
      config,
      'normalize_observations',
      not config.normalize_observations
      or isinstance(found.items, adders.Transitions | adders.Sequences),
      f'False for other items than transitions and sequences, such as '
      f'{type(found.items).__name__}',
    )
    return found

  return experience


_WRAPPERS = {
  'make_network': _wrap_network,
  'make_update': _wrap_update,
  'experience': _wrap_experience,
}


@contextlib.contextmanager
def _without_normalizers() -> Iterator[None]:
  """Lets factories that are called inside this thread add no normalizer."""
  _scope.is_plain = True
  try:
    yield
  finally:
    _scope.is_plain = False


def _adds_normalizer(builder: Any) -> bool:
  is_plain = getattr(_scope, 'is_plain', False)
  return builder.normalizes_observations and not is_plain
