"""Experiments: recipes, runs, tables, speed."""
