"""Replay, actor, learner and evaluator in turn, in one thread."""

import contextlib
import time

from repertory.components import loggers, replay, signals
from repertory.launch import coordinator as coordinator_lib
from repertory.launch import evaluation, interrupts, nodes
from repertory.launch import session as session_lib

# How often counts are reported and the display is drawn.
_REPORT_PERIOD_SECONDS = 0.25

# Who calls whom, for the graph.
CALLS = (
  ('actor', 'replay'),
  ('learner', 'replay'),
  ('actor', 'coordinator'),
  ('learner', 'coordinator'),
  ('evaluator', 'coordinator'),
)


def run(
  session: session_lib.Session,
  title: str,
  interruption: interrupts.Interruption,
  show,
) -> loggers.Status:
  """Runs an experiment in this thread.

  The rate limiter is on, as in every topology. After each step of the
  environment batch the learner takes the batches that are due, so that which
  learner step follows which environment step is the same in every run.

  Args:
    session: What runs.
    title: What the display calls it.
    interruption: Ends the run early when set; the checkpoint is written.
    show: Takes the status now and then.

  Returns:
    The status at the end.
  """
  coordinator = coordinator_lib.Coordinator(session, title)
  server = nodes.start_replay(session)
  connection = replay.Connection(
    f'localhost:{server.port}',
    session.experiment.timeout_seconds,
    interruption,
  )
  with contextlib.ExitStack() as stack:
    stack.callback(server.stop)
    stack.callback(coordinator.close)
    learner = nodes.LearnerNode(session, connection, coordinator)
    stack.callback(learner.close)
    actor = nodes.ActorNode(
      session,
      'actor/0',
      range(session.experiment.num_environments),
      connection,
      learner,
      coordinator,
    )
    stack.callback(actor.close)
    evaluator = evaluation.EvaluatorNode(
      session, learner, coordinator, interruption
    )
    stack.callback(evaluator.close)
    with contextlib.suppress(signals.Stopped):
      _take_turns(
        session, interruption, coordinator, learner, actor, evaluator, show
      )
    steps = actor.report().steps
    learner.report()
    learner.checkpoint()
    if not interruption.is_set():
      evaluator.evaluate(steps)
    return coordinator.status()


def _take_turns(
  session, interruption, coordinator, learner, actor, evaluator, show
) -> None:
  """Acts, learns and evaluates until the steps are done or it is stopped."""
  max_steps = session.experiment.max_steps
  steps = session.counts['steps']
  reported_at = 0.0
  while steps < max_steps:
    interruption.check()
    steps += actor.step()
    learner.catch_up(actor.num_items)
    now = time.monotonic()
    if now - reported_at > _REPORT_PERIOD_SECONDS:
      reported_at = now
      actor.report()
      learner.report()
      learner.checkpoint_if_due()
      show(coordinator.status())
    if evaluator.is_due(steps):
      actor.report()
      learner.report()
      evaluator.evaluate(steps)
