"""Product of expert capsules (Hauser, 2020): an energy over capsules, trained by contrastive divergence."""
