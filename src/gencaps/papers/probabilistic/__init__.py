"""Probabilistic capsules: a generative model of scenes made of objects made of parts (Smith et al., 2021)."""
