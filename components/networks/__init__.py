"""Network building blocks: torsos, cores, heads and critics."""

from repertory.components.networks.batch_renorm_mlp import (
  BatchRenormMLP,
  batch_statistics,
)
from repertory.components.networks.bounded_gaussian_network import (
  BoundedGaussianHead,
  make_bounded_gaussian_network,
)
from repertory.components.networks.critics import (
  Critic,
  CriticEnsemble,
  make_critics,
)
from repertory.components.networks.heads import (
  ActorCriticHead,
  ActorCriticOutput,
  DuelingHead,
  GaussianHead,
  make_policy_head,
  make_value_head,
)
from repertory.components.networks.image_torsos import (
  IMAGE_TORSOS,
  DataEfficientTorso,
  MinAtarTorso,
  NatureTorso,
  ResidualTorso,
)
from repertory.components.networks.initialization import (
  create_critic_variables,
  create_variables,
)
from repertory.components.networks.layer_norm_mlp import LayerNormMLP
from repertory.components.networks.noisy_linear import NoisyLinear
from repertory.components.networks.normalization import ObservationNormalizer
from repertory.components.networks.normalized_mlp import NormalizedMLP
from repertory.components.networks.recurrent import (
  CORES,
  make_core,
  reset_where,
  unroll,
)
from repertory.components.networks.return_network import ReturnNetwork
from repertory.components.networks.sequence_network import SequenceNetwork
from repertory.components.networks.simba import SimBa
from repertory.components.networks.torsos import (
  ObservationTorso,
  check_observation,
)
from repertory.components.networks.trunks import BODIES, make_trunk

__all__ = [
  'BODIES',
  'CORES',
  'IMAGE_TORSOS',
  'ActorCriticHead',
  'ActorCriticOutput',
  'BatchRenormMLP',
  'BoundedGaussianHead',
  'Critic',
  'CriticEnsemble',
  'DataEfficientTorso',
  'DuelingHead',
  'GaussianHead',
  'LayerNormMLP',
  'MinAtarTorso',
  'NatureTorso',
  'NoisyLinear',
  'NormalizedMLP',
  'ObservationNormalizer',
  'ObservationTorso',
  'ResidualTorso',
  'ReturnNetwork',
  'SequenceNetwork',
  'SimBa',
  'batch_statistics',
  'check_observation',
  'create_critic_variables',
  'create_variables',
  'make_bounded_gaussian_network',
  'make_core',
  'make_critics',
  'make_policy_head',
  'make_trunk',
  'make_value_head',
  'reset_where',
  'unroll',
]
