"""Exactly as many trials as were asked for: with four processes, on every storage, and whichever is killed."""

import signal
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import optuna
import pytest
from optuna.trial import TrialState

from claiming import Claimer
from fcer.runtime.processes import this_process
from fcer.search.liveness import BEAT, WORKER, Watch
from fcer.search.queue import TrialQueue, study_size
from fcer.search.samplers import make_sampler
from fcer.search.space import Space, read_space
from fcer.search.storage import TrialStore, open_storage, parse_store
from fcer.search.study import FAILURE, PAPER, RETRIES, RETRY_OF, counts, open_study, progress_of
from postgres_server import postgres_server
from search_cases import small_space


@pytest.fixture(params=["sqlite", "journal", "postgresql"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[TrialStore]:
    if request.param == "postgresql":
        with postgres_server() as url:
            yield parse_store(url, tmp_path)
        return
    urls = {"sqlite": f"sqlite:///{tmp_path}/trials.db", "journal": f"journal:{tmp_path}/trials.log"}
    yield parse_store(urls[request.param], tmp_path)


def begin(store: TrialStore, space: Space) -> optuna.Study:
    return open_study(open_storage(store), store, "small", objective="auroc", space=space.text())


def test_four_processes_make_the_asked_number_though_one_is_killed(store: TrialStore, tmp_path: Path):
    space = small_space(tmp_path)
    victim = Claimer(store, tmp_path, 16, 600)
    killed = victim.claimed.get()
    others = [Claimer(store, tmp_path, 16, 0.1)]
    numbers = [killed, others[0].claimed.get()]
    others += [Claimer(store, tmp_path, 16, 0.1) for _ in range(2)]
    victim.process.kill()
    victim.process.join()
    numbers += [number for one in others for number in one.rest()]
    assert [one.process.exitcode for one in (victim, *others)] == [-signal.SIGKILL, 0, 0, 0]
    trials = begin(store, space).get_trials()
    assert Counter(trial.state for trial in trials if counts(trial)) == {TrialState.COMPLETE: 16}
    assert len(set(numbers)) == len(numbers), "no trial ran twice"
    lost = [trial for trial in trials if not counts(trial)]
    assert [trial.number for trial in lost] == [killed]
    retries = {trial.user_attrs[RETRY_OF]: trial for trial in trials if RETRY_OF in trial.user_attrs}
    assert len(trials) == 16 + len(lost) and {trial.number for trial in lost} == retries.keys()
    assert all(retries[trial.number].params == trial.params for trial in lost if trial.params)
    paper = [trial for trial in trials if PAPER in trial.user_attrs and counts(trial)]
    assert [trial.params for trial in paper] == [space.paper()]
    assert paper[0].number == 0 or RETRY_OF in paper[0].user_attrs


def test_a_larger_number_goes_on_and_a_smaller_one_adds_nothing(tmp_path: Path):
    store, space = parse_store(f"journal:{tmp_path}/trials.log", tmp_path), small_space(tmp_path)
    study = begin(store, space)
    for asked, there in ((3, 3), (5, 5), (2, 5)):
        queue = TrialQueue(study, store, space, asked)
        while trial := queue.claim(this_process()):
            space.suggest(trial)
            study.tell(trial, 0.5)
        assert progress_of(study.get_trials()).done == there


@pytest.mark.parametrize("sampler", ["tpe", "gp", "random"])
@pytest.mark.parametrize("objective", ["auroc", "auroc_auprc"])
def test_every_sampler_draws_from_the_space(sampler: str, objective: str, tmp_path: Path):
    store, space = parse_store(f"journal:{tmp_path}/trials.log", tmp_path), small_space(tmp_path)
    study = open_study(open_storage(store), store, "small", objective=objective, space=space.text())
    study.sampler = make_sampler(sampler, 0)
    queue = TrialQueue(study, store, space, 14)
    while trial := queue.claim(this_process()):
        settings = space.settings(space.suggest(trial))
        study.tell(trial, [settings["head_lr"]] * len(study.directions))
    tried = [space.settings(trial.params) for trial in study.get_trials()]
    assert len(tried) == 14 and tried[0] == space.settings(space.paper())
    assert all(0.0001 <= settings["head_lr"] <= 1 for settings in tried)
    assert len({settings["head_lr"] for settings in tried}) > 10


def test_a_grid_ends_where_all_is_tried(tmp_path: Path):
    (tmp_path / "space.yaml").write_text(
        "head_loss: {categorical: [rmsle, mse, bce]}\nhead_lr: {categorical: [0.001, 0.1]}\n"
    )
    store = parse_store(f"journal:{tmp_path}/trials.log", tmp_path)
    claimers = [Claimer(store, tmp_path, 50, 0.02, "grid") for _ in range(2)]
    assert len([number for one in claimers for number in one.rest()]) == 6
    space = read_space(tmp_path / "space.yaml")
    assert study_size(space, 50, grid=True) == 6 and study_size(space, 4, grid=True) == 4
    trials = begin(store, space).get_trials()
    assert sorted(trial.params.items() for trial in trials) == sorted(point.items() for point in space.grid())
    assert trials[0].params == space.paper()


def test_what_failed_by_itself_counts_and_is_not_tried_again(tmp_path: Path):
    store, space = parse_store(f"journal:{tmp_path}/trials.log", tmp_path), small_space(tmp_path)
    study = begin(store, space)
    queue = TrialQueue(study, store, space, 2)
    while trial := queue.claim(this_process()):
        trial.set_user_attr(FAILURE, "the loss is no longer finite")
        study.tell(trial, state=TrialState.FAIL)
    assert progress_of(study.get_trials()) == (0, 0, 2, 0)


def test_a_trial_that_loses_its_process_again_and_again_is_given_up(tmp_path: Path):
    store, space = parse_store(f"journal:{tmp_path}/trials.log", tmp_path), small_space(tmp_path)
    study = begin(store, space)
    gone = this_process()._replace(pid=2**22 + 1)
    queue = TrialQueue(study, store, space, 1)
    for _ in range(4):
        assert queue.claim(gone) is not None
    assert queue.claim(gone) is None
    trials = study.get_trials()
    assert [trial.user_attrs.get(RETRIES, 0) for trial in trials] == [0, 1, 2, 3]
    assert all(trial.state is TrialState.FAIL and PAPER in trial.user_attrs for trial in trials)
    assert progress_of(trials).failed == 1


def test_a_process_elsewhere_is_dead_when_it_falls_silent(tmp_path: Path):
    store, space = parse_store(f"journal:{tmp_path}/trials.log", tmp_path), small_space(tmp_path)
    study = begin(store, space)
    trial = TrialQueue(study, store, space, 1).claim(this_process()._replace(host="elsewhere"))
    assert trial is not None
    watch = Watch(silence=0.0)
    for beat in (1, 2, 3):
        trial.set_user_attr(BEAT, beat)
        assert not watch.is_dead(study.get_trials()[0]), "a new beat each time"
    assert watch.is_dead(study.get_trials()[0])
    assert not Watch(silence=60.0).is_dead(study.get_trials()[0])


def test_a_claim_that_was_cut_short_is_nobodys(tmp_path: Path):
    store, space = parse_store(f"journal:{tmp_path}/trials.log", tmp_path), small_space(tmp_path)
    study = begin(store, space)
    study.ask()
    assert WORKER not in study.get_trials()[0].user_attrs
    trial = TrialQueue(study, store, space, 1).claim(this_process())
    assert trial is not None and trial.number > 0


def test_a_trial_that_was_failed_but_not_queued_again_is_queued_by_the_next(tmp_path: Path):
    """Who fails the trial of a dead process may be killed itself before it queues the trial again."""
    store, space = parse_store(f"journal:{tmp_path}/trials.log", tmp_path), small_space(tmp_path)
    study = begin(store, space)
    queue = TrialQueue(study, store, space, 2)
    first = queue.claim(this_process())
    assert first is not None
    study.tell(first, state=TrialState.FAIL)
    again = queue.claim(this_process())
    assert again is not None and again.user_attrs[RETRY_OF] == first.number and PAPER in again.user_attrs
    other = queue.claim(this_process())
    assert other is not None and RETRY_OF not in other.user_attrs, "queued once"
