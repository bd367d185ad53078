from pathlib import Path

import pytest

from fcer.evaluation import Results, evaluate_files
from fcer.report import write_report
from report_cases import write_years

YEARS = (2018, 2019, 2020)


@pytest.fixture(scope="session")
def map_files(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    return write_years(tmp_path_factory.mktemp("reported_maps"), YEARS)


@pytest.fixture(scope="session")
def results(map_files) -> Results:
    return evaluate_files(map_files, bootstrap=50, progress=None)


@pytest.fixture(scope="session")
def plain_report(results, tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """The files of a report with nothing but the results; the page is the last."""
    return write_report(results, tmp_path_factory.mktemp("plain_report"))
