"""Recordings of terminals as asciicast files: read, written, and made from what a session's log keeps."""
