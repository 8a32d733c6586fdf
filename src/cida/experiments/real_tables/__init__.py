"""Real tables: NHANES, King County and SUPPORT2."""
