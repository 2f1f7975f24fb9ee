"""What settings choose among by name; what the names stand for is elsewhere."""

# See `networks.image_torsos`, which says what 'auto' stands for.
IMAGE_TORSOS = ('auto', 'nature', 'residual', 'data_efficient', 'minatar')
# Hidden layers, see `networks.bodies`.
BODIES = (
  'mlp', 'layer_norm_mlp', 'normalized_mlp', 'batch_renorm_mlp', 'simba',
)  # fmt: skip
# Memories of recurrent networks, see `networks.recurrent`.
CORES = ('none', 'lstm', 'gru')
# How values tell the return, see `return_distributions`.
RETURN_DISTRIBUTIONS = (
  'none', 'categorical', 'quantile', 'implicit_quantile'
)  # fmt: skip
# Which learners hear from which, see `gossip.graphs`.
GRAPHS = ('ring', 'exponential', 'complete')
# What becomes of a learner step that is not finite, see `learners.divergence`.
DIVERGENCE_ACTIONS = ('stop', 'skip')
