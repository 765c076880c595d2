"""Trained models as predictors: features that stream, scores, and curves for the policies."""
