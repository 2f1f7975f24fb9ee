"""Results of runs, for comparison: logs, tables, plots; needs no TensorFlow.

found = results.find(['runs'])
print(results.table(found.runs, sort='-best_return'))
returns = found.runs[0].logs['evaluator']['episode_return']
results.plots.plot(found.runs, 'returns.svg')
"""

from typing import TYPE_CHECKING

from repertory.components.config import lazy_imports

if TYPE_CHECKING:
  from repertory.launch.results.groups import Group, group
  from repertory.launch.results.runs import Found, RunRecord, find, read
  from repertory.launch.results.tables import rows, table

__all__ = [
  'Found',
  'Group',
  'RunRecord',
  'find',
  'group',
  'read',
  'rows',
  'table',
]

# Matplotlib and Jinja are extras.
__getattr__, __dir__ = lazy_imports.modules(__name__)
