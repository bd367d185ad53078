"""Imports point one way, and nothing heavy is imported before it is needed."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).parent.parent / "src" / "fcer"
LAYERS = [
    {"errors"},
    {"core"},
    {"runtime"},
    {"config"},
    {"data"},
    {"maps"},
    {"evaluation"},
    {"report"},
    {"models"},
    {"uncertainty"},
    {"training"},
    {"deploy"},
    {"verification"},
    {"pipeline"},
    {"tracking"},
    {"registry"},
    {"search"},
    {"commands"},
    {"cli"},
    {"__main__"},
]
"""Each layer may import those before it, and modules of its own package."""

ONLY_IMPORTER = {
    "mlflow": ["tracking", "registry"],
    "optuna": ["search"],
    "torch": ["models", "uncertainty", "training", "tracking"],
    "h5py": ["data", "maps"],
    "distributed": ["runtime"],
    "dask": ["runtime"],
}
HEAVY = ("torch", "mlflow", "optuna", "plotly", "pandas", "sklearn", "scipy", "h5py", "rasterio", "yaml")


def imports(path: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            found.add(str(node.module))
            if node.module == "fcer":  # `from fcer import cli` imports fcer.cli
                found |= {f"fcer.{alias.name}" for alias in node.names if not alias.name.startswith("__")}
    return found


def part(path: Path) -> str:
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


MODULES = sorted(path for path in SOURCE.rglob("*.py") if path != SOURCE / "__init__.py")


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(SOURCE)))
def test_imports_point_down(path: Path):
    mine = part(path)
    rank = next(k for k, layer in enumerate(LAYERS) if mine in layer)
    for name in imports(path):
        if name.startswith("fcer."):
            other = name.split(".")[1]
            below = next(k for k, layer in enumerate(LAYERS) if other in layer)
            assert other == mine or below < rank, f"{path.name} imports {name}"


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(SOURCE)))
def test_packages_have_one_home(path: Path):
    for name in imports(path):
        homes = ONLY_IMPORTER.get(name.split(".")[0])
        assert homes is None or part(path) in homes, f"{path.name} imports {name}"


@pytest.mark.parametrize("path", sorted((SOURCE / "core").glob("*.py")), ids=lambda p: p.name)
def test_core_needs_numpy_and_scipy_alone(path: Path):
    allowed = {"fcer", "numpy", "scipy", *sys.stdlib_module_names}
    assert {name.split(".")[0] for name in imports(path)} <= allowed


def modules_after(code: str) -> set[str]:
    call = f"{code}\nimport sys; print(*sys.modules, file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", call], capture_output=True, text=True, check=True)
    return set(done.stderr.split())


def loaded_by(code: str) -> set[str]:
    return {name.split(".")[0] for name in modules_after(code)}


@pytest.mark.parametrize(
    "code",
    ["import fcer", "import fcer.cli", "from fcer.cli import main\ntry: main(['--help'])\nexcept SystemExit: pass"],
)
def test_nothing_heavy_is_imported_early(code: str):
    assert not loaded_by(code) & {*HEAVY, "numpy", "tqdm"}


def test_reading_data_needs_no_torch_or_mlflow():
    assert not loaded_by("import fcer.data.dataset, fcer.data.synthetic.fires") & {
        "torch",
        "mlflow",
        "pandas",
        "sklearn",
    }


def test_a_forecast_imports_no_trainer_and_little_else():
    ours = [name for name in modules_after("import fcer.cli, fcer.commands.predict") if name.startswith("fcer.")]
    others = {"evaluation", "report", "uncertainty", "training", "search", "detections"}
    assert not [name for name in ours if others & set(name.split("."))]
    assert len(ours) <= 112, "what an agency's engineer reads: every module more is one to read"


def test_no_two_test_files_share_a_name():
    """pytest imports each by its name alone, and one would hide the other."""
    names = [path.name for path in Path(__file__).parent.rglob("test_*.py")]
    assert len(names) == len(set(names)), sorted(name for name in set(names) if names.count(name) > 1)
