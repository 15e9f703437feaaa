"""What a magic and the command line have in common: the words, and what they do. Nothing here knows IPython."""
