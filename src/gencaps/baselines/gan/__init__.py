"""A deep convolutional GAN (Radford et al., 2016): the rival of CapsuleGAN, with the generator that both share."""
