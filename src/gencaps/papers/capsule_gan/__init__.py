"""CapsuleGAN (Jaiswal et al., 2018): a GAN whose discriminator is a capsule network."""
