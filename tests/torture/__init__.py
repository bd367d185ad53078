"""Faults on purpose: malformed input through the command line, and kills at random moments; `make torture`."""
