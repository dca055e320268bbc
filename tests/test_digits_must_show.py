"""What the small preset must show on the digits: it tells those it never saw, and paints what it is asked for."""

from __future__ import annotations

import pytest

from gencaps.engine.evaluate import evaluate
from gencaps.engine.recipe import make_recipe
from gencaps.engine.train import Trained, start
from gencaps.primitives.noise import Noise
from gencaps.report.collect import judged_share


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Trained:
    recipe = make_recipe("variational", data="digits", seed=0)
    found = start(recipe, tmp_path_factory.mktemp("must_show") / "run", device="cpu", quiet=True)
    assert found is not None
    return found


@pytest.mark.timeout(900)
def test_held_out_digits_are_told_at_98_percent(trained: Trained) -> None:
    train, valid, test = trained.splits
    assert len(test) == round(1797 / 5)
    assert len(train) + len(valid) + len(test) == 1797
    seen = evaluate(trained.model, test)
    assert seen.accuracy is not None
    assert seen.accuracy >= 0.98


@pytest.mark.timeout(900)
def test_generated_digits_are_read_as_asked_at_90_percent(trained: Trained) -> None:
    share, trust, n = judged_share(trained.model, trained.splits, Noise(0), each=100)
    assert n == 1000
    assert trust >= 0.95  # a judge that cannot read real digits says nothing
    assert share >= 0.90
