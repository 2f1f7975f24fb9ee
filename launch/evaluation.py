"""Runs episodes with what was learned."""

import contextlib
import dataclasses
import os

from repertory.components import environment_loop, settings
from repertory.launch import experiment as experiment_lib
from repertory.launch import filming
from repertory.launch.host import interrupts
from repertory.launch.nodes import evaluator
from repertory.launch.runs import session as session_lib
from repertory.launch.trained import loading


def evaluate(
  run: str | os.PathLike[str] | experiment_lib.Experiment,
  num_episodes: int,
  *,
  best: bool = False,
  video: str | bool = False,
  video_format: str = 'mp4',
  trust: bool = False,
) -> list[environment_loop.Episode]:
  """Evaluates the newest checkpoint of a run.

  It writes nothing but films, which change nothing else: the episodes are those
  that there are without.

  Args:
    run: The directory of a run whose agent and environment are in the
      registries, or the experiment that it is of, whatever these are.
    num_episodes: At least 1.
    best: Evaluate the policy that did best in an evaluation of training, in
      place of the newest.
    video: Folder to film the episodes to, see `filming.Film`; True for `videos`
      in the experiment's directory, False for no films.
    video_format: 'mp4' or 'gif'.
    trust: Whether to import modules that the directory names, such as
      'my_module:MyBuilder', which runs their code.

  Returns:
    The episodes.

  Raises:
    ValueError: If there is none, or it is of another experiment, or names a
      module that is not trusted; or if there is to be a film, but the folder is
      not usable or the environment cannot be filmed.
    VideoError: If a film cannot be written.
  """
  _check_num_episodes(num_episodes)
  with interrupts.insisting():
    trained = loading.read(run, best, trust)
  return run_episodes(
    trained, num_episodes, video=video, video_format=video_format
  )


def run_episodes(
  trained: loading.Trained,
  num_episodes: int,
  *,
  video: str | bool = False,
  video_format: str = 'mp4',
) -> list[environment_loop.Episode]:
  """Runs episodes with the evaluation policy of a trained agent.

  The arguments are those of `evaluate`.
  """
  _check_num_episodes(num_episodes)
  experiment = dataclasses.replace(
    trained.experiment, evaluation_episodes=num_episodes
  )
  session = session_lib.Session(
    experiment, trained.spec, trained.experience,
    trained.checkpoint.state['counts'], 0.0, is_resumed=True,
  )  # fmt: skip
  with contextlib.ExitStack() as stack:
    is_interrupted = stack.enter_context(interrupts.insisting())
    folder = None
    if video is not False:
      folder = filming.prepare(video, video_format, experiment.directory)
      session = dataclasses.replace(
        session, experiment=filming.with_pictures(experiment)
      )
    network = trained.network
    environments = evaluator.make_environments(session)
    stack.callback(environments.close)
    if folder is None:
      loop = evaluator.make_loop(session, network, environments)
    else:
      film = filming.Film(environments, folder, num_episodes, video_format)
      stack.callback(film.close)
      loop = evaluator.make_loop(session, network, film)
      loop.add_observer(film.keep)
    evaluator.measure(session, loop)
    return loop.run_episodes(num_episodes, should_stop=is_interrupted)


def _check_num_episodes(num_episodes: int) -> None:
  if num_episodes < 1:
    raise settings.SettingError(
      'num_episodes', f'must be at least 1, got {num_episodes}.'
    )
