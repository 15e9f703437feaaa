"""The front door for Python notebooks: ``%%sh_session`` and ``%session``."""
