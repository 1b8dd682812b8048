"""Policies: who writes the text."""

from .base import GenerationFailed, Policy, PolicyExhausted

__all__ = ["GenerationFailed", "Policy", "PolicyExhausted"]
