"""Runs notebooks and stores their outputs: `python run_notebook.py A.ipynb`.

Each notebook has its own namespace. Outputs of a cell are its printed text, the
value of its last line and its figures. Unlike in Jupyter, stderr is left out,
such as TensorFlow's messages about the machine.
"""

import ast
import base64
import contextlib
import io
import json
import pprint
import sys


def store(path):
  """Runs the code cells of a notebook in order, and stores their outputs."""
  with open(path, encoding='utf-8') as file:
    content = json.load(file)
  names = {'__name__': '__main__'}
  count = 0
  for number, cell in enumerate(content['cells']):
    if cell['cell_type'] == 'code':
      count += 1
      source = ''.join(cell['source'])
      cell['execution_count'] = count
      cell['outputs'] = _run_cell(
        source, f'{path}, cell {number}', names, count
      )
  with open(path, 'w', encoding='utf-8') as file:
    json.dump(content, file, indent=1, ensure_ascii=False)
    file.write('\n')


def _run_cell(source, place, names, count):
  """Runs a cell; returns its outputs in the notebook format."""
  body = ast.parse(source, place).body
  last = body.pop() if isinstance(body[-1], ast.Expr) else None
  value, printed = None, io.StringIO()
  with contextlib.redirect_stdout(printed):
    exec(compile(ast.Module(body, []), place, 'exec'), names)
    if last is not None:
      value = eval(compile(ast.Expression(last.value), place, 'eval'), names)
  outputs = []
  if printed.getvalue():
    outputs.append(
      {'name': 'stdout', 'output_type': 'stream', 'text': _lines(printed)}
    )
  if value is not None:
    text = io.StringIO(pprint.pformat(value, sort_dicts=False))
    outputs.append(
      {
        'data': {'text/plain': _lines(text)},
        'execution_count': count,
        'metadata': {},
        'output_type': 'execute_result',
      }
    )
  return outputs + _take_figures()


def _lines(text):
  return io.StringIO(text.getvalue()).readlines()


def _take_figures():
  """Returns the open figures of Matplotlib as outputs, and closes them."""
  pyplot = sys.modules.get('matplotlib.pyplot')
  outputs = []
  for number in pyplot.get_fignums() if pyplot else ():
    file = io.BytesIO()
    metadata = {'Software': None}  # Its text has an address.
    pyplot.figure(number).savefig(file, format='png', metadata=metadata)
    outputs.append(
      {
        'data': {
          'image/png': base64.b64encode(file.getvalue()).decode(),
          'text/plain': ['<Figure>'],
        },
        'metadata': {},
        'output_type': 'display_data',
      }
    )
  if pyplot:
    pyplot.close('all')
  return outputs


if __name__ == '__main__':
  for notebook in sys.argv[1:]:
    store(notebook)
