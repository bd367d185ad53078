"""Keyed steps under kills at any moment: whatever is found is the result of exactly what was asked for."""

import os
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from fcer.runtime.files import atomic_path
from fcer.runtime.steps import Step


class _Killed(BaseException):
    """Where a process would have ended."""


STAGES = ("before", "begun", "half written", "written", "noted")


class StepMachine(RuleBasedStateMachine):
    """Commands with one of three settings compute into the same place, killed at any stage; others write there, too."""

    def __init__(self) -> None:
        super().__init__()
        self._place = TemporaryDirectory()
        self.file = Path(self._place.name) / "maps.npz"

    def teardown(self) -> None:
        self._place.cleanup()

    @staticmethod
    def step(seed: int) -> Step:
        return Step(1, {"seed": seed})

    @rule(seed=st.integers(0, 2), killed=st.sampled_from(STAGES))
    def compute(self, seed: int, killed: str) -> None:
        """As the pipeline does: find, or begin, write and finish."""
        step = self.step(seed)
        if step.is_at(self.file):
            return
        try:
            self._stage("before", killed)
            step.begin(self.file)
            self._stage("begun", killed)
            with atomic_path(self.file) as partial:
                partial.write_text(f"result of {seed}"[: 4 if killed == "half written" else None])
                self._stage("half written", killed)
            self._stage("written", killed)
            step.finish(self.file)
            assert step.is_at(self.file)
        except _Killed:
            pass

    def _stage(self, now: str, killed: str) -> None:
        if now == killed:
            raise _Killed

    @rule(content=st.sampled_from(["result of 1", "anything"]))
    def somebody_writes(self, content: str) -> None:
        """A user, or another program, without a note."""
        before = self.file.stat().st_mtime_ns if self.file.exists() else 0
        self.file.write_text(content)
        os.utime(self.file, ns=(before + 1_000_000, before + 1_000_000))

    @rule(kept=st.integers(0, 40))
    def note_is_cut(self, kept: int) -> None:
        note = self.file.with_suffix(".json")
        if note.exists():
            note.write_bytes(note.read_bytes()[:kept])

    @invariant()
    def what_is_found_is_what_was_asked_for(self) -> None:
        for seed in range(3):
            if self.step(seed).is_at(self.file):
                assert self.file.read_text() == f"result of {seed}"
        left = [path.name for path in self.file.parent.iterdir() if "partial" in path.name]
        assert left == []


StepMachine.TestCase.settings = settings(
    max_examples=20, stateful_step_count=20, deadline=None, suppress_health_check=list(HealthCheck)
)
test_steps_survive_every_kill = StepMachine.TestCase
