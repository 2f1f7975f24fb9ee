"""Evaluator of gossip learners: evaluates their mean, and each of them."""

from collections.abc import Sequence
from typing import Any

from repertory.components import core
from repertory.launch.coordination import reports
from repertory.launch.nodes import evaluator, gossip_means, node
from repertory.launch.opening import session as session_lib


class GossipEvaluatorNode(evaluator.EvaluatorNode):
  """Evaluates the mean of all learners, as the run's result, then each one."""

  def __init__(
    self,
    context: node.Context,
    session: session_lib.Session,
    evaluation: evaluator.EvaluationSetup,
    *,
    source: core.VariableSource,
    network: Any,
    names: Sequence[str],
  ):
    """Prepares the evaluations.

    Args:
      evaluation: Evaluation of `network`; its variable client fetches the mean.
      source: Variable source of each learner, see `gossip_means.name_of`.
      network: Network to evaluate.
      names: Names of the learners.
    """
    super().__init__(context, session, evaluation)
    self._each = evaluation
    self._source = source
    self._network = network
    self._names = list(names)

  def evaluate(self, steps: int) -> None:
    super().evaluate(steps)
    # A single learner equals the mean.
    for name in self._names if len(self._names) > 1 else ():
      if self._stop.is_set():
        return
      self._evaluate_one(name)

  def _evaluate_one(self, name: str) -> None:
    (values,) = self._source.get_variables(
      [gossip_means.name_of(name, 'policy')]
    )
    if not values:
      return  # It has just been started.
    for variable, value in zip(self._network.variables, values, strict=True):
      variable.assign(value)
    episodes = self._run_episodes(self._each)
    if episodes is None:
      return
    returns = [episode.episode_return for episode in episodes]
    self._coordinator.write(
      reports.EVALUATIONS_OF_EACH,
      {
        'node': name,
        'episode_return': sum(returns) / len(returns),
        'count': len(returns),
      },
    )
