"""Experience transports, from actors to the learner."""

from repertory.components.roads.actor_snapshots import ActorSnapshots, Moment
from repertory.components.roads.data_road import (
  DataRoad,
  check_data,
  unlimited,
)
from repertory.components.roads.demonstrations import Demonstrations
from repertory.components.roads.learner_end import LearnerEnd
from repertory.components.roads.local_road import (
  ActorStates,
  LocalRoad,
  check_local,
)
from repertory.components.roads.parts import Parts
from repertory.components.roads.reverb_road import ReverbRoad
from repertory.components.roads.road import DATA, PARTS, PROGRAM, Road
from repertory.components.roads.snapshots import Snapshots

__all__ = [
  'DATA',
  'PARTS',
  'PROGRAM',
  'ActorSnapshots',
  'ActorStates',
  'DataRoad',
  'Demonstrations',
  'LearnerEnd',
  'LocalRoad',
  'Moment',
  'Parts',
  'ReverbRoad',
  'Road',
  'Snapshots',
  'check_data',
  'check_local',
  'unlimited',
]
