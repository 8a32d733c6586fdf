"""Small synthetic worlds: the defaults, and restarts."""
