"""How many bits a model gets and where they go: steps from sensitivities, for a size, a rate or a quality."""

from runtime.rate.plan import StepPlan
from runtime.rate.rounder import Kept, Rounder, make_rounder, sensitivities

__all__ = ["Kept", "Rounder", "StepPlan", "make_rounder", "sensitivities"]
