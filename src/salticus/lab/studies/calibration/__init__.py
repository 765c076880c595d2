"""The calibration of the synthetic market: published statistics beside ours."""
