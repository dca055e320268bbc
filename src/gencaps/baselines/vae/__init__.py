"""A variational autoencoder without poses: what (Smith et al., 2021) compare their latent variables with."""
