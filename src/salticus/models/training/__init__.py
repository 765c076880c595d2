"""From a log to a model: examples, fitting, calibration, evaluation."""
