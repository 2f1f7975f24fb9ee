"""Base class of builders of agents with n-step transition replay."""

from repertory.agents.interface import builder
from repertory.agents.replay import experience_replay
from repertory.components import adders, specs
from repertory.components.transports import experience as experience_lib


class TransitionReplayBuilder(builder.Builder):
  """Builder of an agent with n-step transition replay.

  It describes the experience. `config` is a `replay_config.ReplayConfig` that
  also has `n_step`. Policies have no extras.
  """

  @property
  def transitions(self) -> adders.Transitions:
    """Kind of the items."""
    return adders.Transitions(self.config.n_step, self.config.discount)

  def experience(
    self, spec: specs.EnvironmentSpec, num_environments: int
  ) -> experience_lib.Experience:
    return experience_replay.describe(
      self.config, self.transitions, spec, num_environments
    )
