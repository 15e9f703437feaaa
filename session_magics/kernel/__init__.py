"""Kernels whose plain cells are shell, and the kernelspecs by which front ends find them."""
