import math
from pathlib import Path

import pytest
import yaml

from fcer.config.fields import fields, help_text, option_of
from fcer.config.groups import recorded
from fcer.config.resolve import Resolved, resolve, to_yaml
from fcer.config.settings import Config
from fcer.data.channels import feature_indices
from fcer.errors import ConfigError
from fcer.runtime.secrets import masked

EXPERIMENTS = Path(__file__).parents[2] / "experiments"


def sentence(file: Path | None = None, **flags: str) -> str:
    with pytest.raises(ConfigError) as error:
        resolve(file, flags)
    assert "\n" not in str(error.value)
    return str(error.value)


@pytest.fixture
def written(tmp_path: Path):
    def write(text: str) -> Path:
        path = tmp_path / "mine.yaml"
        path.write_text(text)
        return path

    return write


def test_defaults_then_file_then_flags(written):
    file = written("seed: 1\ncrop: 64\n")
    config, origins = resolve(file, {"seed": "2"})
    assert (config.seed, config.crop, config.fires_per_year) == (2, 64, Config().fires_per_year)
    assert (origins["seed"], origins["crop"], origins["fires_per_year"]) == ("--seed", str(file), "default")


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("sede: 1", "unknown key `sede`; did you mean `seed`?"),
        ("xyz: 1", "unknown key `xyz`; `fcer config show` lists all"),
        ("seed: one", "seed is 'one', but should be a whole number"),
        ("seed: 1.5", "seed is 1.5, but should be a whole number"),
        ("seed: true", "seed is True, but should be a whole number"),
        ("seed:", "seed is None, but should be a whole number"),
        ("seed: -1", "seed is -1, but should be at least 0"),
        ("seed: 1000000000000", "seed is 1000000000000, but should be at most 4294967295"),
        ("fires_per_year: 1000000000000", "fires_per_year is 1000000000000, but should be at most 9999"),
        ("bootstrap: 1000000000000", "bootstrap is 1000000000000, but should be at most 1000000"),
        ("geotiff: 1", "geotiff is 1, but should be true or false"),
        ("years: 2018", "years is 2018, but should be a list, each item a whole number or none"),
        ("years: []", "years is []: name at least one year"),
        ("years: [2018, 2018]", "years is [2018, 2018]: name each year once"),
        ("image_size: [200, 100]", "image_size is [200, 100]: give two numbers, the smaller one first"),
        ("image_size: [16, 100]", "image_size is 16, but should be at least 32"),
        ("features: 3", "features is 3, but should be a name or a list, each item a whole number"),
        ("work: ''", "work is '', but should be a path"),
        ("years: [12]", "years is 12, but should be at least 1000"),
        ("crop: 100", "crop is 100: not a multiple of 32, which the backbones need; try 96"),
        ("features: veg", "features is 'veg': use vegetation, multi, all, fire or a list of indices from 0 to 39"),
        ("features: [40]", "features is 40, but should be at most 39"),
        ("anchor: near", "anchor is 'near': give px from 0 on, metres such as 1500m, or auto"),
        ("radii: [1, far]", "radii is [1, 'far']: give px from 0 on, metres such as 1500m, or full"),
        ("arch: utae", "arch is 'utae', but should be one of utae_t5, unet_t5, unet_t1; did you mean utae_t5?"),
        ("year: some", "year is 'some': give a year, all, or none"),
        ("threshold: 1.5", "threshold is 1.5, but should be at most 1"),
        ("threshold: even", "threshold is 'even': give a number from 0 to 1, or balanced"),
        ("miss: [0.1, 0.1]", "miss is [0.1, 0.1]: name one share at least, and each once"),
        ("miss: [0.1, 1]", "miss is [0.1, 1]: give shares above 0 and below 1"),
        ("layer: [elevation]", "layer is ['elevation']: write each as NAME=FILE"),
        ("layer: [a=b, a=c]", "layer is ['a=b', 'a=c']: name each channel once"),
        ('data: "a\\0b"', "data is 'a\\x00b': it holds a NUL, which nothing can be called"),
        ('study: "a\\0b"', "study is 'a\\x00b': it holds a NUL, which nothing can be called"),
        ('results: ["a\\ud800"]', "results is ['a\\ud800']: it holds half a character, which nothing can be called"),
        (f"out: {'x' * 256}", f"out is '{'x' * 199}…: a name in it is longer than 255 bytes"),
        ("member_lr: 1e-3", "member_lr is '1e-3', but should be a number; write 0.001 for 1e-3"),
    ],
)
def test_a_wrong_file_is_one_line_with_file_key_value_and_remedy(written, text: str, wrong: str):
    file = written(text)
    assert sentence(file) == f"{file}: {wrong}"


def test_files_that_are_no_configuration(written, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    assert sentence(written("- 1\n")) == f"{tmp_path}/mine.yaml: should hold `key: value` lines, but holds list"
    assert sentence(written("a: [1\nb: 2")).startswith(f"{tmp_path}/mine.yaml, line 2: not valid YAML (")
    monkeypatch.chdir(EXPERIMENTS.parent)
    assert sentence(Path("experiments/dem.yaml")).startswith(
        "experiments/dem.yaml: no such file; there are experiments/"
    )
    assert resolve(written("")).config == Config()


def test_flags_are_read_as_yaml_would_be():
    config = resolve(None, {"years": ["2018,2019"], "geotiff": "true", "features": ["all"], "data": "none"}).config
    assert (config.years, config.geotiff, config.features, config.data) == ((2018, 2019), True, "all", None)
    assert resolve(None, {"years": ["2018 2019"]}).config.years == (2018, 2019)
    assert resolve(None, {"features": ["0", "39"]}).config.features == (0, 39)
    assert resolve(None, {"data": "123"}).config.data == Path("123")
    assert sentence(seed="x") == "--seed: seed is 'x', but should be a whole number"


def test_a_key_that_is_there_twice_is_an_error(written):
    file = written("seed: 1\ncrop: 64\nseed: 2\n")
    assert sentence(file) == f"{file}, line 3: not valid YAML (`seed` is there twice)"


def test_a_study_that_names_nothing_is_the_demo():
    demo = resolve(EXPERIMENTS / "demo.yaml").config
    assert resolve(None, {"seed": "0"}, demo=True).config == demo
    assert resolve(None, {}, demo=True).origins["crop"] == "demo"
    for flags in ({"data": "somewhere"}, {"predictions": ["some.npz"]}):
        assert resolve(None, flags, demo=True).config.crop == 128
    assert resolve(EXPERIMENTS / "paper.yaml", {}, demo=True).config.width == 1
    assert resolve(None, {}).config.crop == 128


def test_what_is_shown_reads_back_as_the_same_configuration(written):
    resolved = resolve(written("features: [1, 2]\ndata: some/folder\n"), {"geotiff": "true"})
    shown = to_yaml(resolved)
    assert resolve(written(shown)).config == resolved.config
    assert "seed: 0" in shown and "# default" in shown and "# --geotiff" in shown


def test_every_field_has_a_meaning_and_a_default_of_its_type():
    for key, field in fields().items():
        assert len(option_of(key).meaning) > 10, key
        assert "(default: " in help_text(key)
        assert not isinstance(field.default, float) or math.isfinite(field.default)
    assert resolve(None, {}).config == Config()


STUDIES = sorted(path for path in EXPERIMENTS.glob("*.yaml") if not path.name.startswith("search_"))


@pytest.mark.parametrize("file", STUDIES, ids=lambda p: p.name)
def test_experiments_resolve_start_with_their_command_and_state_only_differences(file: Path):
    resolve(file)
    assert file.read_text().startswith(("# mlflow run . ", "# fcer "))
    if file.name != "paper.yaml":  # which states the paper's setting, default or not
        for key, value in yaml.safe_load(file.read_text()).items():
            default = fields()[key].default
            assert value != (list(default) if isinstance(default, tuple) else default), f"{key} is the default"


def test_names_that_look_like_numbers_stay_names():
    ids = ["0123", "12e456", "true"]
    assert resolve(None, {"runs": ids}).config.runs == tuple(ids)
    assert resolve(None, {"runs": "0123,12e456"}).config.runs == ("0123", "12e456")


def test_methods_are_known_and_each_named_once():
    assert resolve(None, {"methods": ["student", "tta"]}).config.methods == ("student", "tta")
    assert "there is no method studnet; choose among student, ensemble" in sentence(methods="studnet")
    assert "name one method at least, and each once" in sentence(methods="student student")


def test_no_list_at_all():
    file = EXPERIMENTS / "demo.yaml"
    assert resolve(file, {"head_hidden": "none"}).config.head_hidden == ()
    assert resolve(None, {"head_hidden": ["8", "4"]}).config.head_hidden == (8, 4)
    assert resolve(file, {"years": "none"}).config.years is None


PASSWORD = "s3cret"
ADDRESSES = [
    "postgresql://me:s3cret@host:5432/db",
    "postgresql://me:p@s3cret@host:5432/db",
    "postgresql://me@firm:s3cret@host/db",
    "postgresql://:s3cret@[::1]:5432/db",
    "postgresql://me:s3cret/half@host/db",
    "postgresql://me@host/db?password=s3cret&sslmode=require",
    "postgresql://me@host/db?sslmode=require&sslPassword=s3cret",
    "https://host/path?access_token=s3cret#part",
]


@pytest.mark.parametrize("address", ADDRESSES)
def test_passwords_are_never_shown(address: str):
    """Neither printed, nor logged with the configuration or the settings, nor repeated by an error."""
    shown = masked(address)
    assert PASSWORD not in shown and "***" in shown and shown == masked(shown)
    config = Config(storage=address, model=address, runs=(address,))
    assert PASSWORD not in to_yaml(Resolved(config, dict.fromkeys(fields(), "default")))
    assert PASSWORD not in str(recorded(config, fields()))
    for key in ("seed", "arch", "methods", "year", "data", "results"):
        assert PASSWORD not in sentence(**{key: address})
    assert sentence(data=address).endswith(": an address, where a file or folder here is needed")


@pytest.mark.parametrize("address", ["http://[::1", "postgresql://u:s3cret@[::1", "tcp://[::1:8786", "http://h:port/x"])
def test_addresses_that_cannot_be_taken_apart(address: str):
    for key in ("cluster",) if address.startswith("tcp") else ("storage", "model"):
        said = sentence(**{key: address})
        assert said.startswith(f"--{key}: {key} is '") and PASSWORD not in said and "address" in said


@pytest.mark.parametrize("text", ["models:/fcer-student@champion", "sqlite:///a@b.db", "tcp://scheduler:8786", "a:b@c"])
def test_what_holds_no_password_is_shown_as_it_is(text: str):
    assert masked(text) == text


def test_the_settings_of_forecasts_and_detections(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    Path("my dem.tif").write_text("")
    flags = {"year": "none", "threshold": "balanced", "split": "fires", "features": ["fire"], "miss": ["0.1,0.3"]}
    flags |= {"layer": ["elevation=my dem.tif", "ndvi=n_{date}.tif"], "detections": ["a.csv b.json"]}
    config = resolve(None, flags).config
    assert (config.year, config.threshold, config.split, config.features) == ("none", "balanced", "fires", "fire")
    assert (config.miss, config.layer) == ((0.1, 0.3), ("elevation=my dem.tif", "ndvi=n_{date}.tif"))
    assert config.detections == (Path("a.csv"), Path("b.json"))
    assert resolve(None, {"threshold": "0.3"}).config.threshold == 0.3
    assert feature_indices("fire") == (38, 39) and Config().select_by == "val_lift"
    assert resolve(None, {"detections": ["a.csv"]}, demo=True).config.crop == 128
