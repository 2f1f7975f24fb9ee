"""`repertory export`: exports a trained policy as a SavedModel."""

from repertory import launch
from repertory.components.config import settings as settings_lib
from repertory.launch.cli import command, factory
from repertory.launch.cli import flags as flag_tables
from repertory.launch.opening import directories
from repertory.launch.results import wording


def _export(values, settings, positional) -> int:
  (path,) = factory.take_directory(values, positional, 'OUTPUT')
  directories.check_new(path, 'output')
  trained = factory.read_trained(values, settings, 'export')
  policy = launch.TrainedPolicy(trained)
  try:
    policy.export_saved_model(path)
  except OSError as error:
    raise settings_lib.SettingError(
      'output', f'must be writable, got {path}: {error.strerror or error}.'
    ) from error
  summary = (
    f'{policy.agent} on {policy.environment}, learner step '
    f'{policy.learner_steps}: written to {path}'
  )
  print(wording.text(summary))
  return command.DONE


command.REGISTRY.register(
  'export',
  command.Command(
    'DIRECTORY OUTPUT [--best]',
    'Writes the evaluation policy of a trained agent as a SavedModel.',
    flag_tables.TRAINED_FLAGS,
    _export,
  ),
  rank=2,
)
