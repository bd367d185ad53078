"""The predicted-maps file: what every evaluation reads."""
