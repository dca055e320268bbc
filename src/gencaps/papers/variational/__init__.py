"""Variational capsules (Huang et al., 2018): a capsule's KL to the prior is an entity's presence."""
