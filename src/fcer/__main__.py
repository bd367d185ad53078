"""`python -m fcer`, and `python src/fcer`, which needs no installation: MLflow's entry points use that one."""

import sys
from pathlib import Path

if not __package__:
    # Started as a folder, Python put this folder first on the path; the package lies one above. First, so
    # that it is always this checkout's code that runs, whatever is installed.
    sys.path[0] = str(Path(__file__).resolve().parent.parent)

if __name__ == "__main__":
    from fcer.cli import main

    sys.exit(main())
