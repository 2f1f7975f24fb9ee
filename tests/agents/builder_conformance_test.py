"""Tests that the conformance tests find invalid builders."""

import dataclasses

import numpy as np
import pytest

from repertory.agents import dqn
from repertory.agents.dqn import learning
from repertory.agents.interface import conformance
from support.agents import agent_batches, late_builders

_AGENT = agent_batches.AGENTS['dqn']
_CONFIG = dqn.DQNConfig(hidden_sizes=(4,), jit_compile=False, **_AGENT.settings)


class _PlansAnew(dqn.DQNBuilder):
  """Its tables have another size in another process."""

  def __setstate__(self, state):
    self.__dict__.update(state)
    self.is_sent = True

  def experience(self, spec, num_environments):
    experience = super().experience(spec, num_environments)
    if hasattr(self, 'is_sent'):
      max_size = experience.table.max_size // 2
      experience = experience.with_table(max_size=max_size)
    return experience


class _Varying(dqn.DQNBuilder):
  num_layers = 0

  def make_network(self, spec):
    self.num_layers += 1
    config = dataclasses.replace(
      self.config, hidden_sizes=(4,) * self.num_layers
    )
    return dqn.DQNBuilder(config).make_network(spec)


class _UpdateThatExportsSome(learning.DQNUpdate):
  @property
  def exports(self):
    return {'policy': super().exports['policy'][1:]}


class _ExportsSome(dqn.DQNBuilder):
  def make_update(self, network, spec):
    target = self.make_network(spec)
    return _UpdateThatExportsSome(network, target, self.config)


class _TooSmall(dqn.DQNBuilder):
  def experience(self, spec, num_environments):
    experience = super().experience(spec, num_environments)
    return experience.with_table(max_size=10)


class _Exploring(dqn.DQNBuilder):
  def make_policy(self, network, acting):
    return super().make_policy(
      network, dataclasses.replace(acting, evaluation=False)
    )


class _NotANumber(dqn.DQNBuilder):
  def make_network(self, spec):
    network = super().make_network(spec)
    network.variables[0].assign(network.variables[0] * np.nan)
    return network


class _Checks(conformance.BuilderConformance):
  builder_class = dqn.DQNBuilder

  def make_builder(self):
    return self.builder_class(_CONFIG)

  def make_spec(self):
    return _AGENT.spec


@pytest.mark.parametrize(
  ('builder_class', 'check'),
  [
    (_PlansAnew, 'can_be_sent'),
    (_Varying, 'networks_are_alike_and_share_nothing'),
    (_ExportsSome, 'exports_what_a_network_has'),
    (_TooSmall, 'tables_can_run'),
    (_Exploring, 'evaluation_is_the_same'),
    (_NotANumber, 'parts_fit_together'),
    (late_builders.LateHead, 'parts_fit_together'),
    (late_builders.MadeByUpdate, 'exports_what_a_network_has'),
  ],
)
def test_finds_wrong_builders(builder_class, check):
  checks = _Checks()
  checks.builder_class = builder_class
  with pytest.raises((AssertionError, ValueError, TypeError)):
    getattr(checks, f'test_{check}')()


def test_too_few_steps_to_learn_from():
  checks = _Checks()
  checks.max_steps = 10
  with pytest.raises(AssertionError, match='too few for a learner step'):
    checks.test_parts_fit_together()
