"""Speed against the plain way, as ratios measured in one run: `make bench`."""
