"""Names that settings choose from; other modules implement them."""

from collections.abc import Collection

from repertory.components.config import settings

# See `networks.image_torsos`, which defines 'auto'.
IMAGE_TORSOS = ('auto', 'nature', 'residual', 'data_efficient', 'minatar')
# Hidden layers, see `networks.make_trunk`.
BODIES = (
  'mlp', 'layer_norm_mlp', 'normalized_mlp', 'batch_renorm_mlp', 'simba',
)  # fmt: skip
# Recurrent cores, see `networks.make_core`.
CORES = ('none', 'lstm', 'gru', 'gtrxl')
# Communication graphs of learners, see `gossip.mixing`.
GRAPHS = ('ring', 'exponential', 'complete')
# Reactions to a non-finite learner step, see `learners.Divergence`.
DIVERGENCE_ACTIONS = ('stop', 'skip')


def check(name: str, value: str, known: Collection[str]) -> None:
  """Raises SettingError for an argument that is none of the known names."""
  if value not in known:
    raise settings.SettingError(
      name,
      f'must be one of {", ".join(known)}; got {value!r}.'
      f'{settings.did_you_mean(value, known)}',
    )
