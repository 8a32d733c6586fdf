"""Run folders: one fit on disk, what it was, and the rows kept for a report."""
