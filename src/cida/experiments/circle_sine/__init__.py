"""Circle and Sine: the paper's two toy worlds."""
