"""Gossip averaging of learners' parameters with their neighbors'.

After GALA, gossip-based actor-learner architectures (Assran et al., 2019,
https://arxiv.org/abs/1906.04585). Needs no TensorFlow.
"""

from repertory.components.gossip.mixing import (
  in_neighbors,
  join,
  mix,
  neighbor_weight,
  out_neighbors,
  split,
)
from repertory.components.gossip.participant import Participant

__all__ = [
  'Participant', 'in_neighbors', 'join', 'mix', 'neighbor_weight',
  'out_neighbors', 'split',
]  # fmt: skip
