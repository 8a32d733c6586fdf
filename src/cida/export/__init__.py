"""Models for other programs: ONNX files, folders with a model card."""
