"""Gossip averaging of learners' parameters with their neighbors'.

After GALA, gossip-based actor-learner architectures (Assran et al., 2019,
https://arxiv.org/abs/1906.04585). Needs no TensorFlow.
"""

from repertory.components.gossip.links import (
  Inlet,
  Message,
  Outlet,
  RefusedLinkError,
)
from repertory.components.gossip.mixing import (
  VectorLayout,
  in_neighbors,
  mix,
  neighbor_weight,
  out_neighbors,
)
from repertory.components.gossip.participant import Figures, Participant

__all__ = [
  'Figures',
  'Inlet',
  'Message',
  'Outlet',
  'Participant',
  'RefusedLinkError',
  'VectorLayout',
  'in_neighbors',
  'mix',
  'neighbor_weight',
  'out_neighbors',
]
