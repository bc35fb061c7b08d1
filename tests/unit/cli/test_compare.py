"""`wevent compare`, as people and programs call it."""

import json

import duckdb
import pytest
from click.testing import CliRunner

from wevent import mechanisms
from wevent.cli import main
from wevent.cli.group import cli
from wevent.publisher.catalogue import SIMULATED_ONLY

pytestmark = pytest.mark.slow

SMALL = ["compare", "--users", "200", "--slots", "60", "--windows", "4,8", "--repeats", "3"]


def run(*arguments):
    result = CliRunner().invoke(cli, [*SMALL, *arguments], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result


def test_json_is_ranked_and_the_same_for_a_seed_whatever_the_processes():
    def answer(*options):
        found = json.loads(run("--mechanisms", "bd,bd:std,ba,pbd,pba", "--json", *options).stdout)
        assert all(row.pop("ms_per_slot") > 0 for row in found["mechanisms"])
        return found

    first = answer()
    rows = first["mechanisms"]
    assert (first["stream"], first["repeats"], first["users"], first["slots"]) == ("sin", 3, 200, 60)
    assert sum("times the error of" in sentence for sentence in first["findings"]) == 4
    assert {row["mechanism"] for row in rows} == {"bd", "bd:std", "ba", "pbd", "pba"}
    assert [row["amre"] for row in rows] == sorted(row["amre"] for row in rows)
    for row in rows:
        assert row["amre_low"] < row["amre"] < row["amre_high"]
        assert 0 < row["worst_window_share"] <= 1
        assert row["amre_std"] > 0
    assert answer("--jobs", "2") == first
    assert answer("--seed", "2") != first


def test_every_mechanism_takes_part_by_default_and_the_table_names_noise():
    output = run().stdout
    for name in (*mechanisms(), *SIMULATED_ONLY):
        assert name in output
    assert "noise" in output
    assert output.count("times the error of") == len(mechanisms()) + len(SIMULATED_ONLY) - 1


def test_options_of_the_publisher_and_assignments_change_the_figures():
    def error(*options):
        printed = run("--json", "--mechanisms", "pbd", "--users", "20", "--repeats", "1", *options).stdout
        return json.loads(printed)["mechanisms"][0]["amre"]

    several = (
        ["--neighbours", "replace", "--known-total", "20"],
        ["--max-cells-per-user", "2"],
        ["--refund"],
        ["--estimator", "weighting"],
        ["--smoothing", "filter", "--round"],
        ["--assign", "ratio:0.5"],
    )
    assert len({error(), *(error(*flags) for flags in several)}) == 1 + len(several)


def test_mechanisms_that_do_not_take_an_option_are_named():
    result = run("--class-weights", "equal", "--json", "--repeats", "1")
    assert [row["mechanism"] for row in json.loads(result.stdout)["mechanisms"]] == ["pft"]
    shown = run("--threshold", "std", "--repeats", "1").stderr
    assert "Left out: pbd. Option threshold does not apply to pbd." in shown
    assert "Left out: spas, rescuedp, fast, pegasus, adapub. A baseline takes no options" in shown


def test_an_own_file_with_requirements_a_plot_and_errors_per_slot(tmp_path):
    events, wanted = tmp_path / "events.csv", tmp_path / "wanted.csv"
    rows = [f"{slot},u{user},{'ab'[(slot + user) % 2]}\n" for slot in range(1, 31) for user in range(20)]
    events.write_text("slot,user,cell\n" + "".join(rows))
    wanted.write_text("user,window,epsilon\n" + "".join(f"u{user},5,1.0\n" for user in range(20)))
    plot, per_slot = tmp_path / "out" / "plot.png", tmp_path / "errors.parquet"
    source = ["compare", "--stream", f"file:{events}", "--assign", f"csv:{wanted}", "--mechanisms", "pba,sample"]
    targets = ["--repeats", "2", "--plot", str(plot), "--per-slot", str(per_slot), "--json"]
    result = CliRunner().invoke(cli, [*source, *targets], catch_exceptions=False)
    answer = json.loads(result.stdout)
    assert (answer["stream"], answer["plot"], answer["per_slot"]) == ("file:events.csv", str(plot), str(per_slot))
    assert plot.read_bytes().startswith(b"\x89PNG")
    table = duckdb.sql(f"SELECT mechanism, repeat, count(*), avg(squared_error) FROM '{per_slot}' GROUP BY ALL")
    found = table.fetchall()
    assert sorted(row[:3] for row in found) == [("pba", 1, 30), ("pba", 2, 30), ("sample", 1, 30), ("sample", 2, 30)]
    amre = {row["mechanism"]: row["amre"] for row in answer["mechanisms"]}
    assert sum(row[3] for row in found if row[0] == "pba") / 2 == pytest.approx(amre["pba"])


def test_errors_per_slot_are_csv_if_the_name_says_so(tmp_path):
    path = tmp_path / "errors.csv"
    printed = run("--mechanisms", "sample", "--repeats", "1", "--per-slot", str(path)).stdout
    assert "One repeat cannot tell differences from chance" in printed
    header, first, *_ = path.read_text().splitlines()
    assert header.startswith("stream,mechanism,repeat,slot,fresh,squared_error")
    assert first.split(",")[1:4] == ["sample", "1", "1"]
    assert not list(tmp_path.glob("*.part"))


def test_mistakes_end_in_one_sentence_and_exit_code_2(capsys):
    for arguments, message in (
        (["--mechanisms", "pdb"], "Did you mean"),
        (["--mechanisms", "pbd:std"], "threshold does not apply to pbd"),
        (["--mechanisms", "pgeasus"], "Did you mean 'pegasus'?"),
        (["--mechanisms", "fast", "--refund"], "takes no options"),
        (["--mechanisms", "pbd:sdt"], "for example bd:std"),
        (["--mechanisms", "lbu,pbd", "--refund"], "refund does not apply to lbu"),
        (["--max-cells-per-user", "3"], "at most 2"),
        (["--known-total", "200"], "known_total needs neighbours"),
        (["--stream", "cosine"], "file:PATH"),
        (["--stream", "taxi", "--data", "nowhere"], "wevent ships no data"),
        (["--windows", "4,x"], "40,80,120"),
        (["--epsilons", "0"], "Epsilon must be greater than 0"),
        (["--slot-length", "soon"], "5m"),
        (["--per-slot", "errors.txt"], "ending in .parquet, .csv"),
    ):
        with pytest.raises(SystemExit) as ended:
            main([*SMALL, *arguments])
        assert ended.value.code == 2
        assert message in capsys.readouterr().err
