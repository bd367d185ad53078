"""What a trial is worth, how it ends, and workers that run them on a real cache."""

import csv
import html
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import optuna
import pytest
import torch
from optuna.trial import TrialState
from safetensors.torch import load_file, save_file
from scipy.stats import spearmanr
from sklearn.metrics import average_precision_score, roc_auc_score

from fcer.core.disagreement import entropy, normalized_std
from fcer.core.ranking import auroc_within_score
from fcer.core.regions import fire_region
from fcer.errors import FcerError
from fcer.search.board import Board
from fcer.search.crew import Worker, run_crew
from fcer.search.liveness import BEAT, beating
from fcer.search.references import beside_references, reference_rows
from fcer.search.results import importances, plots_page, trials_csv
from fcer.search.samplers import draw_sampler_seed, make_pruner
from fcer.search.scores import HeadTrials, reference_scores
from fcer.search.storage import open_storage, parse_store
from fcer.search.study import FAILURE, SCORES, best_trial, open_study, paper_trial, progress_of
from fcer.search.worker import Ended, run_trial
from fcer.training.feature_cache import open_cache
from fcer.training.head import HeadTask, fit_head
from fcer.training.head_settings import HeadSettings
from fcer.training.validation_region import gather_region
from postgres_server import postgres_server
from search_cases import SIDE, make_job, small_space, write_cache

ANCHOR = 3.0
LONG = {"epochs": 100, "patience": 100}


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_cache(tmp_path_factory.mktemp("cache") / "features")


@pytest.fixture(scope="module")
def trials(cache: Path) -> HeadTrials:
    return HeadTrials(open_cache(cache), ANCHOR)


def ignore(_record: object) -> None:
    pass


def test_errors_may_be_learnt_and_are_scored_on_fires_not_seen(cache: Path, trials: HeadTrials):
    settings = HeadSettings(lr=0.1, epochs=4, target="error", loss="bce", logit=True, context=True, fire=True)
    told = []
    scores = trials.fit(settings, told.append)
    assert scores.auroc == pytest.approx(max(record.score for record in told), abs=1e-9)
    assert np.isfinite(scores.auroc_within) and len(told) == 4


@pytest.mark.parametrize("target", ["std", "entropy"])
def test_scores_are_those_of_the_best_epoch_near_fire(target: str, cache: Path, trials: HeadTrials):
    settings = HeadSettings(lr=0.1, epochs=8, target=target)
    scores = trials.fit(settings, ignore)
    split = open_cache(cache).validation
    fitted = fit_head(
        HeadTask.of(open_cache(cache).training, split, gather_region(split, ANCHOR), target), settings, bar=False
    )
    (block,) = split.blocks()
    maps = block.features_BFP.float().unflatten(2, (SIDE, SIDE)), block.logits_BP.unflatten(1, (SIDE, SIDE))
    uncertainty = fitted.head(*maps).detach().sigmoid().numpy().reshape(-1, SIDE, SIDE)
    fire = block.y_BP.numpy().reshape(-1, SIDE, SIDE).astype(bool)
    near = np.stack([fire_region(image, ANCHOR) for image in fire])
    error = (maps[1].numpy() > 0) != fire
    teacher = normalized_std(block.passes_BKP.double().numpy().transpose(1, 0, 2)).reshape(-1, SIDE, SIDE)
    assert scores.epoch == fitted.best_epoch
    assert scores.auroc == pytest.approx(roc_auc_score(error[near], uncertainty[near]), abs=1e-6)
    within = auroc_within_score(error[near], uncertainty[near], maps[1].numpy()[near] > 0)
    assert scores.auroc_within == pytest.approx(within, abs=1e-6)
    assert scores.auprc == pytest.approx(average_precision_score(error[near], uncertainty[near]), abs=1e-6)
    assert scores.fidelity == pytest.approx(spearmanr(teacher[near], uncertainty[near]).statistic, abs=1e-6)


def test_targets_share_the_training_features_in_memory(trials: HeadTrials):
    for target in ("std", "entropy"):
        trials.fit(HeadSettings(epochs=1, target=target), ignore)
    tasks = [trials._tasks[target] for target in ("std", "entropy")]
    places = {block.features_BFP.data_ptr() for task in tasks for block in task.training.blocks()}
    assert len(places) == len(list(tasks[0].training.blocks()))
    assert all(block.features_BFP.dtype == torch.float32 for block in tasks[0].training.blocks())


def test_a_teacher_that_says_the_same_everywhere_is_refused(tmp_path: Path):
    folder = write_cache(tmp_path / "features")
    shard = folder / "validation-00000.safetensors"
    arrays = load_file(shard)
    save_file({**arrays, "passes": torch.full_like(arrays["passes"], 0.5)}, shard)
    with pytest.raises(FcerError, match=r"^teacher: its uncertainty is the same everywhere near fire.*; train members"):
        HeadTrials(open_cache(folder), ANCHOR).fit(HeadSettings(epochs=1), ignore)


@pytest.fixture
def ask(tmp_path: Path) -> Callable[[], optuna.Trial]:
    store = parse_store(f"journal:{tmp_path}/trials.log", tmp_path)
    study = open_study(open_storage(store), store, "small", objective="auroc", space="")
    study.pruner = make_pruner("median")
    return study.ask


def test_a_trial_is_complete_with_its_scores(ask: Callable[[], optuna.Trial], trials: HeadTrials):
    trial = ask()
    ended = run_trial(trial, trials, HeadSettings(epochs=12), ("auroc",))
    (frozen,) = trial.study.get_trials()
    assert ended.state == "complete" and [record.epoch for record in ended.records] == list(range(1, 13))
    assert frozen.state is TrialState.COMPLETE and frozen.value == ended.scores.auroc
    assert frozen.value == max(record.score for record in ended.records)
    assert frozen.user_attrs[SCORES].items() >= ended.scores._asdict().items()
    so_far = [max(record.score for record in ended.records[:epoch]) for epoch in (5, 10)]
    assert frozen.intermediate_values == dict(zip((5, 10), so_far, strict=True))


def test_a_hopeless_trial_is_pruned_but_never_the_papers(ask: Callable[[], optuna.Trial], trials: HeadTrials):
    study = ask().study
    for _ in range(6):
        study.add_trial(optuna.create_trial(value=1.0, intermediate_values=dict.fromkeys((5, 10, 15, 20), 1.0)))
    paper = study.ask()
    paper.set_user_attr("paper", True)
    assert run_trial(paper, trials, HeadSettings(epochs=20), ("auroc",)).state == "complete"
    ended = run_trial(study.ask(), trials, HeadSettings(epochs=20), ("auroc",))
    assert ended.state == "pruned" and ended.scores is None and len(ended.records) == 10
    assert study.get_trials()[-1].state is TrialState.PRUNED
    assert study.get_trials()[-1].value == max(record.score for record in ended.records)


def test_a_loss_that_explodes_fails_the_trial_with_its_reason(ask: Callable[[], optuna.Trial], trials: HeadTrials):
    trial = ask()
    ended = run_trial(trial, trials, HeadSettings(hidden=(8,), lr=1e30, loss="bce"), ("auroc",))
    (frozen,) = trial.study.get_trials()
    assert ended.state == "failed" and frozen.state is TrialState.FAIL
    assert ended.reason == frozen.user_attrs[FAILURE]
    assert ended.reason.startswith("head: ")


def test_a_trial_that_others_gave_up_changes_nothing(ask: Callable[[], optuna.Trial], trials: HeadTrials):
    trial = ask()
    trial.study.tell(trial.number, state=TrialState.FAIL)
    ended = run_trial(trial, trials, HeadSettings(epochs=12), ("auroc",))
    assert ended.state == "failed" and "took this process for dead" in ended.reason
    assert trial.study.get_trials()[0].state is TrialState.FAIL


def test_four_workers_finish_exactly_the_asked_number(cache: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    space = small_space(tmp_path)
    with postgres_server() as url:
        store = parse_store(url, tmp_path)
        study = open_study(open_storage(store), store, "small", objective="auroc_fidelity", space=space.text())
        board = Board(study, 16)
        ends: list[Ended | None] = []

        def follow(worker: Worker) -> None:
            for _ in worker.begun():
                board.begin()
                ends.append(worker.ended())
                board.update()

        job = make_job(store, space, cache, trials=16, sampler="tpe", objective="auroc_fidelity", head=LONG)
        assert run_crew(job, 4, follow) == [0, 0, 0, 0]
        found = study.get_trials()
        assert sorted(ended.number for ended in ends if ended) == [trial.number for trial in found] == list(range(16))
        assert len({trial.user_attrs["worker"][1] for trial in found}) > 1, "several worked on it"
        assert progress_of(found) == (16, 0, 0, 0)
        assert paper_trial(found).params == space.paper() and paper_trial(found).number == 0
        assert best_trial(found).values[0] == max(trial.values[0] for trial in found)
        rows = trials_csv(found, space).splitlines()
        page = plots_page(study, ("auroc", "fidelity"))
        assert set(importances(study)) == {"head_lr", "head_loss", "head_momentum"}
    said = capsys.readouterr().out.splitlines()[-1]
    assert said.startswith("study: 16 of 16 trials done, best AUROC 0.") and said.endswith("about 0:00 min left")
    assert rows[0].startswith(
        "number,state,counts,paper,auroc,auroc_within,auprc,fidelity,epoch,fit_seconds,head_lr,head_loss,"
    )
    assert len(rows) == 17 and rows[1].startswith("0,complete,true,true,0.")
    assert "Pareto front" in page and page.count("plotly.js v") == 1 and 'src="http' not in page


def test_a_head_is_held_to_what_needs_none(cache: Path, tmp_path: Path):
    """Entropy and probability on the trials' own pixels, on the page and in the table beside each trial's scores."""
    store, space = parse_store(f"sqlite:///{tmp_path}/s.db", tmp_path), small_space(tmp_path)
    study = open_study(open_storage(store), store, "small", objective="within", space=space.text())
    job = make_job(store, space, cache, trials=2, objective="within", pruner="median", threshold=0.4)
    run_crew(job, 1, lambda worker: [worker.ended() for _ in worker.begun()])
    region = gather_region(open_cache(cache).validation, 3.0, 0.4)
    references = reference_scores(region)
    prob = 1 / (1 + np.exp(-region.logit_P.astype(float)))
    for name, unc in (("entropy", entropy(prob)), ("probability", prob)):
        assert references[name]["auroc"] == pytest.approx(roc_auc_score(region.error_P, unc), abs=1e-6)
        expected = auroc_within_score(region.error_P, unc, region.predicted_P)
        assert references[name]["auroc_within"] == pytest.approx(expected, abs=1e-6)
    study.set_user_attr("references", references)
    found = study.get_trials()
    assert [trial.state for trial in found] == [TrialState.COMPLETE] * 2, "pruned by what is not its objective"
    assert [trial.values for trial in found] == [[trial.user_attrs["scores"]["auroc_within"]] for trial in found]
    best = best_trial(found)
    rows = list(csv.DictReader(trials_csv(found, space, reference_rows(study)).splitlines()))
    assert [float(row["auroc_within"]) for row in rows] == [trial.values[0] for trial in found]
    assert {float(row["entropy_auroc_within"]) for row in rows} == {references["entropy"]["auroc_within"]}
    sentence, page = beside_references(study, best), plots_page(study, ("auroc_within",))
    assert f"the backbone's probability {references['probability']['auroc']:.4f} and " in sentence
    assert sentence[1:] in html.unescape(page) and "entropy of the backbone, no head" in page
    weak = dict.fromkeys(("auroc", "auroc_within"), 0.0)
    study.set_user_attr("references", {"entropy": weak, "probability": weak})
    both = "AUROC above entropy and probability, in AUROC within the predicted class above entropy and probability"
    assert both in beside_references(study, best)
    study.set_user_attr("references", {"entropy": dict.fromkeys(weak, 1.0)})
    assert "it is above neither in either" in beside_references(study, best)


def test_a_trial_at_work_is_heard_of(ask: Callable[[], optuna.Trial]):
    trial = ask()
    with beating(trial, seconds=0.01):
        for beat in (1, 2):
            while trial.study.get_trials()[0].user_attrs.get(BEAT, 0) < beat:
                time.sleep(0.01)
        trial.study.tell(trial.number, state=TrialState.FAIL)
    assert trial.study.get_trials()[0].user_attrs[BEAT] >= 2, "others gave it up, which ends the beat without a word"


def test_no_two_workers_and_sessions_share_a_seed():
    seeds = {draw_sampler_seed(0, session, worker) for session in range(10) for worker in range(10)}
    assert len(seeds) == 100 and draw_sampler_seed(0, 1, 2) == draw_sampler_seed(0, 1, 2) != draw_sampler_seed(1, 1, 2)
