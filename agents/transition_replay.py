"""What agents have in common that replay n-step transitions."""

from repertory.agents import builder, experience_replay
from repertory.components import adders, specs
from repertory.components import experience as experience_lib


class TransitionReplayBuilder(builder.Builder):
  """Describes the experience; the programs are left to the agent.

  `config` is a `replay_config.ReplayConfig` that has `n_step`, too.
  Policies give no extras.
  """

  @property
  def transitions(self) -> adders.Transitions:
    """The items."""
    return adders.Transitions(self.config.n_step, self.config.discount)

  def experience(
    self, spec: specs.EnvironmentSpec, num_environments: int
  ) -> experience_lib.Experience:
    return experience_replay.describe(
      self.config, self.transitions, spec, num_environments
    )
