#!/usr/bin/env python3
"""Whether a server answers: `healthy URL` exits with 0 if it does. The image has no curl."""

import sys
import urllib.error
import urllib.request

try:
    urllib.request.urlopen(sys.argv[1], timeout=10).close()
except (urllib.error.URLError, OSError) as error:
    sys.exit(f"{sys.argv[1]}: {error}")
