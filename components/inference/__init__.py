"""Central inference: thin actors, one batched network, state beside it.

Nothing is imported here, for `client` and `thin_actor` need no TensorFlow, and
whoever only steps environments should not load it.
"""
