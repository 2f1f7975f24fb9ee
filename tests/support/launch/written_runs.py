"""Handwritten directories of runs."""

import csv
import json
import pathlib

CONFIG = {'config.n_step': 3, 'config.discount': 0.99, 'num_environments': 1}


def write(
  directory,
  returns=((100, 1.0), (200, 2.0)),
  *,
  agent='dqn',
  environment='catch',
  seed=0,
  config=None,
  topology='single',
  topology_settings=None,
  ended='done',
  experiment=None,
  **logs,
):
  """Writes the files of a run; returns its directory as text."""
  directory = pathlib.Path(directory)
  folder = directory / 'logs'
  folder.mkdir(parents=True)
  (directory / '.lock').touch()
  steps = max((s for s, _ in returns), default=0)
  identity = {
    'agent': agent,
    'environment': environment,
    'seed': seed,
    **(config or CONFIG),
  }
  ledger = [
    {
      'begun': '2026-01-02T03:04:05+00:00',
      'topology': topology,
      'topology_settings': topology_settings or {},
      'experiment': {'max_steps': 1000, **(experiment or {})},
      'config': identity,
    }
  ]
  if ended is not None:
    ledger.append(
      {
        'ended': '2026-01-02T04:04:05+00:00',
        'state': ended,
        'signal': 15 if ended == 'interrupted' else None,
        'steps': steps,
        'elapsed_seconds': 60.0,
      }
    )
  write_jsonl(folder / 'runs.jsonl', ledger)
  evaluations = [
    {
      'steps': s,
      'learner_steps': s / 2,
      'elapsed_seconds': s / 10,
      'episode_return': value,
    }
    for s, value in returns
  ]
  for label, rows in {'evaluator': evaluations, **logs}.items():
    write_csv(folder / f'{label}.csv', rows)
  return str(directory)


def write_jsonl(path, rows):
  path.write_text(''.join(f'{json.dumps(row)}\n' for row in rows))


def write_csv(path, rows):
  names = dict.fromkeys(name for row in rows for name in row)
  with open(path, 'w', newline='') as file:
    writer = csv.DictWriter(file, names, lineterminator='\n')
    writer.writeheader()
    writer.writerows(rows)
