"""The machine is watched from the first moment to the last, and nothing waits for that."""

import time
from collections.abc import Mapping

import pytest

from fcer.errors import FcerWarning
from fcer.tracking.system_metrics import system_metrics


def test_samples_are_taken_while_the_block_runs_and_at_its_end(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("MLFLOW_SYSTEM_METRICS_SAMPLING_INTERVAL", "0.02")
    samples: list[tuple[Mapping[str, float], int]] = []
    with system_metrics(lambda values, step: samples.append((values, step))):
        while len(samples) < 3:
            time.sleep(0.001)
        before = len(samples)
    assert len(samples) > before
    assert [step for _, step in samples] == list(range(len(samples)))
    assert all(0 <= values["system/cpu_utilization_percentage"] <= 100 for values, _ in samples)
    assert all(values["system/system_memory_usage_megabytes"] > 0 for values, _ in samples)


def test_a_block_that_is_over_at_once_has_one_sample():
    samples: list[tuple[Mapping[str, float], int]] = []
    with system_metrics(lambda values, step: samples.append((values, step))):
        pass
    assert [step for _, step in samples] == [0]


def test_what_cannot_be_written_is_told_and_holds_up_nothing():
    def full(values: Mapping[str, float], step: int) -> None:
        raise OSError("no space left")

    with pytest.warns(FcerWarning, match=r"system metrics end here \(no space left\)"), system_metrics(full):
        pass
