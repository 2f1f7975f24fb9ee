"""Gossip: actor-learners that average parameters with neighbors in a graph."""

import dataclasses
import math

from repertory import components
from repertory.components.config import choices, settings
from repertory.components.config.settings import SettingError
from repertory.launch import launchers, nodes
from repertory.launch.coordination import kinds
from repertory.launch.topologies import parts, topology


@topology.register
@dataclasses.dataclass(frozen=True)
class Gossip(topology.Topology):
  """Gossip-based actor-learners (GALA): https://arxiv.org/abs/1906.04585.

  Attributes:
    num_learners: Number of actor-learners; the environments of all actors are
      divided among them.
    graph: Communication graph, see `gossip.in_neighbors`.
    mix_period: Learner steps between mixings.
    mix_weight: Total weight of the in-neighbors in the average; None for equal
      weights of each in-neighbor and the learner itself, as in the paper.
  """

  name = 'gossip'
  help = (
    'actor-learners that average parameters with their neighbors in a graph; '
    'an evaluator'
  )
  rank = 5

  num_learners: int = settings.field(
    2,
    'actor-learners, among which the environments of all actors are divided.',
  )
  graph: str = settings.field(
    'ring',
    'in-neighbors of each learner: ring, the one before it; exponential, those '
    '1, 2, 4, ... before it; complete, all others.',
  )
  mix_period: int = settings.field(1, 'learner steps between mixings.')
  mix_weight: float | None = settings.field(
    None,
    'total weight of the in-neighbors in the average; default: equal weights '
    'of each in-neighbor and the learner itself.',
  )

  def __post_init__(self):
    for name in ('num_learners', 'mix_period'):
      if getattr(self, name) < 1:
        raise SettingError(
          name, f'must be at least 1, got {getattr(self, name)}.'
        )
    if self.graph not in choices.GRAPHS:
      raise SettingError(
        'graph',
        f'must be one of {", ".join(choices.GRAPHS)}, got {self.graph!r}.',
      )
    weight = self.mix_weight
    if weight is not None and not 0 < weight < 1:
      raise SettingError(
        'mix_weight', f'must be above 0 and below 1, got {weight:g}.'
      )

  @property
  def learners(self) -> list[str]:
    """Names of the actor-learners."""
    return [kinds.ACTOR_LEARNER.numbered(i) for i in range(self.num_learners)]

  def transports(self, experiment):
    return [components.transports.SHARES]

  def check(self, experiment):
    num_environments = experiment.num_environments
    if num_environments % self.num_learners:
      # The next number of actors whose environments divide evenly.
      each = experiment.num_environments_per_actor
      step = self.num_learners // math.gcd(self.num_learners, each)
      num_actors = -(-experiment.num_actors // step) * step
      raise SettingError(
        'num_learners',
        f'must divide the {num_environments} environments of all actors '
        f'evenly, got {self.num_learners}. Change the number of actors.',
        num_actors=num_actors,
      )

  def check_experience(self, experiment, experience, spec):
    super().check_experience(experiment, experience, spec)
    share = nodes.shares.make_experiment(
      experiment, self.num_learners - 1, self.num_learners
    )
    try:
      nodes.shares.describe_experience(share, spec)
    except SettingError as error:
      problem = (
        f'{error.problem} This is for the share of one of {self.num_learners} '
        'learners.'
      )
      raise SettingError(error.setting, problem, **error.remedy) from error

  def program(self, session, title):
    planned = parts.make_program(session, title, has_server=False)
    coordinator, learner = kinds.COORDINATOR.name, kinds.LEARNER.name
    planned.plan(
      learner,
      _make_gossip,
      [coordinator],
      session=session,
      names=self.learners,
    )
    calls = [learner, coordinator]
    planned.plan(
      kinds.EVALUATOR.name, parts.make_evaluator, calls, session=session
    )
    sessions = nodes.shares.make_sessions(session, self.num_learners)
    for index, (name, own) in enumerate(zip(self.learners, sessions)):
      planned.plan(
        name,
        _make_actor_learner,
        calls,
        session=own,
        gossip=self,
        index=index,
      )
    return planned

  def call_graph(self, session):
    graph = super().call_graph(session)
    # One-way messages between actor-learners, which are not calls.
    count, names = self.num_learners, self.learners
    pairs = [
      (names[i], names[j])
      for i in range(count)
      for j in components.gossip.out_neighbors(self.graph, count, i)
    ]
    return graph._replace(calls=[*graph.calls, *pairs])


def _make_gossip(context, session, names):
  return nodes.gossip.GossipNode(context, session, names)


def _make_actor_learner(context, session, gossip, index):
  gossip_node = context.peers[kinds.LEARNER.name]
  context.report_start(f'waiting for {kinds.LEARNER.name}')
  launchers.calls.wait_for_server(
    gossip_node, session.experiment.timeout_seconds, context.stop.is_set
  )
  return nodes.actor_learner.ActorLearnerNode(
    context, session, index, gossip, gossip_node
  )
