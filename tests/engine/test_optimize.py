"""Optimizers, schedules and averages, against steps worked by hand."""

from __future__ import annotations

from typing import Any, Literal

import pytest
import torch
from torch import nn
from torch.optim import SGD, Adam, AdamW
from torch.optim.swa_utils import AveragedModel
from torch.utils._python_dispatch import TorchDispatchMode

from gencaps.engine.optimize import make_average, make_optimizer, make_schedule
from gencaps.engine.recipe import TrainConfig
from gencaps.model import CapsuleModel, Labelling, Losses, PictureInfo, Pictures, Player, Step
from tests.helpers import refused

CPU = torch.device("cpu")
Schedule = Literal["constant", "one-cycle", "cosine", "cooldown"]


class Weight(CapsuleModel):
    """One number, and one more that is counted, not learned."""

    paper = "stub"

    def __init__(self) -> None:
        super().__init__(None, PictureInfo(1, 8, ("a", "b")))
        self.w = nn.Parameter(torch.tensor(1.0))
        self.register_buffer("seen", torch.tensor(0.0))

    def losses(self, x: Pictures, y: Labelling, step: Step) -> Losses:
        raise NotImplementedError


def rates(schedule: Schedule, steps: int, rate: float = 1.0) -> list[float]:
    """The learning rate before each of the steps, and after the last."""
    player = Player([nn.Parameter(torch.zeros(()))], rate)
    config = TrainConfig(schedule=schedule, learning_rate=0.5)
    optimizer = make_optimizer(player, config, CPU)
    moves, found = make_schedule(optimizer, player, config, steps), []
    for _ in range(steps):
        found.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        moves.step()
    return [*found, optimizer.param_groups[0]["lr"]]


def moved(weight: float, gradients: list[float], player_rate: float = 1.0, own: Any = None, **train: Any) -> float:
    """Where steps along given gradients take a weight."""
    parameter = nn.Parameter(torch.tensor(weight, dtype=torch.float64))
    optimizer = make_optimizer(Player([parameter], player_rate, own), TrainConfig(**train), CPU)
    for gradient in gradients:
        parameter.grad = torch.tensor(gradient, dtype=torch.float64)
        optimizer.step()
    return parameter.item()


def test_constant_rate_never_moves() -> None:
    assert set(rates("constant", 20)) == {0.5}


def test_one_cycle_starts_at_a_25th_peaks_at_the_rate_and_ends_at_nothing() -> None:
    # 99 steps: the rise takes 30 % of 100 points, so the peak is the 30th; the end is a 25th over 10^4
    found = rates("one-cycle", 99)
    assert found[0] == pytest.approx(0.5 / 25)
    assert found[29] == pytest.approx(0.5)
    assert found[99] == pytest.approx(0.5 / 25 / 1e4)
    assert found[:30] == sorted(found[:30])
    assert found[29:] == sorted(found[29:], reverse=True)
    # halfway up a cosine is the mean of both ends: (0.02 + 0.5) / 2 lies between points 14 and 15
    assert (found[14] + found[15]) / 2 == pytest.approx(0.26, rel=1e-3)


def test_cosine_starts_at_the_rate_halves_in_the_middle_and_ends_at_zero() -> None:
    found = rates("cosine", 40)
    assert found[0] == 0.5
    assert found[20] == pytest.approx(0.25)
    assert found[40] == pytest.approx(0.0, abs=1e-12)
    assert found == sorted(found, reverse=True)


def test_cooldown_is_constant_and_falls_over_the_last_fifth() -> None:
    found = rates("cooldown", 20)
    assert found[:17] == pytest.approx([found[0]] * 17)
    assert found[16:] == pytest.approx([found[0] * share for share in (1, 0.75, 0.5, 0.25, 0)])


@pytest.mark.parametrize("schedule", ["constant", "one-cycle", "cosine", "cooldown"])
@pytest.mark.parametrize("steps", [1, 2, 3, 9, 10, 11])
def test_a_stage_of_any_length_runs_to_its_end(schedule: Schedule, steps: int) -> None:
    found = rates(schedule, steps)
    assert len(found) == steps + 1
    assert all(0 <= rate <= 0.5 for rate in found)
    assert found[0] > 0


@pytest.mark.parametrize("schedule", ["constant", "one-cycle", "cosine", "cooldown"])
def test_a_players_rate_multiplies_the_whole_schedule(schedule: Schedule) -> None:
    single, quarter = rates(schedule, 20), rates(schedule, 20, rate=0.25)
    assert quarter == pytest.approx([0.25 * rate for rate in single])


def test_a_players_rate_multiplies_its_step() -> None:
    assert moved(1.0, [3.0], optimizer="sgd", learning_rate=0.1) == pytest.approx(1 - 0.3)
    assert moved(1.0, [3.0], 0.5, optimizer="sgd", learning_rate=0.1) == pytest.approx(1 - 0.15)


def test_sgd_has_momentum_nine_tenths() -> None:
    # velocities 1 and 0.9 + 1: together 2.9 rates
    assert moved(0.0, [1.0, 1.0], optimizer="sgd", learning_rate=0.1) == pytest.approx(-0.29)


def test_adam_first_steps_by_the_rate_whatever_the_gradient() -> None:
    for name in ("adam", "adamw"):
        for gradient in (1e-3, 5.0):
            assert moved(0.0, [gradient], optimizer=name, learning_rate=0.1) == pytest.approx(-0.1, rel=1e-4)


@pytest.mark.parametrize(
    ("beta1", "second"),
    [
        (0.9, 0.67006),  # m = 0.9 * 0.1, over 1 - 0.9^2: 0.47368
        (0.5, 0.47152),  # m = 0.5 * 0.5, over 1 - 0.5^2: 0.33333
        (0.0, 0.0),  # remembers nothing: no gradient, no step
    ],
)
@pytest.mark.parametrize("name", ["adam", "adamw"])
def test_beta1_is_adams_memory_of_the_gradient(name: str, beta1: float, second: float) -> None:
    """The first step is the rate; the second, with no gradient, is m over the root of v = 0.000999 / 0.001999."""
    found = moved(0.0, [1.0, 0.0], optimizer=name, learning_rate=0.1, beta1=beta1)
    assert found == pytest.approx(-0.1 * (1 + second), rel=1e-4)


def test_beta1_reaches_adam_and_leaves_sgd_its_momentum() -> None:
    # one-cycle has its own
    expected: dict[Schedule, float] = {"constant": 0.3, "cosine": 0.3, "cooldown": 0.3, "one-cycle": 0.95}
    for schedule, beta1 in expected.items():
        config, player = TrainConfig(beta1=0.3, schedule=schedule), Player([nn.Parameter(torch.zeros(()))])
        optimizer = make_optimizer(player, config, CPU)
        make_schedule(optimizer, player, config, 10)
        assert optimizer.param_groups[0]["betas"] == (beta1, 0.999)
    assert moved(0.0, [1.0, 1.0], optimizer="sgd", learning_rate=0.1, beta1=0.3) == pytest.approx(-0.29)


@pytest.mark.parametrize("beta1", [1.0, 1.5, -0.1])
def test_a_memory_that_never_fades_is_refused(beta1: float) -> None:
    refused(lambda: TrainConfig(beta1=beta1), f"train.beta1 is {beta1}")


def test_weight_decay_pulls_towards_zero() -> None:
    # sgd: 2 - 0.5 * (0.1 * 2); adamw: 2 * (1 - 0.5 * 0.1); adam takes 0.1 * 2 for a gradient and steps by its rate
    assert moved(2.0, [0.0], optimizer="sgd", learning_rate=0.5, weight_decay=0.1) == pytest.approx(1.9)
    assert moved(2.0, [0.0], optimizer="adamw", learning_rate=0.5, weight_decay=0.1) == pytest.approx(1.9)
    assert moved(2.0, [0.0], optimizer="adam", learning_rate=0.5, weight_decay=0.1) == pytest.approx(1.5)


def test_a_player_may_bring_its_own_optimizer() -> None:
    parameters = [nn.Parameter(torch.zeros(()))]
    kinds = [type(make_optimizer(Player(parameters, 1.0, own), TrainConfig(), CPU)) for own in (None, "adamw", "sgd")]
    assert kinds == [Adam, AdamW, SGD]
    assert moved(0.0, [1.0, 1.0], own="sgd", optimizer="adam", learning_rate=0.1) == pytest.approx(-0.29)


def test_average_decays_as_worked_by_hand() -> None:
    model = Weight()
    average = make_average(model, 0.9)
    assert average is not None
    found = []
    for w in (3.0, 5.0, -1.0):
        with torch.no_grad():
            model.w.fill_(w)
        average.update_parameters(model)
        kept = average.module
        assert isinstance(kept, Weight)
        found.append(kept.w.item())
    # 3;  0.9 * 3 + 0.1 * 5 = 3.2;  0.9 * 3.2 - 0.1 = 2.78
    assert found == pytest.approx([3.0, 3.2, 2.78])
    assert model.w.item() == -1.0


def test_average_takes_counts_as_they_stand() -> None:
    """Running statistics are not averaged twice: those of the last step are kept."""
    model = Weight()
    average = make_average(model, 0.9)
    assert average is not None
    for n in (1.0, 2.0, 3.0):
        model.get_buffer("seen").fill_(n)
        average.update_parameters(model)
    assert average.module.get_buffer("seen").item() == 3.0


def test_a_part_that_is_not_averaged_keeps_its_last_weights() -> None:
    class Game(Weight):
        unaveraged = ("last",)

        def __init__(self) -> None:
            super().__init__()
            self.last = nn.Linear(1, 1)

    model = Game()
    average = make_average(model, 0.9)
    assert average is not None
    for w in (3.0, 5.0):
        nn.init.constant_(model.w, w)
        nn.init.constant_(model.last.weight, w)
        average.update_parameters(model)
    kept = average.module
    assert isinstance(kept, Game)
    assert kept.w.item() == pytest.approx(3.2)
    assert kept.last.weight.item() == 5.0


class Crossings(TorchDispatchMode):
    """Lists what carries numbers from one device to another."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        made = func(*args, **(kwargs or {}))
        devices = {value.device.type for value in (*args, made) if isinstance(value, torch.Tensor)}
        if len(devices) > 1:
            self.found.append(str(func))
        return made


def test_averaging_carries_nothing_to_the_device() -> None:
    """A number that goes to a GPU makes the host wait; the meta device stands for one here."""
    model = Weight().to("meta")
    average = make_average(model, 0.9)
    assert average is not None
    average.update_parameters(model)
    with Crossings() as crossings:
        average.update_parameters(model)
    assert crossings.found == []
    with Crossings() as crossings:
        AveragedModel.update_parameters(average, model)  # torch's own does: the test can fail
    assert crossings.found != []


def test_no_decay_means_no_average() -> None:
    assert make_average(Weight(), 0.0) is None
