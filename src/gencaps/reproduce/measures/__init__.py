"""How claims are measured: a measure takes one seed's models and gives named numbers; a figure gives a picture."""

from __future__ import annotations

from collections.abc import Callable

from PIL import Image

from gencaps.reproduce.measures import (
    battle,
    classify,
    cost,
    editing,
    experts,
    figures,
    foreign,
    generation,
    probes,
    routing,
    scene_figures,
    scenes,
    spreading,
)
from gencaps.reproduce.subject import Measured, Subject

MEASURES: dict[str, Callable[[Subject], Measured]] = {
    "classification": classify.classification,
    "attributes": classify.attributes,
    "training": classify.training,
    "pairs": classify.pairs,
    "edits": editing.edits,
    "ood": foreign.ood,
    "styles": editing.styles,
    "probe": probes.probe,
    "probe_alike": probes.probe_alike,
    "probe_pca320": probes.probe_pca320,
    "probe_rbm320": probes.probe_rbm320,
    "negatives_full": experts.negatives_full,
    "negatives_restricted": experts.negatives_restricted,
    "samples_restricted": experts.samples_restricted,
    "reconstruction": experts.reconstruction,
    "probe_scene": probes.probe_scene,
    "probe_scene_alike": probes.probe_scene_alike,
    "probe_scene_one_side": probes.probe_scene_one_side,
    "refine": scenes.refine,
    "refine_objects": scenes.refine_objects,
    "refining": scenes.refining,
    "bound": scenes.bound,
    "specialisation": scenes.specialisation,
    "parameters": scenes.parameters,
    "generation": generation.generation,
    "rebuilt": generation.rebuilt,
    "semi_supervised": spreading.semi_supervised,
    "semi_supervised_paired": spreading.semi_supervised_paired,
    "gam": battle.gam,
    "step_cost": cost.step_cost,
    "routing": routing.routing,
}
TIMED = ("refining", "step_cost", "routing", "training")
"""Measures of time: their processes are to have the machine for themselves."""
FIGURES: dict[str, Callable[[Subject], Image.Image]] = {
    "reconstructions_and_samples": figures.reconstructions_and_samples,
    "interpolation": figures.interpolation,
    "samples": figures.samples,
    "capsule_samples_full": experts.capsule_samples_full,
    "capsule_samples_restricted": experts.capsule_samples_restricted,
    "each_alone": figures.each_alone,
    "attribute_generation": figures.attribute_generation,
    "attribute_swapping": figures.attribute_swapping,
    "attribute_interpolation": figures.attribute_interpolation,
    "multi_attribute_interpolation": figures.multi_attribute_interpolation,
    "refine_rotated": scene_figures.refine_rotated,
    "template_sheet": scene_figures.template_sheet,
    "templates_turned": scene_figures.templates_turned,
    "template_arrangement": scene_figures.template_arrangement,
}
"""Each later system adds the measures and figures of its paper."""
