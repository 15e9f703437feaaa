"""The front door for terminals: ``session-magics VERB …``, with the verbs and words of ``%session``."""
