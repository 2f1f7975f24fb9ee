"""Runs the code of notebooks, cell by cell: `python run_notebook.py A.ipynb`.

Each notebook begins with no names of another. What the last line of a cell
says is printed, as a notebook shows it.
"""

import ast
import json
import sys


def run(path):
  """Runs the code cells of a notebook in order."""
  with open(path, encoding='utf-8') as file:
    cells = json.load(file)['cells']
  names = {'__name__': '__main__'}
  for number, cell in enumerate(cells):
    if cell['cell_type'] == 'code':
      _run_cell(''.join(cell['source']), f'{path}, cell {number}', names)


def _run_cell(source, place, names):
  body = ast.parse(source, place).body
  last = body.pop() if isinstance(body[-1], ast.Expr) else None
  exec(compile(ast.Module(body, []), place, 'exec'), names)
  if last is not None:
    value = eval(compile(ast.Expression(last.value), place, 'eval'), names)
    if value is not None:
      print(value)


if __name__ == '__main__':
  for notebook in sys.argv[1:]:
    run(notebook)
