"""Forecasts held to what burnt: read from their maps, met with the truth, scored, kept on record, and watched."""
