"""Central inference (SEED RL): thin actors, one batched policy and its state.

Nothing is imported here, because `client` works without TensorFlow, which code
that only steps environments should not load.
"""
