"""What methods cost stands against what they are worth."""

import pandas as pd
import pytest

from fcer.errors import PredictionsError
from fcer.evaluation import evaluate
from fcer.report.costs import cost_figure, read_costs
from fcer.report.style import looks
from fcer.runtime.sealed_text import write_sealed_csv
from report_cases import some_maps

COSTS = pd.DataFrame(
    {
        "method": ["student", "ensemble"],
        "passes": [1, 3],
        "ms_per_sample": [4.0, 12.0],
        "parameters": [1000, 3000],
        "train_seconds": [31.0, 30.0],
    }
)


def test_a_point_for_each_method_in_both_plots(tmp_path):
    results = evaluate([some_maps(2018), some_maps(2019)], bootstrap=0, progress=None)
    zones = pd.DataFrame(
        {
            "method": ["student", "ensemble"] * 2,
            "nominal_miss": [0.05, 0.05, 0.1, 0.1],
            "area_km2": [float("nan"), 9.0, 5.0, 7.0],
        }
    )
    COSTS.to_csv(tmp_path / "costs.csv", index=False)
    costs = read_costs([tmp_path / "none", tmp_path])
    figure = cost_figure(costs, results, zones, looks(results.settings.methods))
    shown = figure.data.set_index("method")
    expected = results.anchor.groupby("method")["auroc_within"].mean()
    for method in ("student", "ensemble"):
        assert shown.loc[method, "auroc_within"] == pytest.approx(expected[method])
    assert shown["area_km2"].to_dict() == {"student": 5.0, "ensemble": 7.0}, "of the miss that both guarantee"
    assert [len(plot.data) for plot in figure.panels.values()] == [2, 2]
    assert [trace.x[0] for trace in figure.panels["cost_auroc_within"].data] == [4.0, 12.0]
    assert list(cost_figure(costs, results, None, looks(results.settings.methods)).panels) == ["cost_auroc_within"]
    assert read_costs([tmp_path / "none"]) is None
    write_sealed_csv(tmp_path / "costs.csv", COSTS)
    assert read_costs([tmp_path]).equals(costs)
    text = (tmp_path / "costs.csv").read_text()
    for damaged in ("", "method\n", text.replace("student", "studens"), text.replace(",", ";"), "a,b\n1\n2,3,4,5\n"):
        (tmp_path / "costs.csv").write_text(damaged)
        with pytest.raises(PredictionsError, match=r"costs\.csv: no table of costs .*; remove it"):
            read_costs([tmp_path])
