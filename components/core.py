"""Core interfaces and the data flow between them.

    environment ─timestep→ Actor ─→ Adder ─→ replay table ─→ dataset ─→ Learner
        ▲                   │                                             │
        └──── action ──── Policy ◄────────── VariableSource ◄──────── Update

`Actor`, `Learner`, `Adder`, `VariableSource`, `Worker` and `Saveable` are
Acme's own classes, so an actor here is an `acme.core.Actor`. `Policy` and
`Update` are the two TensorFlow modules that define an agent; they are in
`interfaces`, so that code that only steps environments needs no TensorFlow.

Acting is batched. A *batch of timesteps* is one `dm_env.TimeStep` whose
`step_type`, `reward` and `discount` are arrays `[B]` and whose observation is a
nest of arrays `[B, ...]`. The B slots end their episodes independently: the
step after a slot's LAST is FIRST for that slot, ignores its action and has
reward 0 and discount 1. Test for the end with `timestep.step_type ==
dm_env.StepType.LAST`, which gives `[B]`; the methods `first()`, `mid()` and
`last()` do not work on batches.
"""

from acme import core as acme_core
from acme.adders import base as acme_adders

Actor = acme_core.Actor
Adder = acme_adders.Adder
Learner = acme_core.Learner
Saveable = acme_core.Saveable
VariableSource = acme_core.VariableSource
Worker = acme_core.Worker
