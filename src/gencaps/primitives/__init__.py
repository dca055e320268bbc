"""The formulas that capsule models share: tensors in, tensors out, nothing but torch.

Each file is one idea (squash, routing, gaussian, concrete, losses, likelihoods, pose, layers);
docs/equations.md says which equation of which paper stands where.
"""
