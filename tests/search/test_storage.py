"""Where studies are kept: which URLs, what is refused, and that no password is shown."""

import subprocess
import sys
import threading
from pathlib import Path

import mlflow
import pytest

from fcer.errors import ConfigError, FcerError
from fcer.search.storage import locked, open_storage, parse_store
from fcer.search.study import agree, begin_session, open_study
from postgres_server import postgres_server


def test_sqlite_of_its_own_is_the_default(tmp_path: Path):
    store = parse_store(None, tmp_path / "work" / "studies.db")
    open_storage(store)
    assert store.shown == f"sqlite:///{tmp_path}/work/studies.db" and store.file.exists()


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("postgresql://me:secret@db/fcer", "postgresql://me:***@db/fcer"),
        ("postgresql+psycopg2://me:secret@db/fcer", "postgresql+psycopg2://me:***@db/fcer"),
        ("postgresql://me@db/fcer?password=secret", "postgresql://me@db/fcer?password=%2A%2A%2A"),
        ("postgresql://me@db/fcer", "postgresql://me@db/fcer"),
    ],
)
def test_passwords_are_not_shown(url: str, shown: str, tmp_path: Path):
    store = parse_store(url, tmp_path)
    assert store.url == url.replace("postgresql://", "postgresql+psycopg2://") and store.shown == shown
    assert "secret" not in repr(store)


@pytest.mark.parametrize("url", ["mysql://me:secret@db/fcer", "redis://db", "trials.db", "sqlite:///", "postgres://db"])
def test_other_urls_are_refused(url: str, tmp_path: Path):
    with pytest.raises(ConfigError, match=r"give sqlite:///FILE, journal:FILE or postgresql://") as raised:
        parse_store(url, tmp_path)
    assert "secret" not in str(raised.value)


@pytest.mark.slow
def test_mlflows_database_is_refused(tmp_path: Path):
    uri = f"sqlite:///{tmp_path}/mlflow.db"
    mlflow.MlflowClient(uri).search_experiments()
    with pytest.raises(ConfigError, match=r"is MLflow's own database; name another for the study"):
        open_storage(parse_store(uri, tmp_path))


def test_what_cannot_be_opened_is_one_sentence(tmp_path: Path):
    (tmp_path / "text.db").write_text("no database at all, but a text that is long enough to be read as a header")
    (tmp_path / "text.log").write_text("no journal\n")
    for url in (
        f"sqlite:///{tmp_path}/text.db",
        f"journal:{tmp_path}/text.log",
        "postgresql://me:secret@127.0.0.1:9/fcer",
    ):
        with pytest.raises(FcerError, match=r"^storage: .* cannot be opened \(") as raised:
            open_storage(parse_store(url, tmp_path))
        assert "\n" not in str(raised.value) and "secret" not in str(raised.value)


def test_a_driver_that_is_not_there_is_named(tmp_path: Path):
    store = parse_store("postgresql+pg8000://me:secret@db/fcer", tmp_path)
    with pytest.raises(ConfigError, match=r"needs pg8000; install it with pip install") as raised:
        open_storage(store)
    assert "secret" not in str(raised.value)


def test_a_killed_process_lets_go_of_the_lock(tmp_path: Path):
    store = parse_store(f"journal:{tmp_path}/trials.log", tmp_path)
    code = (
        "import sys, time\nfrom pathlib import Path\nfrom fcer.search.storage import *\n"
        f"with locked(parse_store({store.url!r}, Path('.')), 'claim'):\n print('held', flush=True)\n time.sleep(600)"
    )
    holder = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert holder.stdout is not None and holder.stdout.readline() == "held\n"
    holder.kill()
    holder.wait()

    def take() -> None:
        with locked(store, "claim"):
            pass

    waiting = threading.Thread(target=take, daemon=True)
    waiting.start()
    waiting.join(timeout=60)
    assert not waiting.is_alive()


@pytest.mark.slow
def test_studies_of_one_server_do_not_wait_for_each_other(tmp_path: Path):
    done: list[str] = []

    def take(study: str) -> threading.Thread:
        def claim() -> None:
            with locked(store, "claim", study):
                done.append(study)

        waiting = threading.Thread(target=claim, daemon=True)
        waiting.start()
        return waiting

    with postgres_server() as url:
        store = parse_store(url, tmp_path)
        with locked(store, "claim", "mine"):
            same = take("mine")
            take("other").join(timeout=60)
            assert done == ["other"]
        same.join(timeout=60)
        assert done == ["other", "mine"]


def test_a_study_that_asks_for_something_else_is_refused(tmp_path: Path):
    store = parse_store(f"sqlite:///{tmp_path}/trials.db", tmp_path)
    storage = open_storage(store)
    study = open_study(storage, store, "head", objective="auroc", space="a")
    agree(study, store, {"cache": "c", "anchor_px": 4.0})
    assert open_study(storage, store, "head", objective="auroc", space="a").user_attrs["fcer.cache"] == "c"
    with pytest.raises(ConfigError, match=r"^study: `head` in sqlite:.* searches another space; name another --study$"):
        open_study(storage, store, "head", objective="auroc", space="b")
    with pytest.raises(ConfigError, match="has another objective"):
        open_study(storage, store, "head", objective="auroc_auprc", space="a")
    for key, value in {"cache": "d", "anchor_px": 5.0}.items():
        with pytest.raises(ConfigError, match=r"name another --study$"):
            agree(study, store, {key: value})
    assert [begin_session(study, store) for _ in range(2)] == [0, 1]
