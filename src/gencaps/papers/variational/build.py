"""The networks that a config of variational capsules names."""

from __future__ import annotations

from torch import nn

from gencaps.model import PictureInfo
from gencaps.papers.variational.config import VariationalConfig
from gencaps.papers.variational.entities import Entities
from gencaps.papers.variational.networks import ResidualEncoder, RoutedEncoder, convolutional_encoder, residual_decoder
from gencaps.primitives.dcgan import dcgan_generator
from gencaps.primitives.networks import dense_decoder


def make_encoder(config: VariationalConfig, pictures: PictureInfo, entities: Entities) -> nn.Module:
    """Builds the encoder that a config names."""
    if config.encoder == "residual":
        return ResidualEncoder(
            pictures.channels,
            pictures.size,
            config.widths,
            config.kernel,
            config.norm,
            config.head,
            entities.groups,
            entities.states,
            entities.rest,
            config.dim,
        )
    if config.encoder == "routed":
        return RoutedEncoder(
            pictures.channels,
            pictures.size,
            config.widths,
            config.strides,
            config.kernel,
            config.norm,
            entities.count,
            config.dim,
        )
    out = 2 * entities.count * config.dim
    return convolutional_encoder(
        pictures.channels, pictures.size, config.widths, config.strides, config.kernel, config.norm, out
    )


def make_decoder(config: VariationalConfig, pictures: PictureInfo, entities: Entities) -> nn.Sequential:
    """Builds the decoder that a config names."""
    features = entities.count * (config.dim + config.flag)
    if config.painter == "residual":
        return residual_decoder(features, config.decoder, config.kernel, config.norm, pictures.channels, pictures.size)
    if config.painter == "convolutional":
        return dcgan_generator(features, config.decoder[-1], pictures.channels, pictures.size)
    return dense_decoder(features, config.decoder, pictures.channels, pictures.size)
