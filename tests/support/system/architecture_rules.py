"""Checkers of the architecture's rules on imports, names and sizes.

Each takes a file's path, relative to the root, and its syntax tree, and returns
a line for each violation.
"""

import ast
import os
import pathlib

MAX_FILE_LINES = 600
MAX_FUNCTION_LINES = 60

_FOLDERS = ('components', 'agents', 'environments', 'launch')
# Modules below `components` and `environments`, such as random streams, import
# paths and settings. They import no other module of the package.
_BELOW_BOTH = (
  'components/config',
  'components/runtime/image_layouts',
  'components/runtime/mask_layouts',
  'components/runtime/random_streams',
  'components/runtime/stacked_array',
)
# Inside a folder, a part may import its own rank and earlier ones.
_RANKS_OF_COMPONENTS = (
  ('config',),
  ('types', 'runtime', 'network', 'specs', 'actions'),
  ('core', 'interfaces'),
  (
    'checkpoints', 'distributions', 'losses', 'networks', 'policies', 'replay',
    'adders', 'variables', 'loggers',
  ),
  ('actors', 'learners', 'inference', 'offline'),
  ('gossip', 'transports', 'anakin'),
  ('testing',),
)  # fmt: skip
_RANKS_OF_LAUNCH = (
  ('failures', 'platform'),
  ('experiments',),
  ('coordination',),
  ('nodes',),
  ('launchers',),
  ('topologies', 'trained'),
  ('opening',),
  ('results', 'sweeps'),
  ('cli',),
)
_RANK_OF = {
  folder: {name: rank for rank, names in enumerate(ranks) for name in names}
  for folder, ranks in (
    ('components', _RANKS_OF_COMPONENTS),
    ('launch', _RANKS_OF_LAUNCH),
  )
}
# Folders and files that may import a library.
_GYMNASIUM_AND_FRIENDS = (
  'gymnasium', 'gym', 'ale_py', 'atari_py', 'bsuite', 'dm_control', 'envpool',
  'gymnax', 'mujoco', 'procgen', 'pygame',
)  # fmt: skip
_FENCES = {
  'courier': ('launch/launchers/courier_servers.py',),
  'grpc': ('launch/launchers/grpc_servers.py',),
  'ray': (
    'launch/launchers/ray_cluster.py',
    'launch/launchers/ray_supervisor.py',
    'launch/launchers/ray_workers.py',
  ),
  'acme': (
    'components/core.py',
    'components/specs.py',
    'components/types.py',
    'components/loggers/',
  ),
  'reverb': ('components/replay/reverb/',),
  'h5py': ('components/offline/minari.py',),
  'matplotlib': ('launch/results/plots.py',),
  'jinja2': ('launch/results/report.py',),
  'wandb': ('launch/experiments/callbacks.py',),
  'optuna': ('launch/sweeps/study.py',),
  'lz4': ('components/replay/local/stored_arrays.py',),
  'fsspec': ('components/checkpoints/storage.py',),
  'imageio_ffmpeg': ('launch/trained/videos.py',),
  **dict.fromkeys(_GYMNASIUM_AND_FRIENDS, ('environments/',)),
}
# Modules of `agents` that agents may import besides their own folder.
_SHARED_BY_AGENTS = ('actor_critic', 'interface', 'replay', 'unrolls')
_DUMPING_GROUNDS = ('util', 'helper', 'common', 'misc', 'base')


def source_files(root):
  """Returns the sorted paths of all Python files except tests."""
  skipped = {'tests', 'build', 'dist', 'runs'}  # In the root only.
  paths = []
  for folder, names, files in os.walk(root):
    is_root = pathlib.Path(folder) == pathlib.Path(root)
    names[:] = [
      name
      for name in names
      if not name.startswith(('.', '__pycache__'))
      and not (is_root and name in skipped)
    ]
    paths += [
      pathlib.Path(folder, file).relative_to(root).as_posix()
      for file in files
      if file.endswith('.py')
    ]
  return sorted(paths)


def imports(tree, calls=True):
  """Returns (line, dotted name) of all imports, also inside functions.

  `from a import b, c` is a.b and a.c. Calls of `import_module` count, too.
  """
  found = []
  for node in ast.walk(tree):
    if isinstance(node, ast.Import):
      found += [(node.lineno, alias.name) for alias in node.names]
    elif isinstance(node, ast.ImportFrom):  # Relative ones are forbidden.
      found += [(node.lineno, f'{node.module}.{a.name}') for a in node.names]
    elif calls and isinstance(node, ast.Call) and _is_import_call(node):
      found.append((node.lineno, node.args[0].value))
  return found


def _is_import_call(node):
  function = node.func
  name = getattr(function, 'attr', None) or getattr(function, 'id', None)
  return (
    name in ('import_module', '__import__')
    and bool(node.args)
    and isinstance(node.args[0], ast.Constant)
    and isinstance(node.args[0].value, str)
  )


def check_direction(path, tree):
  """Checks `launch` → `agents` → `components`, beside `environments`."""
  if path.split('/')[0] not in _FOLDERS:
    return []
  return [
    f'{path}:{line}: imports {name}'
    for line, name in imports(tree)
    if name.split('.')[0] == 'repertory'
    and not _may_import(path, name.split('.')[1:])
  ]


def _may_import(path, target):
  """Whether a file may import repertory.<target>, a list of parts."""
  folder, *inner = path.split('/')
  if folder == 'launch' and target == ['__version__']:
    return True
  if not target or target[0] not in _FOLDERS:
    return False  # The root package imports everything.
  is_below_both = _is_below_both(target)
  if _is_below_both(path.removesuffix('.py').split('/')):
    return is_below_both
  if folder == 'environments' and is_below_both:
    return True
  if folder == 'launch':
    return True
  if folder != 'agents':
    return target[0] == folder
  if target[0] == 'components':
    return True
  if target[0] != 'agents':
    return False
  if inner == ['interface', 'registry.py']:
    return True
  if target[1:3] == ['interface', 'registry']:
    return inner[0] in ('interface', 'reward_models')
  return target[1:2] in [[inner[0]], *([name] for name in _SHARED_BY_AGENTS)]


def _is_below_both(parts):
  return any('/'.join(parts[:n]) in _BELOW_BOTH for n in (2, 3))


def check_ranks(path, tree):
  """Checks that parts of `components` and `launch` import no later rank."""
  folder, part = _part(path)
  if part is None:
    return []
  rank_of = _RANK_OF[folder]
  if part not in rank_of:
    return [f'{path}:1: has no rank in {folder}']
  return [
    f'{path}:{line}: imports {name} of a later rank'
    for line, name in imports(tree)
    if name.startswith(f'repertory.{folder}.')
    and rank_of.get(name.split('.')[2], -1) > rank_of[part]
  ]


def imported_parts(path, tree):
  """Returns the parts of its own folder that a part imports."""
  folder, part = _part(path)
  if part is None:
    return set()
  return {
    name.split('.')[2]
    for _, name in imports(tree)
    if name.startswith(f'repertory.{folder}.')
  } - {part}


def _part(path):
  """Returns a file's folder, and its part there: a folder or module."""
  folder, *inner = path.split('/')
  if folder not in _RANK_OF or inner == ['__init__.py']:
    return folder, None
  return folder, inner[0].removesuffix('.py')


def count_depths(trees, folder):
  """Returns the longest chain of a folder's imports below each module.

  Lazy imports, and packages that only re-export, do not count.
  """
  modules = {
    path.removesuffix('.py').replace('/', '.'): tree
    for path, tree in trees.items()
    if path.startswith(f'{folder}/') and not path.endswith('__init__.py')
  }
  depths = {}

  def depth_of(module):
    if module not in depths:
      below = set()
      for _, name in imports(modules[module], calls=False):
        name = name.removeprefix('repertory.')
        below |= {name, name.rpartition('.')[0]} & modules.keys()
      depths[module] = 1 + max(map(depth_of, below - {module}), default=0)
    return depths[module]

  for module in modules:
    depth_of(module)
  return depths


def check_fences(path, tree):
  """Checks that some libraries are imported in few modules only."""
  if path.split('/')[0] not in _FOLDERS:
    return []
  return [
    f'{path}:{line}: imports {name}'
    for line, name in imports(tree)
    if not _is_inside(path, _FENCES.get(name.split('.')[0]))
  ]


def _is_inside(path, places):
  if places is None:
    return True
  return any(
    path.startswith(place)
    if place.endswith('/')
    else pathlib.PurePosixPath(path).match(place)
    and path.count('/') == place.count('/')
    for place in places
  )


def check_names(path):
  """Checks that no module or folder has a name without meaning, as `utils`."""
  found = []
  for part in path.removesuffix('.py').split('/'):
    word = part.split('_')[-1]
    for name in _DUMPING_GROUNDS:
      if word in (name, name + 's'):
        found.append(f"{path}: '{part}' says nothing of what it holds")
  return found


def check_file_length(path, source):
  """Checks the length of files."""
  num_lines = len(source.splitlines())
  if num_lines <= MAX_FILE_LINES:
    return []
  return [f'{path}: {num_lines} lines, the limit is {MAX_FILE_LINES}']


def check_function_lengths(path, tree):
  """Checks the length of functions, with docstrings but without decorators."""
  found = []
  for node in ast.walk(tree):
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
      num_lines = (node.end_lineno or node.lineno) - node.lineno + 1
      if num_lines > MAX_FUNCTION_LINES:
        found.append(
          f'{path}:{node.lineno}: {node.name} has {num_lines} lines, the limit '
          f'is {MAX_FUNCTION_LINES}'
        )
  return found
