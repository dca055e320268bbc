"""A residual network (He et al., 2016): the rival on attributes, and the independent judge of generated pictures."""
