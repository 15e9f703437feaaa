"""Sessions of other registries as finished ones of ours. The other registry is only read."""
