"""``python -m gencaps``."""

from gencaps.cli import run

run()
