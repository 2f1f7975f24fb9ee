"""Gossip: actor-learners that average parameters with neighbors in a graph."""

import dataclasses
import math
import os
from typing import TYPE_CHECKING

from repertory import components
from repertory.agents.interface import config_checks
from repertory.components.config import choices, settings
from repertory.components.config.settings import SettingError
from repertory.launch import experiments, launchers, nodes
from repertory.launch.coordination import kinds
from repertory.launch.experiments import experiment as experiment_lib
from repertory.launch.topologies import parts, topology

if TYPE_CHECKING:
  from repertory.components import specs
  from repertory.components.transports import experience as experience_lib
  from repertory.launch.experiments import session as session_lib


@topology.register
@dataclasses.dataclass(frozen=True)
class Gossip(topology.Topology):
  """Gossip-based actor-learners (GALA): https://arxiv.org/abs/1906.04585."""

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
    'of each in-neighbor and the learner itself, as in the paper.',
  )

  @property
  def learners(self) -> list[str]:
    """Names of the actor-learners."""
    return [kinds.ACTOR_LEARNER.numbered(i) for i in range(self.num_learners)]

  def transports(self, experiment):
    return [components.transports.SHARES]

  def check(self, experiment):
    config_checks.check_at_least(self, 1, 'num_learners', 'mix_period')
    known, weight = choices.GRAPHS, self.mix_weight
    is_known, is_share = self.graph in known, weight is None or 0 < weight < 1
    config_checks.check(self, 'graph', is_known, f'one of {", ".join(known)}')
    config_checks.check(self, 'mix_weight', is_share, 'above 0 and below 1')
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
    smallest = self._divide(experiment)[-1]
    try:
      _describe_experience(smallest, spec)
    except SettingError as error:
      problem = (
        f'{error.problem} This is for the share of one of {self.num_learners} '
        'learners.'
      )
      raise SettingError(error.setting, problem, **error.remedy) from error

  def program(self, session):
    planned = parts.make_program(session, has_server=False)
    session = session.without_callbacks()
    learner = kinds.LEARNER.name
    planned.plan(
      learner, nodes.gossip.GossipNode, session=session, names=self.learners
    )
    planned.plan(
      kinds.EVALUATOR.name, parts.make_evaluator, [learner], session=session
    )
    sessions = self._make_sessions(session)
    for index, (name, own) in enumerate(zip(self.learners, sessions)):
      planned.plan(
        name,
        _make_actor_learner,
        [learner],
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

  def _divide(
    self, experiment: experiment_lib.Experiment
  ) -> list[experiment_lib.Experiment]:
    """Returns the experiment of each learner, with its share of all steps."""
    count = self.num_learners
    period = experiment.checkpoint_period_learner_steps
    steps, rest = divmod(experiment.max_steps, count)
    learners = os.path.join(
      experiment.directory, experiments.directories.LEARNERS
    )
    return [
      dataclasses.replace(
        experiment,
        max_steps=max(1, steps + (index < rest)),
        num_actors=1,
        environments_per_actor=experiment.num_environments // count,
        directory=os.path.join(learners, str(index)),
        checkpoints_to_keep=1,
        checkpoint_period_learner_steps=period and max(1, period // count),
        initial_from=None,
        storage=None,
      )
      for index in range(count)
    ]

  def _make_sessions(
    self, session: 'session_lib.Session'
  ) -> 'list[session_lib.Session]':
    """Returns the session of each learner, as of a new run."""
    shares = self._divide(session.experiment)
    # Only once: agents of sequences make a network for it, whose initial values
    # would change the random numbers of other learners.
    experience = _describe_experience(shares[0], session.spec)
    counts = {
      'steps': 0,
      'episodes': 0,
      'learner_steps': 0,
      # Makes the seeds of a run differ from those of earlier ones.
      'runs': session.counts['runs'],
    }
    return [
      dataclasses.replace(
        session,
        experiment=experiment,
        experience=experience,
        counts=counts,
        is_resumed=False,
        transport=components.transports.InProcessTransport.kind,
        initial=None,
        part=experiments.session.LearnerShare(
          index, self.num_learners, session.num_environments
        ),
      )
      for index, experiment in enumerate(shares)
    ]


def _describe_experience(
  experiment: experiment_lib.Experiment, spec: 'specs.EnvironmentSpec'
) -> 'experience_lib.Experience':
  """Returns the experience of a learner's experiment, after checking it."""
  in_process = [components.transports.InProcessTransport.kind]
  experience, _ = experiments.preflight.describe(experiment, spec, in_process)
  return experience


def _make_actor_learner(context, session, gossip, index):
  gossip_node = launchers.calls.AuthenticatedClient(
    context.peers[kinds.LEARNER.name], context.caller
  )
  context.report_start(f'waiting for {kinds.LEARNER.name}')
  launchers.calls.wait_for_server(
    gossip_node, session.experiment.timeout_seconds, context.stop
  )
  return nodes.actor_learner.ActorLearnerNode(
    context, session, index, gossip, gossip_node
  )
