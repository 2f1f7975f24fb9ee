"""Reinforcement-learning building blocks around a replay service."""

import os
import sys

__version__ = '0.2.0'

# Convolutions are three times as fast on a CPU with oneDNN's kernels, which
# TensorFlow has from 2.9 on by default. It reads this when it is imported.
os.environ.setdefault('TF_ENABLE_ONEDNN_OPTS', '1')

# TensorFlow takes all memory of a GPU otherwise, and the next process, be it a
# node of the same run, finds none. It reads this when it first uses the GPU,
# and puts it above `tf.config.experimental.set_memory_growth`.
os.environ.setdefault('TF_FORCE_GPU_ALLOW_GROWTH', 'true')

# Without this module, as in earlier versions, TensorFlow 2.21 keeps its symbols
# to itself. Those of its LLVM would replace those of Mesa's, whose software
# renderer then crashes.
sys.modules.setdefault(
  'tensorflow.python.pywrap_dlopen_global_flags',
  None,  # pyright: ignore[reportArgumentType]
)
