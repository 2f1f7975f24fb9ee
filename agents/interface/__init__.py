"""Interface of agents: builder, config and registry."""
