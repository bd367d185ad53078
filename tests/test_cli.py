import shlex
import signal
import subprocess
import sys
import time
import warnings
from pathlib import Path

import mlflow
import psutil
import pytest

import fcer
from fcer.cli import _Warnings
from fcer.commands import COMMANDS
from fcer.config.fields import fields, option_of
from fcer.config.subjects import FIRST, by_subject, first_of
from fcer.errors import FcerWarning

ROOT = Path(__file__).parent.parent
TINY = ("--years", "2018", "--fires-per-year", "1", "--image-size", "32", "36", "--fire-days", "6", "6")


def test_help_lists_every_command_and_each_teaches_with_an_example(fcer_main, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("COLUMNS", "200")
    _, everything, _ = fcer_main("--help")
    for command in COMMANDS.values():
        assert command.name in everything and command.does in everything
        code, one, _ = fcer_main(command.name, "--help")
        assert code == 0 and f"example:\n  {command.example}" in one


def options_in(text: str) -> list[str]:
    return [line.split()[0].removeprefix("--").replace("-", "_") for line in text.splitlines() if line[:4] == "  --"]


@pytest.mark.parametrize("name", [*COMMANDS, "config"])
def test_help_has_the_ten_that_are_used_most_and_help_all_the_rest_by_subject(name: str, fcer_main):
    options = COMMANDS[name].options if name in COMMANDS else tuple(fields())
    general = {"config", "help_all", "dry_run", "debug"}
    _, first, _ = fcer_main(name, "--help")
    _, every, _ = fcer_main(name, "--help-all")
    assert set(options_in(first)) - general == set(first_of(options)) and len(first_of(options)) <= 10
    assert set(options_in(every)) - general == set(options)
    hidden = len(options) - len(first_of(options))
    assert (f"{hidden} more options: fcer {name} --help-all" in first) == (hidden > 0)
    assert "more options" not in every
    for subject in by_subject(options):
        assert f"\n{subject}:\n" in every


@pytest.mark.parametrize("columns", ["40", "80", "120"])
def test_examples_break_before_options_alone_and_can_be_copied(columns: str, fcer_main, monkeypatch):
    monkeypatch.setenv("COLUMNS", columns)
    for command in COMMANDS.values():
        shown = fcer_main(command.name, "--help")[1].partition("example:\n")[2]
        lines = shown.rstrip().split("\n")
        assert [word for word in shlex.split(shown) if word != "\n"] == shlex.split(command.example)
        assert all(line.strip().startswith("--") for line in lines[1:])


def test_version(fcer_main):
    assert fcer_main("--version") == (0, f"fcer {fcer.__version__}\n", "")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["sinthesize"], "unknown command sinthesize; did you mean synthesize?"),
        (["qqq"], "unknown command qqq; `fcer --help` lists them"),
        ([], "the following arguments are required: COMMAND (see `fcer --help`)"),
        (["synthesize", "--fire-dys", "3"], "unknown option --fire-dys; did you mean --fire-days?"),
        (["distill", "--help-me"], "unknown option --help-me; did you mean --help?"),
        (["synthesize", "--data", ""], "unknown option --data; `fcer synthesize --help` lists its options"),
        (["inspect", "--data", ""], "--data: data is '', but should be a path or none"),
        (["synthesize", "--zzz"], "unknown option --zzz; `fcer synthesize --help` lists its options"),
        (["synthesize", "--seed"], "argument --seed: expected one argument (see `fcer synthesize --help`)"),
        (["synthesize", "--seed", "x"], "--seed: seed is 'x', but should be a whole number"),
        (["inspect", "--config", "no.yaml"], "no.yaml: no such file; check the path"),
        (["log", "a\0b"], "'a\\x00b': it holds a NUL, which nothing can be called"),
        (["config", "hide"], "argument action: invalid choice: 'hide' (choose from 'show') (see `fcer config --help`)"),
    ],
)
def test_bad_usage_is_one_line_and_exit_code_2(arguments, sentence, fcer_main):
    code, out, err = fcer_main(*arguments)
    assert (code, out, err) == (2, "", f"fcer: {sentence}\n")


def test_synthesize_says_what_it_made_and_what_comes_next(fcer_main):
    code, out, err = fcer_main("synthesize", "--out", "fires", *TINY)
    assert (code, err) == (0, "")
    assert out == "fires: 1 synthetic fires of 1 years (1 new)\nnext: fcer inspect --data fires\n"
    assert fcer_main("synthesize", "--out", "fires", *TINY)[1].startswith("fires: 1 synthetic fires of 1 years (0 new)")


@pytest.mark.slow
def test_every_command_runs_on_synthetic_fires_with_nothing_named(fcer_main):
    for name in ("synthesize", "convert", "inspect"):
        tiny = TINY if name != "inspect" else (*TINY, "--crop", "32")
        code, out, _ = fcer_main(name, *tiny)
        assert code == 0, name
        assert "work/synthetic-" in out


def test_inspect_shows_counts_folds_and_missing_values(golden_hdf5: Path, fcer_main):
    code, out, err = fcer_main("inspect", "--data", golden_hdf5)
    assert (code, err) == (0, "")
    rows = [line.split() for line in out.splitlines()]
    assert ["2020", "2", "11", "2", "9", "2"] in [row[:6] for row in rows]
    assert ["0", "2018", "2019", "(10)", "2020", "(2)", "2021", "(4)"] in rows
    assert "missing values: NDVI " in out
    assert "fire_short.hdf5: 4 days are too short for a sample of 5 days and a label" in out


def test_config_show_tells_where_a_value_came_from(fcer_main):
    code, out, _ = fcer_main("config", "show", "--config", ROOT / "experiments" / "demo.yaml", "--seed", "3")
    assert code == 0
    lines = {line.split(":")[0]: line for line in out.splitlines()}
    assert lines["seed"].split() == ["seed:", "3", "#", "--seed"]
    assert lines["crop"].endswith("demo.yaml") and lines["workers"].endswith("# default")


def test_config_show_and_help_tell_what_will_be_used(fcer_main, monkeypatch: pytest.MonkeyPatch):
    """A study that names neither data nor a configuration is the demo, and both say so."""
    monkeypatch.setenv("COLUMNS", "200")
    _, bare, _ = fcer_main("config", "show")
    _, named, _ = fcer_main("config", "show", "--data", "somewhere")
    shown = [{line.split(":")[0]: line.split()[1:] for line in out.splitlines()} for out in (bare, named)]
    assert [found["width"] for found in shown] == [["0.125", "#", "demo"], ["1.0", "#", "default"]]
    assert [found["crop"] for found in shown] == [["64", "#", "demo"], ["128", "#", "default"]]
    assert shown[0].keys() == shown[1].keys() == fields().keys()
    for name in ("distill", "config"):
        assert "(default: 0.125 in the demo, else 1)" in fcer_main(name, "--help-all")[1]
    assert "synthetic fires of each year (default: 6)" in fcer_main("synthesize", "--help")[1]


def test_years_that_are_named_are_made_whatever_the_split(fcer_main, tmp_path: Path):
    (tmp_path / "split.yaml").write_text("split: wsts_plus\n")
    tiny = ("--config", tmp_path / "split.yaml", "--out", tmp_path / "fires", *TINY[2:])
    assert "8 synthetic fires of 8 years" in fcer_main("synthesize", *tiny)[1]
    four = ("--years", "2018", "2019", "2020", "2021")
    assert "4 synthetic fires of 4 years" in fcer_main("synthesize", *tiny, *four, "--out", tmp_path / "four")[1]


def test_underscores_in_flags_are_what_mlflow_hands_over(fcer_main):
    code, out, _ = fcer_main("config", "show", "--fire_days", "7,9", "--fires_per_year=2")
    assert code == 0
    assert "fire_days: [7, 9]" in out and "fires_per_year: 2" in out


def test_debug_adds_the_traceback(fcer_main):
    _, _, err = fcer_main("inspect", "--data", "nowhere", "--debug")
    assert "Traceback" in err and err.endswith(
        "fcer: nowhere: no such folder; give --data a folder that holds YEAR/fire_X.hdf5\n"
    )
    assert "Traceback" not in fcer_main("inspect", "--data", "nowhere")[2]


def test_a_defect_is_one_line_too(fcer_main, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("fcer.commands.synthesize.recipe_of", lambda _: 1 / 0)
    code, _, err = fcer_main("synthesize")
    assert code == 1
    assert err.startswith("fcer: ZeroDivisionError: division by zero (this should not happen") and err.count("\n") == 1


def test_an_error_on_the_way_out_of_an_interruption_is_none(fcer_main, monkeypatch: pytest.MonkeyPatch):
    def interrupted(_: object) -> None:
        try:
            raise KeyboardInterrupt
        finally:
            raise RuntimeError("cannot join thread before it is started")

    monkeypatch.setattr("fcer.commands.synthesize.recipe_of", interrupted)
    code, _, err = fcer_main("synthesize")
    assert (code, err) == (1, "fcer: stopped; the same command goes on from what is complete\n")


def test_a_full_disk_or_a_closed_folder_is_one_line(fcer_main, tmp_path: Path):
    (tmp_path / "file").write_text("")
    code, _, err = fcer_main("synthesize", "--out", tmp_path / "file" / "below", *TINY)
    assert code == 1
    assert "Not a directory" in err and err.count("\n") == 1


def test_both_ways_to_start_it_run_this_checkout(tmp_path: Path):
    for call in (["-m", "fcer"], [str(ROOT / "src" / "fcer")]):
        done = subprocess.run([sys.executable, *call, "--version"], cwd=tmp_path, capture_output=True, text=True)
        assert (done.returncode, done.stdout) == (0, f"fcer {fcer.__version__}\n")


@pytest.mark.slow
def test_quiet_when_not_a_terminal(tmp_path: Path):
    call = [sys.executable, "-m", "fcer", "synthesize", *TINY]
    done = subprocess.run(call, cwd=tmp_path, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.slow
def test_a_command_that_is_told_to_end_takes_its_workers_along(tmp_path: Path):
    call = [sys.executable, "-m", "fcer", "synthesize", "--fires-per-year", "50", "--workers", "2"]
    for number in (signal.SIGTERM, signal.SIGKILL):
        process = subprocess.Popen(call, cwd=tmp_path, stderr=subprocess.PIPE, text=True)
        deadline = time.monotonic() + 300
        while len(children := psutil.Process(process.pid).children()) < 2 and time.monotonic() < deadline:
            time.sleep(0.02)
        process.send_signal(number)
        _, err = process.communicate(timeout=300)
        if number == signal.SIGTERM:
            assert (process.returncode, err) == (1, "fcer: stopped; the same command goes on from what is complete\n")
        _, alive = psutil.wait_procs(children, timeout=120)
        assert not alive


def test_quiet_leaves_errors_and_what_was_asked_for(fcer_main, tmp_path: Path):
    fires = tmp_path / "fires"
    assert fcer_main("synthesize", "--out", fires, *TINY, "-q") == (0, "", "")
    assert "2018" in fcer_main("-q", "inspect", "--data", fires, "--crop", "32")[1]
    assert fcer_main("-q", "inspect", "--data", "nowhere")[2].startswith("fcer: nowhere: no such folder")


def test_verbose_tells_what_was_set_by_whom_and_how_long_it_took(fcer_main):
    _, out, err = fcer_main("synthesize", "--out", "fires", *TINY, "--verbose")
    assert "fcer: fires_per_year = 1 (--fires-per-year)\n" in err and "seed" not in err
    assert err.splitlines()[-1].startswith("fcer: synthesize took ")
    assert out == fcer_main("synthesize", "--out", "again", *TINY)[1].replace("again", "fires")


def test_a_typo_leaves_no_run_and_in_that_of_mlflow_run_its_reason(fcer_main, shared_store: str, monkeypatch):
    client = mlflow.MlflowClient(shared_store)
    before = len(client.search_runs(["0"]))
    sentence = "nowhere: no such folder; give --data a folder that holds YEAR/fire_X.hdf5"
    assert fcer_main("distill", "--data", "nowhere") == (2, "", f"fcer: {sentence}\n")
    assert len(client.search_runs(["0"])) == before
    for words, reason in ((["--data", "nowhere"], sentence), (["--yaer", "2021"], "unknown option --yaer")):
        launched = client.create_run("0").info.run_id
        monkeypatch.setenv("MLFLOW_RUN_ID", launched)
        monkeypatch.setenv("MLFLOW_EXPERIMENT_NAME", "Default")
        assert fcer_main("inspect", *words)[0] == 2
        told = client.get_run(launched)
        assert told.data.tags["fcer.error"].startswith(reason) and reason in told.data.tags["mlflow.note.content"]
        assert told.info.run_name.startswith("inspect")


def test_a_warning_is_shown_once_with_a_count(capfd: pytest.CaptureFixture[str]):
    for verbose, lines in ((False, 2), (True, 3)):
        with warnings.catch_warnings():
            warned = _Warnings(verbose=verbose)
            warned.take_over(quiet=False)
            for fire in range(3):
                warnings.warn(f"2021/fire_{fire}.hdf5: day {fire} is missing", FcerWarning, stacklevel=1)
            warned.tell_rest()
        err = capfd.readouterr().err.splitlines()
        assert len(err) == lines and err[0].startswith("fcer: warning: 2021/fire_0.hdf5: day 0 is missing")
    assert lines == 3 and all("test_cli.py" in line for line in err)


def test_a_dry_run_tells_the_plan_and_does_nothing(fcer_main, tmp_path: Path):
    code, out, _ = fcer_main("main", "--arch", "unet_t1", "--width", "0.0625", "--crop", "32", "--dry-run")
    assert code == 0 and "32 synthetic fires, to be made: work/synthetic-" in out
    assert "members: 0 of 12 are there, 12 to be trained: " in out and "students: 4" in out and "maps: " in out
    assert not list(tmp_path.iterdir())
    assert fcer_main("distill", "--data", "nowhere", "--dry-run")[0] == 2


def completed(script: str, *words: str) -> list[str]:
    """What bash offers for the last word."""
    typed = " ".join(shlex.quote(word) for word in words)
    call = f'{script}\nCOMP_WORDS=(fcer {typed}); COMP_CWORD={len(words)}; _fcer; printf "%s\\n" "${{COMPREPLY[@]}}"'
    return subprocess.run(["bash", "-c", call], capture_output=True, text=True, check=True).stdout.split()


def test_bash_completes_commands_options_and_their_words(fcer_main):
    _, script, _ = fcer_main("completion", "bash")
    assert set(completed(script, "")) == {*COMMANDS, "config", "--help", "--version"}
    assert completed(script, "dist") == ["distill"]
    assert completed(script, "distill", "--head-lo") == ["--head-logit", "--head-loss"]
    assert completed(script, "distill", "--year", "2021", "--head-loss", "") == list(option_of("head_loss").choices)
    assert completed(script, "cache", "cl") == ["clear"] and completed(script, "config", "s") == ["show"]
    assert completed(script, "distill", "--data", "da") == []  # files, by the shell's own means


def test_other_shells_have_all_commands_and_options(fcer_main):
    fish, zsh = fcer_main("completion", "fish")[1], fcer_main("completion", "zsh")[1]
    assert "bashcompinit" in zsh and "complete -o default -F _fcer fcer" in zsh
    for command in COMMANDS.values():
        here = f"complete -c fcer -n '__fish_seen_subcommand_from {command.name}' -l "
        for option in command.options:
            assert here + option.replace("_", "-") in fish
    assert "-l head-loss -x -a 'rmsle mse bce'" in fish


def test_subjects_begin_with_settings_that_there_are():
    assert set(FIRST) <= fields().keys() and len(set(FIRST)) == len(FIRST)
    found = by_subject(fields())
    assert [key for keys in found.values() for key in keys] == list(fields()) and "" not in found
