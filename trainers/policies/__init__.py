"""Policies: who writes the text."""

from .base import GenerationFailed, Policy, PolicyExhausted
from .recordings import Recording, RecordingFormatError, load_recordings
from .replay import ReplayPolicy
from .scripted import ScriptedPolicy

__all__ = [
    "GenerationFailed",
    "Policy",
    "PolicyExhausted",
    "Recording",
    "RecordingFormatError",
    "ReplayPolicy",
    "ScriptedPolicy",
    "load_recordings",
]
