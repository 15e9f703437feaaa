"""For lessons: checks of what a command did, explanations of common errors, scratch directories."""
