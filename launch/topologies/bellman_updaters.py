"""Base class of topologies with Bellman updaters."""

import dataclasses
from typing import TYPE_CHECKING

from repertory.components.config import settings
from repertory.launch.experiments import experiment as experiment_lib
from repertory.launch.topologies import topology

if TYPE_CHECKING:
  from repertory.components import specs
  from repertory.components.transports import experience as experience_lib


@dataclasses.dataclass(frozen=True, kw_only=True)
class BellmanUpdaterTopology(topology.Topology):
  """Topology with a configurable number of Bellman updaters.

  Attributes:
    num_bellman_updaters: Nodes that compute targets, for agents whose learner
      does not; None for one.
  """

  has_bellman_updaters = True

  num_bellman_updaters: int | None = settings.field(
    None,
    'nodes that compute targets, for agents whose learner does not; default: '
    'one for such an agent.',
  )

  def __post_init__(self):
    count = self.num_bellman_updaters
    if count is not None and count < 1:
      raise settings.SettingError(
        'num_bellman_updaters',
        f'must be at least 1, or left out; got {count}.',
      )

  def check_experience(
    self,
    experiment: experiment_lib.Experiment,
    experience: 'experience_lib.Experience',
    spec: 'specs.EnvironmentSpec',
  ) -> None:
    super().check_experience(experiment, experience, spec)
    if (
      self.num_bellman_updaters is not None and experience.with_targets is None
    ):
      raise settings.SettingError(
        'num_bellman_updaters',
        f'must be left out for agent {experiment.agent!r} with these settings: '
        "its learner computes targets itself. That of 'qtopt' does not if "
        'train_buffer_size is set.',
      )
