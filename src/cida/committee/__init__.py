"""Candidate models in several coordinates, what trials say of them, and their weighted mean."""

from cida.committee.decision import CandidateReport, Decision
from cida.committee.members import Committee, CommitteeMember

__all__ = ["CandidateReport", "Committee", "CommitteeMember", "Decision"]
