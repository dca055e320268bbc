"""The papers' numbers as data, and the one command that measures them again."""
