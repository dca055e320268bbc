"""Checkpoints survive kills, full disks and damage."""

from __future__ import annotations

import os
import random
import resource
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from gencaps.engine import checkpoint
from gencaps.engine.checkpoint import load_state, save_state
from gencaps.errors import GencapsError
from tests.engine.helpers import same, tiny, train, weights


def test_the_newest_whole_checkpoint_is_taken(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert load_state(tmp_path) is None
    save_state(tmp_path, {"n": 1})
    save_state(tmp_path, {"n": 2})
    newest = load_state(tmp_path)
    assert newest is not None
    assert newest["n"] == 2
    path = tmp_path / "state.pt"
    path.write_bytes(path.read_bytes()[:-20])
    before = load_state(tmp_path)
    assert before is not None
    assert before["n"] == 1
    assert "state.pt is damaged" in capsys.readouterr().err


def test_a_kill_between_the_renames_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    save_state(tmp_path, {"n": 1})
    real = Path.replace
    for survivors in (1, 2):  # the process dies before the first, then before the second rename
        calls = 0

        def dying(self: Path, target: Path, survivors: int = survivors) -> Path:
            nonlocal calls
            calls += 1
            if calls > survivors:
                raise KeyboardInterrupt
            return real(self, target)

        monkeypatch.setattr(Path, "replace", dying)
        with pytest.raises(KeyboardInterrupt):
            save_state(tmp_path, {"n": 1 + survivors})
        monkeypatch.undo()
        found = load_state(tmp_path)
        assert found is not None
        assert found["n"] == 1 + survivors


def test_damage_to_both_is_said(tmp_path: Path) -> None:
    for n in (1, 2):
        save_state(tmp_path, {"n": n})
    for name in (checkpoint.STATE, checkpoint.PREVIOUS):
        (tmp_path / name).write_bytes(b"nothing")
    with pytest.raises(GencapsError, match="there is no other"):
        load_state(tmp_path)


def test_a_newer_version_is_refused(tmp_path: Path) -> None:
    torch.save({"format": 99, "gencaps": "9.9.9"}, tmp_path / "state.pt")
    with pytest.raises(GencapsError, match=r"written by gencaps 9\.9\.9 \(format 99\).*upgrade gencaps"):
        load_state(tmp_path)
    torch.save({"other": 1}, tmp_path / "state.pt")
    with pytest.raises(GencapsError, match="not a checkpoint of gencaps"):
        load_state(tmp_path)


def test_a_full_disk_is_said_and_the_checkpoint_before_is_kept(tmp_path: Path) -> None:
    save_state(tmp_path, {"n": 1})
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, hard))  # any larger file fails as on a full disk
    try:
        with pytest.raises(GencapsError) as caught:
            save_state(tmp_path, {"n": 2, "weights": torch.zeros(10_000)})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert "free some space" in str(caught.value)
    assert "the checkpoint before it is kept" in str(caught.value)
    kept = load_state(tmp_path)
    assert kept is not None
    assert kept["n"] == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["state.pt"]


LIVES = """
import os, random, signal, sys, time
from gencaps.cli import main
import gencaps.engine.train  # imported once: every life is a fork of this process
run, recipe, kills = sys.argv[1], sys.argv[2], int(sys.argv[3])
rng = random.Random(0)
killed = life = 0
while True:
    life += 1
    words = ["train", "--resume", run] if os.path.exists(run + "/config.yaml") else [
        "train", "variational", "--config", recipe, "--out", run]
    child = os.fork()
    if child == 0:
        os._exit(main([*words, "--device", "cpu", "--quiet", "--no-report"]))
    if killed < kills:
        # dies at a random moment: while starting, stepping, saving or validating
        time.sleep(rng.uniform(0.02, 0.9))
        os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        if os.WIFSIGNALED(status):
            killed += 1
        elif os.waitstatus_to_exitcode(status) == 0:
            sys.exit(f"the run ended after {killed} kills: make it longer")
        else:
            sys.exit(f"life {life} failed")
        if os.path.isdir(run) and not os.path.exists(run + "/config.yaml"):
            import shutil
            shutil.rmtree(run)  # killed before the run had a recipe: there is nothing to resume
    else:
        _, status = os.waitpid(child, 0)
        print(killed)
        sys.exit(os.waitstatus_to_exitcode(status))
"""


@pytest.mark.timeout(600)
def test_twenty_random_kills_end_in_the_same_weights(tmp_path: Path) -> None:
    recipe = tiny(epochs=40, checkpoint_s=0.0, validate_every=3, samples_every=10)
    path = tmp_path / "recipe.yaml"
    path.write_text(recipe.to_yaml())
    environment = os.environ | {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    words = [sys.executable, "-c", LIVES, str(tmp_path / "killed"), str(path), "20"]
    done = subprocess.run(words, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split()[-1] == "20"
    whole = [sys.executable, "-m", "gencaps", "train", "variational", "--config", str(path)]
    options = ["--out", str(tmp_path / "whole"), "--device", "cpu", "--quiet", "--no-report"]
    subprocess.run([*whole, *options], check=True, env=environment)
    assert same(weights(tmp_path / "killed"), weights(tmp_path / "whole"))


def test_a_damaged_checkpoint_still_ends_in_the_same_weights(tmp_path: Path) -> None:
    from gencaps.engine.train import resume

    whole = train(tmp_path / "whole", tiny()).run
    run = train(tmp_path / "run", tiny(checkpoint_s=0.0)).run
    state = run.path / "state.pt"
    state.write_bytes(state.read_bytes()[: random.Random(0).randrange(state.stat().st_size)])
    trained = resume(run.path, device="cpu", quiet=True)
    assert trained is not None
    assert same(weights(whole.path), weights(trained.run.path))
