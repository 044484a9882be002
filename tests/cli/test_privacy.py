"""What a run gives away: an anonymous report names nobody, and files can be read by whom the umask lets."""

import os

import pytest

from conftest import TINY, command, patched, two_kinds, write_csv


@pytest.fixture(scope="module")
def anonymous(tmp_path_factory, every_part):
    """A run folder made under a umask that shuts out others, with a warning that names a series."""
    folder = tmp_path_factory.mktemp("private")
    rows, labels = two_kinds(24)
    write_csv(folder / "stars.csv", "star,day,band,flux", [rows[1], rows[0], *rows[2:]])  # not in order of time
    write_csv(folder / "kinds.csv", "star,seen,weight", [(name, 17000 + i, i**1.5) for i, name in enumerate(labels)])
    columns = ["--id", "star", "--time", "day", "--channel", "band", "--values", "flux"]
    options = [
        "--anonymous",
        "--labels",
        folder / "kinds.csv",
        "--label",
        "weight",
        "--split-by",
        "seen",
        "--predictor",
        "model",
    ]
    before = os.umask(0o027)
    try:
        with patched(every_part):
            assert command("fit", folder / "stars.csv", "--out", folder / "run", *columns, *options, *TINY) == 0
        assert command("embed", folder / "run", folder / "stars.csv", "--out", folder / "run/e.csv") == 0
    finally:
        os.umask(before)
    return folder / "run"


def test_an_anonymous_report_names_no_series_and_shows_no_value(anonymous):
    page = (anonymous / "report.html").read_text()
    assert "star 0" not in page and "star 1" not in page
    assert 'id="series"' not in page and 'id="regression"' not in page and 'id="bands"' in page
    assert "This page is anonymous" in page and "1 warnings, which metrics.json has" in page
    assert "the latest held out" in page and "from 17000" not in page
    assert "star 0" in (anonymous / "metrics.json").read_text()  # the tables beside it hold the ids


def test_a_report_says_what_data_it_holds(fitted):
    page = (fitted / "run/report.html").read_text()
    assert "This page holds your data: ids and observed values of some of the 24 series" in page
    assert "--anonymous" in page and "star 0" in page and 'id="series"' in page


def test_files_obey_the_umask(anonymous):
    files = [path for path in anonymous.rglob("*") if path.is_file()]
    wrong = {str(path.relative_to(anonymous)): oct(path.stat().st_mode & 0o777) for path in files}
    wrong = {name: mode for name, mode in wrong.items() if mode != "0o640"}
    assert len(files) > 15 and not wrong
    folders = {path.stat().st_mode & 0o777 for path in (anonymous, *anonymous.rglob("*")) if path.is_dir()}
    assert folders == {0o750}
