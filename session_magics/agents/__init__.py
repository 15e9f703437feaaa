"""Coding agents in sessions: which there are, what they ask, who may answer, and what they leave behind."""
