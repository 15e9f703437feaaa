"""The process that holds one session: terminal, log, exit record, stop.

It runs as ``python -I -S`` with low-level modules only, since every session pays for its memory: nothing in
this folder imports re, json, enum, dataclasses, socket or signal.
"""
