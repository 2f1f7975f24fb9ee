"""What agents have in common that replay n-step transitions."""

from collections.abc import Sequence

from repertory.agents import builder, experience_replay
from repertory.components import adders, replay, specs
from repertory.components.adders import transition


class TransitionReplayBuilder(builder.Builder):
  """Makes table, adder and priorities; the programs are left to the agent.

  `config` has the fields that `experience_replay` names, `n_step` and
  `discount`. Policies give no extras.
  """

  setting_names = experience_replay.SETTING_NAMES

  def max_items(self, num_steps: int) -> int:
    return num_steps  # Each step starts one.

  def make_tables(
    self, spec: specs.EnvironmentSpec, num_environments: int
  ) -> Sequence[replay.Table]:
    return [
      experience_replay.make_table(
        self.config, transition.signature(spec), num_environments
      )
    ]

  def make_adder(
    self, destination: adders.Destination, batch_size: int
  ) -> adders.TransitionAdder:
    return adders.TransitionAdder(
      destination,
      batch_size,
      n_step=self.config.n_step,
      discount=self.config.discount,
    )

  def make_priority_updater(
    self, connection: replay.Connection, table: replay.Table
  ) -> replay.PriorityUpdater | None:
    return experience_replay.make_priority_updater(
      self.config, connection, table
    )
