"""Synthetic fires, to start without the real dataset."""
