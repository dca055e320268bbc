"""The parts of a synthetic face, each painted by a function of its own."""

from __future__ import annotations

from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from gencaps.data.shapes import Canvas, Grid, capsule, ellipse, ramp, rounded_box

# colours from one end of a style to the other
SKIN = ((255, 224, 200), (241, 194, 160), (214, 158, 118), (166, 110, 76), (110, 70, 48))
HAIR = ((30, 26, 28), (70, 44, 32), (124, 74, 42), (176, 92, 48), (222, 178, 106), (196, 192, 190))
DYE = ((120, 60, 130), (212, 78, 118), (240, 170, 80))
FRAME = ((28, 28, 34), (120, 50, 36), (196, 44, 60), (44, 92, 180), (226, 188, 90))
FELT = ((52, 58, 70), (46, 92, 150), (40, 138, 120), (214, 158, 50), (196, 66, 56), (150, 70, 140))
METAL = ((240, 196, 70), (235, 238, 245), (70, 190, 190), (220, 60, 90))
WALL = ((196, 220, 236), (206, 232, 214), (246, 232, 200), (248, 212, 204), (222, 210, 238))
CLOTH = ((70, 84, 120), (92, 140, 150), (150, 170, 110), (214, 150, 90), (176, 84, 96))
IRIS = ((66, 42, 30), (104, 74, 40), (74, 110, 70), (70, 120, 170))


class Parts(NamedTuple):
    """Everything that the layers need: coordinates about the head, and the numbers of each picture."""

    x: Grid
    """To the right, 0 at the middle of the face; a face is about 0.8 wide."""
    y: Grid
    """Downwards, 0 between the eyes."""
    wide: Float[Tensor, "n 1 1"]
    """Growth of the face in x."""
    on: dict[str, Float[Tensor, "n 1 1"]]
    """1 where the picture has the attribute."""
    style: dict[str, tuple[Float[Tensor, " n"], ...]]
    """The styles of each attribute, 0 to 1."""
    nuisance: dict[str, Float[Tensor, " n"]]
    """What varies in every picture, 0 to 1."""
    skin: Float[Tensor, "n 3"]
    hair: Float[Tensor, "n 3"]


def column(value: Float[Tensor, " n"]) -> Float[Tensor, "n 1 1"]:
    """Lines one number a picture up with the grids."""
    return value[:, None, None]


def between(t: Float[Tensor, " n"], low: float, high: float) -> Float[Tensor, "n 1 1"]:
    """Spreads a style or nuisance over a range and lines it up with the grids."""
    return column(low + (high - low) * t)


def _head(p: Parts, grow: float = 0.0) -> Grid:
    """Measures the outline of the face: an egg with the narrow end down."""
    narrowing = 1.04 - 0.16 * (p.y + 0.2).clamp(-0.4, 0.9)
    return ellipse(p.x / (p.wide * narrowing), p.y - 0.06, 0.40 + grow, 0.53 + grow)


def background(p: Parts, canvas: Canvas) -> None:
    # a soft light behind the head
    glow = (1.1 - (p.x**2 + p.y**2).sqrt() * 0.55).clamp(0, 1)
    canvas.blend(glow * 0.45, p.skin.new_ones(1, 3))


def long_hair(p: Parts, canvas: Canvas) -> None:
    length, wave, volume = p.style["Long_Hair"]
    bottom = between(length, 0.34, 0.86)
    half = between(volume, 0.45, 0.55) * p.wide
    sway = between(wave, 0.0, 0.035) * torch.sin(p.y * 15)
    crown = ellipse(p.x, p.y + 0.04, half, 0.57)
    fall = rounded_box(p.x.abs() + sway, p.y - (bottom - 0.04) / 2, half, (bottom + 0.04) / 2, 0.12)
    shape = torch.minimum(crown, fall)
    canvas.paint(shape, p.hair * 0.82, p.on["Long_Hair"])
    strands = (0.5 + 0.5 * torch.cos((p.x + sway) * 46)) * 0.16 * canvas.cover(shape) * p.on["Long_Hair"]
    canvas.blend(strands, p.hair * 0.5)


def body(p: Parts, canvas: Canvas) -> None:
    neck = rounded_box(p.x, p.y - 0.66, 0.15 * p.wide, 0.30, 0.08)
    canvas.paint(neck, p.skin * 0.86)
    canvas.paint(ellipse(p.x, p.y - 0.56, 0.19, 0.12), p.skin * 0.74, alpha=0.55, soft=0.10)
    cloth = ramp(p.nuisance["cloth"], CLOTH)
    shoulders = rounded_box(p.x, p.y - 1.26, 0.68, 0.52, 0.34)
    collar = ellipse(p.x, p.y - 0.73, 0.21, 0.12)
    canvas.paint(torch.maximum(shoulders, -collar), cloth)
    canvas.paint(torch.maximum(collar.abs() - 0.02, 0.75 - p.y), cloth * 0.8)


def ears(p: Parts, canvas: Canvas) -> None:
    side = p.x.abs() - 0.405 * p.wide
    canvas.paint(ellipse(side, p.y - 0.06, 0.07, 0.105), p.skin * 0.93)
    canvas.paint(ellipse(side - 0.012, p.y - 0.06, 0.032, 0.06), p.skin * 0.8, alpha=0.8)


def earrings(p: Parts, canvas: Canvas) -> None:
    size, drop, colour = p.style["Earrings"]
    radius, hang = between(size, 0.034, 0.062), between(drop, 0.02, 0.16)
    side = p.x.abs() - 0.435 * p.wide
    metal = ramp(colour, METAL)
    canvas.paint(capsule(side, p.y - 0.155, 0.0, hang, 0.014), metal * 0.85, p.on["Earrings"])
    ball = ellipse(side, p.y - 0.155 - hang, radius, radius)
    canvas.paint(ball - 0.012, metal * 0.55, p.on["Earrings"])
    canvas.paint(ball, metal, p.on["Earrings"])
    shine = ellipse(side + radius * 0.3, p.y - 0.155 - hang + radius * 0.3, radius * 0.35, radius * 0.35)
    canvas.paint(shine, p.skin.new_ones(1, 3), p.on["Earrings"], alpha=0.8)


def skin(p: Parts, canvas: Canvas) -> None:
    head = _head(p)
    canvas.paint(head - 0.012, p.skin * 0.72)
    canvas.paint(head, p.skin)
    # light from the upper left: one side a little darker
    shade = canvas.cover(head) * (0.12 + 0.28 * (p.x * 0.9 + p.y * 0.5)).clamp(0, 0.3)
    canvas.blend(shade, p.skin * 0.62)
    nose = ellipse(p.x, p.y - 0.17, 0.055, 0.04)
    canvas.paint(nose, p.skin * 0.80, soft=0.02, alpha=0.75)
    canvas.paint(ellipse(p.x + 0.008, p.y - 0.135, 0.034, 0.055), p.skin * 0.4 + 0.6, alpha=0.40, soft=0.03)


def cheeks(p: Parts, canvas: Canvas) -> None:
    strength, size, height = p.style["Rosy_Cheeks"]
    radius = between(size, 0.065, 0.115)
    spot = ellipse(p.x.abs() - 0.225 * p.wide, p.y - between(height, 0.22, 0.16), radius, radius * 0.75)
    colour = p.skin * 0.45 + p.skin.new_tensor([[0.95, 0.28, 0.32]]) * 0.55
    canvas.blend(canvas.cover(spot, 0.08) * between(strength, 0.5, 1.0) * p.on["Rosy_Cheeks"], colour)


def beard(p: Parts, canvas: Canvas) -> None:
    length, colour, fullness = p.style["Beard"]
    bottom = between(length, 0.60, 0.86)
    jaw = torch.maximum(_head(p, 0.02), 0.10 - p.y)
    chin = ellipse(p.x, p.y - 0.30, 0.30 * p.wide, bottom - 0.30)
    mass = torch.minimum(jaw, chin)
    # full: the edge runs up to the ears; slight: it stays about the chin
    edge = 0.36 - between(fullness, 0.35, 1.35) * (p.x.abs() - 0.10).clamp(min=0)
    moustache = ellipse(p.x, p.y - 0.265, 0.17, 0.05)
    shape = torch.minimum(torch.maximum(mass, edge.clamp(min=0.08) - p.y), moustache)
    lips = ellipse(p.x, p.y - 0.35, 0.16, 0.06)
    shape = torch.maximum(shape, -lips)
    shown = canvas.cover(shape) * p.on["Beard"]
    tone = ramp(colour, HAIR)
    canvas.blend(shown, tone * 0.9)
    canvas.blend(shown * (0.5 + 0.5 * torch.cos(p.x * 52 - p.y * 9 * p.x.sign())) * 0.16, tone * 0.55)


def mouth(p: Parts, canvas: Canvas) -> None:
    """Paints the mouth between two parabolas through its corners; without a smile both are flat."""
    curve, openness, width = p.style["Smiling"]
    smile = p.on["Smiling"]
    half = 0.10 + smile * between(width, 0.03, 0.065)
    rise = smile * between(curve, 0.035, 0.07)
    gape = smile * between(openness, 0.0, 0.07)
    # beyond the corners both curves run on level
    across = (1 - (p.x / half) ** 2).clamp(min=0)
    y = p.y - 0.345
    upper = -rise + (rise * 1.4 - gape * 0.35) * across
    lower = -rise + (rise * 1.4 + gape) * across
    steep = (1 + (2 * rise * 1.4 * p.x.abs().minimum(half) / half**2) ** 2).sqrt()
    inside = torch.maximum(torch.maximum(upper - y, y - lower) / steep, (p.x.abs() - half) * 0.9)
    lips = p.skin * 0.45 + p.skin.new_tensor([[0.55, 0.12, 0.14]]) * 0.55
    canvas.paint(inside - 0.021, lips)
    canvas.paint(inside, p.skin.new_tensor([[0.35, 0.06, 0.10]]), (gape > 0).float())
    teeth = torch.maximum(inside, y - (upper + gape * 0.75 * across))
    canvas.paint(teeth, p.skin.new_tensor([[0.98, 0.97, 0.94]]), (gape > 0).float())


def eyes(p: Parts, canvas: Canvas) -> None:
    apart = between(p.nuisance["eyes_apart"], 0.155, 0.185) * p.wide
    open_ = between(p.nuisance["eyes_open"], 0.058, 0.078)
    side = p.x.abs() - apart
    white = ellipse(side, p.y, 0.088, open_)
    canvas.paint(white - 0.014, p.skin * 0.55, alpha=0.9)
    canvas.paint(white, p.skin.new_tensor([[0.98, 0.98, 1.0]]))
    # both eyes look the same way, so these are not mirrored
    gaze = between(p.nuisance["gaze"], -0.020, 0.020)
    from_eye = torch.where(p.x > 0, p.x - apart, p.x + apart) - gaze
    round_ = (from_eye**2 + (p.y - 0.004) ** 2).sqrt()
    canvas.paint(torch.maximum(round_ - 0.056, white), ramp(p.nuisance["iris"], IRIS))
    canvas.paint(torch.maximum(round_ - 0.029, white), p.skin.new_full((1, 3), 0.06))
    glint = ((from_eye + 0.018) ** 2 + (p.y + 0.018) ** 2).sqrt() - 0.016
    canvas.paint(glint, p.skin.new_ones(1, 3))
    lid = torch.maximum(white.abs() - 0.012, p.y + 0.012)
    canvas.paint(lid, p.hair * 0.35)
    lift = between(p.nuisance["brows"], -0.016, 0.016)
    arch = p.y + 0.148 + lift * (side / 0.09) - 2.4 * side**2
    brow = torch.maximum(arch.abs() - 0.018, side.abs() - 0.085)
    canvas.paint(brow, p.hair * 0.7, alpha=0.95)


def short_hair(p: Parts, canvas: Canvas) -> None:
    scalp = _head(p, 0.035)
    hairline = -0.30 + 0.9 * (p.x / p.wide) ** 2
    shape = torch.maximum(scalp, p.y - hairline)
    canvas.paint(shape, p.hair)
    shine = ellipse(p.x + 0.10, p.y + 0.43, 0.17, 0.045)
    canvas.blend(canvas.cover(shine, 0.05) * canvas.cover(shape) * 0.22, p.skin.new_ones(1, 3))


def bangs(p: Parts, canvas: Canvas) -> None:
    length, sweep, dye = p.style["Bangs"]
    locks = 0.018 * torch.cos(p.x / p.wide * 34)
    edge = between(length, -0.215, -0.115) + between(sweep, -0.28, 0.28) * p.x + locks - 0.35 * p.x**2
    shape = torch.maximum(torch.maximum(_head(p, 0.03), p.y - edge), -0.42 - p.y)
    shown = canvas.cover(shape) * p.on["Bangs"]
    tone = torch.lerp(p.hair * 0.9, ramp(dye, DYE), (0.15 + 0.6 * dye)[:, None])
    canvas.blend(shown, tone)
    canvas.blend(shown * (0.5 - 0.5 * torch.cos(p.x / p.wide * 34)) * 0.26, tone * 0.6)


def glasses(p: Parts, canvas: Canvas) -> None:
    square, thick, colour = p.style["Eyeglasses"]
    half_x, half_y = 0.128, between(square, 0.122, 0.092)
    corner = between(square, 0.121, 0.028).minimum(half_y - 0.001)
    apart = between(p.nuisance["eyes_apart"], 0.155, 0.185) * p.wide
    line = between(thick, 0.013, 0.032)
    side = p.x.abs() - apart
    lens = rounded_box(side, p.y - 0.012, half_x, half_y, corner)
    frame = ramp(colour, FRAME)
    on = p.on["Eyeglasses"]
    canvas.paint(lens, p.skin.new_tensor([[0.86, 0.94, 1.0]]), on, alpha=0.20)
    glare = torch.maximum(lens + 0.03, ((side + 0.04) + (p.y - 0.012) * 0.7).abs() - 0.018)
    canvas.paint(glare, p.skin.new_ones(1, 3), on, alpha=0.35)
    bridge = torch.maximum((p.y + 0.012 - 0.9 * p.x**2).abs() - line * 0.8, p.x.abs() - apart + half_x)
    temple = torch.maximum((p.y + 0.02).abs() - line * 0.8, ((p.x.abs() - 0.385 * p.wide).abs() - 0.06))
    temple = torch.maximum(temple, half_x + apart - p.x.abs())
    rim = lens.abs() - line
    canvas.paint(torch.minimum(torch.minimum(rim, bridge), temple), frame, on)


def hat(p: Parts, canvas: Canvas) -> None:
    height, colour, brim = p.style["Hat"]
    felt = ramp(colour, FELT)
    on = p.on["Hat"]
    top = between(height, -0.66, -0.92)
    base = -0.30
    middle, half = (top + base) / 2, (base - top) / 2
    taper = p.wide * (1.0 - 0.18 * ((base - p.y) / (base - top)).clamp(0, 1))
    crown = rounded_box(p.x / taper, p.y - middle, 0.45, half, between(height, 0.24, 0.12))
    flat = ellipse(p.x / p.wide, p.y - base + 0.01, between(brim, 0.47, 0.66), 0.055)
    canvas.paint(torch.minimum(crown, flat) - 0.012, felt * 0.55, on)
    canvas.paint(crown, felt, on)
    light = canvas.cover(crown) * (0.5 - p.x - p.y * 0.4).clamp(0, 1) * 0.22 * on
    canvas.blend(light, felt.new_ones(1, 3))
    band = torch.maximum(crown, (p.y - base + 0.085).abs() - 0.042)
    canvas.paint(band, felt * 0.5, on)
    canvas.paint(flat, felt * 0.88, on)
