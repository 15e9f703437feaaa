"""Showing sessions in a notebook."""
