"""Methods that say how little a prediction is to be trusted, by name."""
