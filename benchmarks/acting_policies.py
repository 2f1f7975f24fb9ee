"""Policies and learners of `central_inference.py`."""

from repertory.agents import impala
from repertory.agents.interface import builder as builder_lib
from repertory.components import actors, specs

# IMPALA settings by name of the network.
NETWORKS = {
  'mlp': {'hidden_sizes': (256,)},
  'lstm': {'hidden_sizes': (256,), 'core': 'lstm', 'core_size': 256},
  'images': {'hidden_sizes': (256,), 'jit_compile': False},
}


def make_builder(network: str) -> impala.IMPALABuilder:
  """Makes IMPALA with the given network."""
  return impala.IMPALABuilder(
    impala.IMPALAConfig(unroll_length=20, batch_size=32, **NETWORKS[network])
  )


def make_policy(builder, spec, network, num_environments: int):
  """Makes the behavior policy."""
  acting = builder_lib.Acting(spec, num_environments, seed=1)
  return builder.make_policy(network, acting)


def make_local_actor(settings, environments) -> actors.PolicyActor:
  """Makes an actor with a local policy."""
  builder = make_builder(settings['network'])
  spec = specs.make_environment_spec(environments)
  ids = settings['environment_ids']
  policy = make_policy(builder, spec, builder.make_network(spec), max(ids) + 1)
  return actors.PolicyActor(
    policy,
    spec.observations,
    ids,
    jit_compile=builder.config.jit_compile is not False,
  )
