"""The last words of ``make demo``: where the report is and what to try next."""

from __future__ import annotations

import sys
from pathlib import Path


def main(run: str) -> None:
    """Writes two pictures to try things on and prints five commands."""
    from gencaps import data
    from gencaps.engine.log import relative
    from gencaps.figures import save_picture, to_images

    folder = Path(run)
    test = data.load("digits").test
    for name, image in zip(("a.png", "b.png"), to_images(test.x[:2]), strict=True):
        save_picture(image, folder / name)
    gencaps = ".venv/bin/gencaps"
    print(f"""
The report, with curves, reconstructions, samples and walks between digits:
  {relative(folder / "report.html")}

Five things to try next:
  {gencaps} classify {run} {run}/a.png {run}/b.png
  {gencaps} generate {run} --classes 3,8 --n 12 --seed 7 --out threes_and_eights.png
  {gencaps} resample {run} {run}/a.png --n 12 --out styles.png
  {gencaps} interpolate {run} {run}/a.png {run}/b.png --steps 12 --out walk.gif
  {gencaps} train variational --data folder:PATH --out runs/mine      (your own pictures, a subfolder a class)""")


if __name__ == "__main__":
    main(sys.argv[1])
