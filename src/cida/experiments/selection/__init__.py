"""Which of many runs each validator keeps."""
