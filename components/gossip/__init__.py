"""Gossip averaging of learners' parameters with their neighbors'.

After GALA, gossip-based actor-learner architectures (Assran et al., 2019,
https://arxiv.org/abs/1906.04585). Needs no TensorFlow.
"""

from repertory.components.gossip.graphs import (
  contraction,
  in_neighbors,
  mixing_matrix,
  neighbor_weight,
  out_neighbors,
)
from repertory.components.gossip.inlet import Inlet
from repertory.components.gossip.mailbox import Mailbox, Message
from repertory.components.gossip.mixing import Trail, mix
from repertory.components.gossip.outlet import Outlet
from repertory.components.gossip.participant import (
  Figures,
  Neighborhood,
  Participant,
)
from repertory.components.gossip.streams import RefusedLinkError
from repertory.components.gossip.vectors import VectorLayout

__all__ = [
  'Figures',
  'Inlet',
  'Mailbox',
  'Message',
  'Neighborhood',
  'Outlet',
  'Participant',
  'RefusedLinkError',
  'Trail',
  'VectorLayout',
  'contraction',
  'in_neighbors',
  'mix',
  'mixing_matrix',
  'neighbor_weight',
  'out_neighbors',
]
