"""Fires on disk and what is read from them: WildfireSpreadTS, synthetic fires, predicted maps."""
