"""Rotating MNIST, and Rotating Digits, which needs no download."""
