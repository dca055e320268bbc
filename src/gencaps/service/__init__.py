"""The HTTP service: one FastAPI application over ``gencaps.api``. Needs the extra ``serve``."""
