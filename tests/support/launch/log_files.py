"""Reads the logs of a run."""

import csv
import json
import pathlib


def rows(directory, label: str) -> list[dict]:
  """Returns the rows of `logs/<label>.csv`; all but 'node' as floats."""
  path = pathlib.Path(directory, 'logs', f'{label}.csv')
  with path.open() as file:
    return [
      {
        name: value if name == 'node' else float(value)
        for name, value in row.items()
        if value
      }
      for row in csv.DictReader(file)
    ]


def nodes(directory) -> list[dict]:
  """Returns the lines of `logs/nodes.jsonl`."""
  path = pathlib.Path(directory, 'logs', 'nodes.jsonl')
  return [json.loads(line) for line in path.read_text().splitlines()]


def restarted(directory) -> list[str]:
  """Returns the names of restarted nodes, once for each restart."""
  return [row['node'] for row in nodes(directory) if 'restarted_after' in row]


def total(table: list[dict[str, float]], column: str = 'count') -> float:
  """Sums a column."""
  return sum(row[column] for row in table)
