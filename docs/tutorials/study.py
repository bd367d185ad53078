"""A study from Python.

The whole path of the paper, from data to a table, in one object: `Study`. A step that another one needs is done first,
and a step that was done before, from the same inputs, is not done again. This page trains an ensemble of two tiny
networks on four tiny synthetic years, distils a student and evaluates both. Its numbers mean nothing; a real study
differs only in its settings.
"""

from fcer import Study, configure
from fcer.core import PIXEL_METRES

# %%
# ## Settings
#
# `configure` takes the [settings](../reference/settings.md) by name, checks each, and fills in the defaults. A YAML
# file can come first: `configure(Path("experiments/paper.yaml"), data="data/wsts", year=2021)`.

settings = configure(
    year=2021,
    methods=("student", "ensemble", "entropy"),
    members=2,
    arch="unet_t1",
    width=0.0625,
    crop=32,
    image_size=(34, 48),
    fire_days=(8, 8),
    fires_per_year=3,
    member_epochs=2,
    member_batch_size=4,
    head_epochs=3,
    bootstrap=100,
    workers=1,
    work="study",
)
study = Study(settings)

# %%
# ## Steps
#
# Ask for what you want. Asking for the evaluation alone would do everything; here the steps are asked for one by one.
# First the data: without the setting `data`, synthetic fires are made.

data = study.data()
print(f"{len(data.fires([2021]))} fires to test on")

# %%
# Members are trained on the years that the test year's folds allow ([folds and leakage](../understand/folds.md)).

ensemble = study.ensemble(2021)

# %%
# The student: one member's backbone and a small head that has learnt how much the members disagree.

student = study.student(2021)
print(f"validated on {student.info.val_years}")

# %%
# ## Evaluation
#
# FCER on the test year's predicted maps. The files that `fcer evaluate` would write are in the folder `results`.

results = study.evaluation()
print(results.summary())
print(f"AUROC of the student within {results.settings.anchor_px * PIXEL_METRES / 1000:g} km of fire, by year:")
print(results.anchor.query("method == 'student'")[["year", "auroc", "auprc", "n_pixels"]].to_string(index=False))

# %%
# `study.report()` writes the HTML page of `fcer report`. Nothing was logged: `Study(settings, log=...)` takes a run of
# MLflow, which is what the command line gives it.
