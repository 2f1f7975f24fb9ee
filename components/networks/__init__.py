"""Network building blocks: torsos, cores, heads and critics."""

from typing import TYPE_CHECKING

from repertory.components.config import lazy_imports

if TYPE_CHECKING:
  from repertory.components.networks.critics import *
  from repertory.components.networks.gtrxl import *
  from repertory.components.networks.heads import *
  from repertory.components.networks.image_torsos import *
  from repertory.components.networks.masked_network import *
  from repertory.components.networks.normalization import *
  from repertory.components.networks.return_network import *
  from repertory.components.networks.sequence_network import *
  from repertory.components.networks.torsos import *
  from repertory.components.networks.trunks import *

__all__ = [
  'BODIES', 'CORES', 'IMAGE_TORSOS', 'ActorCriticHead', 'ActorCriticOutput',
  'BatchRenormMLP', 'BoundedGaussianHead', 'Critic', 'DataEfficientTorso',
  'DuelingHead', 'GTrXL', 'GTrXLState', 'GaussianHead', 'LayerNormMLP',
  'MaskedNetwork', 'MinAtarTorso', 'NatureTorso', 'NoisyLinear',
  'NormalizedMLP', 'NormalizedNetwork', 'ObservationNormalizer',
  'ObservationTorso', 'ResidualTorso', 'ReturnNetwork', 'SequenceNetwork',
  'SimBa', 'batch_statistics', 'check_observation', 'create_critic_variables',
  'create_variables', 'make_bounded_gaussian_network', 'make_core',
  'make_critic', 'make_policy_head', 'make_sequential', 'make_trunk',
  'make_value_head', 'mask_actions', 'reset_where', 'unroll',
]  # fmt: skip

__getattr__, __dir__ = lazy_imports.modules(__name__)
