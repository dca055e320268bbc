"""A measurement counts again where the same code, machine and weights would give it again, and nowhere else."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from gencaps.reproduce.kept import Kept, keep, recall, spelled
from gencaps.reproduce.subject import Measured

HERE = {"gencaps": "1", "device": "CPU, 1 threads", "torch": "2", "commit": "abc", "date": "today"}
KEPT = Kept(Measured({"test": 0.5}, ("a note",)), 2.0)


@pytest.fixture
def folders(tmp_path: Path) -> list[Path]:
    made = [tmp_path / name / "seed-0" for name in ("ours", "theirs")]
    for folder in made:
        folder.mkdir(parents=True)
        (folder / "model.safetensors").write_bytes(b"")
    return made


def test_what_was_kept_is_recalled(folders: Sequence[Path]) -> None:
    assert recall(folders, "probe", HERE) is None
    keep(spelled(KEPT, folders, HERE), folders, "probe")
    assert recall(folders, "probe", {**HERE, "date": "tomorrow"}) == KEPT
    assert recall(folders, "bound", HERE) is None
    assert recall(folders[:1], "probe", HERE) is None  # beside another run it is another measurement


@pytest.mark.parametrize("name", ["gencaps", "device", "torch", "commit"])
def test_another_machine_or_code_measures_anew(folders: Sequence[Path], name: str) -> None:
    keep(spelled(KEPT, folders, HERE), folders, "probe")
    assert recall(folders, "probe", {**HERE, name: "other"}) is None


@pytest.mark.parametrize("commit", ["abc-dirty", "unknown"])
def test_code_that_is_not_committed_measures_anew(folders: Sequence[Path], commit: str) -> None:
    unknown = {**HERE, "commit": commit}
    keep(spelled(KEPT, folders, unknown), folders, "probe")
    assert recall(folders, "probe", unknown) is None


@pytest.mark.parametrize("which", [0, 1])
def test_other_weights_or_none_are_measured_anew(folders: Sequence[Path], which: int) -> None:
    keep(spelled(KEPT, folders, HERE), folders, "probe")
    weights = folders[which] / "model.safetensors"
    weights.write_bytes(b"other")
    assert recall(folders, "probe", HERE) is None
    weights.unlink()
    assert recall(folders, "probe", HERE) is None
