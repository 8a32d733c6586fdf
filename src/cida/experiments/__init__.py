"""The paper's experiments and ours: one folder each; the library does not import them."""
