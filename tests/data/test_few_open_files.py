"""A shell may allow few open files; datasets have hundreds."""

import subprocess
import sys
from pathlib import Path

import h5py
import numpy as np
import pytest

READ_ALL = """
import resource, sys
from pathlib import Path
resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
from fcer.data.catalog import open_catalog
found = open_catalog(Path(sys.argv[1]))
for _ in range(2):
    print(sum(int(fire.read(slice(0, 1), [22]).max()) for fire in found.fires))
"""


@pytest.mark.parametrize("chunks", [None, (1, 23, 4, 4)])
def test_more_fires_than_files_that_may_be_open(tmp_path: Path, chunks: tuple[int, ...] | None):
    (tmp_path / "2018").mkdir()
    for k in range(151):
        with h5py.File(tmp_path / "2018" / f"fire_{k}.hdf5", "w") as file:
            file.create_dataset("data", data=np.full((1, 23, 4, 4), 5, np.float32), chunks=chunks)
    call = [sys.executable, "-c", READ_ALL, str(tmp_path)]
    done = subprocess.run(call, capture_output=True, text=True, check=False)
    assert done.stdout.split() == ["755", "755"], done.stderr
