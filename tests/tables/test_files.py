"""Tables as people have them: each is read right, or refused with the cause."""

import bz2
import gzip
import io
import json
import re
import sys
import types
from dataclasses import replace
from datetime import date
from datetime import time as clock
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest

from conftest import refuses
from rotarymae.errors import InputWarning
from rotarymae.series import SeriesDataset, as_dates, parse_time
from rotarymae.series.dates import times as times_of
from rotarymae.tables import TableReader, TableSchema, align_labels, open_source, propose, read, stem
from rotarymae.tables import source as source_file

ROWS = [("a", 0.5, 1.25), ("a", 1.5, -2.5), ("b", 0.25, 3.0)]
CSV = "id,time,value\n" + "".join(f"{i},{t},{v}\n" for i, t, v in ROWS)
ROWS_ALONE = CSV.split("\n", 1)[1]
DATES = CSV.replace("0.5", "2024-03-31").replace("1.5", "2024-04-01").replace("0.25", "2024-04-02")


def columns(**changes):
    ids, times, values = (list(column) for column in zip(*ROWS, strict=True))
    return {"id": ids, "time": times, "value": values} | changes


def parquet(path, table):
    pyarrow.parquet.write_table(pa.table(table), path)


def zstandard(path):
    with pa.output_stream(str(path), compression="zstd") as file:
        file.write(CSV.encode())


LISTS = {"id": ["a", "b"], "time": [[0.5, 1.5], [0.25]], "value": [[1.25, -2.5], [3.0]]}
GERMAN = CSV.replace(",", ";").replace(".", ",")
EVERY_LINE = CSV.replace("\n", "\r\n")


def one_series(data):
    return data.ids.tolist() == ["only a"]


TWELVE = "".join(f"{'ab'[k // 6]},{k}.25,{3 - k}\n" for k in range(12))
NAMELESS = {"id": "column 1", "time": "column 2", "values": ["column 3"], "check": lambda data: len(data.times) == 12}
PREAMBLES = {  # without names of columns
    "rows as long": "made,on,today\nsite,name,X\nsite,code,Y\nunits,time,d\nunits,value,mJy\nof,day,night\n"
    "data,first,2019-10-01\n" + TWELVE,
    "shorter rows": "Device,X\nUnits,mJy\nSex,female\n\n\n" + TWELVE,
    "names of several words": "a list of stars\n\n  star  time (d)  value err\n     -   ''  ''\n   (UTC)\n\n"
    + TWELVE.replace(",", "   "),
}


# name → (file name, content or writer, options, what is noted)
READ: Any = {
    "comma": ("t.csv", CSV, {}, ""),
    "blanks after commas": ("t.csv", CSV.replace(",", ", "), {}, ""),
    "columns aligned by blanks": ("t.dat", CSV.replace(",", "   "), {}, "separated by blanks"),
    "decimal commas in quotes": (
        "t.csv",
        re.sub(r"([^,\n]*\.[^,\n]*)", r'"\1"', CSV).replace(".", ","),
        {},
        "decimal commas",
    ),
    "text among numbers": ("t.csv", CSV + "b,1,high\n", {}, "1 of 4 rows dropped: 'value' is missing in 1"),
    "a thousand among numbers": (
        "t.csv",
        CSV + 'b,9,"1,234.5"\n',
        {"check": lambda d: d.values[-1, 0] == 1234.5},
        "commas between thousands",
    ),
    "one ragged row": ("t.csv", CSV + "b,1\n", {}, "1 of 4 rows dropped"),
    "a row of units": ("t.csv", CSV.replace("value\n", "value\n,d,mJy\n"), {}, "a row of units below it (d, mJy)"),
    "a first row of words": ("t.csv", CSV.replace("ue\n", "ue\nc,,high\n"), {}, "1 of 4 rows dropped"),
    "a first row of words, and its id": ("t.csv", CSV.replace("ue\n", "ue\na,now,high\n"), {}, "1 of 4 rows dropped"),
    "a preamble": ("t.csv", "Observatory of X\nmade: today\n\n" + CSV, {}, "the header is line 4"),
    "a preamble with as many separators": (
        "t.csv",
        "Report of X;;\nmade on;03.02.2024;\n;;\n" + GERMAN.replace("value\n", "value\n;[d];\n"),
        {},
        "the header is line 4, a row of units below it ([d])",
    ),
    "quoted decimals that could be thousands": (
        "t.csv",
        'id,time,value\na,"0,5","1,250"\na,"1,5","-2,500"\nb,"0,25","3,000"\n',
        {},
        "decimal commas",
    ),
    **{
        f"no header below a preamble, {kind}": (
            f"t.{'txt' if ' ' in kind[:5] else 'csv'}",
            text,
            NAMELESS,
            "no line names",
        )
        for kind, text in PREAMBLES.items()
    },
    "a header below lines as long as it": (
        "t.txt",
        "Contributor: Centre, Liverpool\nDatum: the data are those of a chart\nParameter: a long text of the sea\n"
        "  id  time  value\n no yyyy mm dd f\n" + TWELVE.replace(",", "   "),
        {"check": lambda data: len(data.times) == 12},
        "the header is line 4",
    ),
    "ids that begin with digits only far below the header": (
        "t.csv",
        CSV.split("\n")[0] + "".join(f"\n{'ABC'[k // 9]},{k},0.5" for k in range(27)) + "\n3M,27,0.5" * 9,
        {"check": lambda data: data.ids.tolist() == ["A", "B", "C", "3M"] and data.lengths.tolist() == [9, 9, 9, 1]},
        "duplicates merged",
    ),
    "a bar behind each line above the rows": (
        "t.min",
        " Format   one |\n Code     B    |\nid   time value      |\n" + TWELVE.replace(",", "   "),
        {"check": lambda data: len(data.times) == 12},
        "the header is line 3",
    ),
    "a header with a star": (
        "t.pos",
        "A series of positions\nid    of a star\nEnd of all fields\n*id time value\n" + TWELVE.replace(",", " "),
        {"check": lambda data: len(data.times) == 12},
        "the header is line 4",
    ),
    "a header row that is told": ("t.csv", "a,b,c\n" + CSV, {"header_row": 2}, "the header is line 2"),
    "windows lines": ("t.csv", EVERY_LINE, {}, ""),
    "quoted": ("t.csv", '"id","time","value"\n' + CSV.split("\n", 1)[1], {}, ""),
    "semicolon": ("t.csv", CSV.replace(",", ";"), {}, "separated by ';'"),
    "semicolon and decimal comma": ("t.csv", GERMAN, {}, "separated by ';', decimal commas"),
    "tab and decimal comma": ("t.tsv", GERMAN.replace(";", "\t"), {}, "decimal commas"),
    "tabs in a csv": ("t.csv", CSV.replace(",", "\t"), {}, "separated by tabs"),
    "tabs": ("t.tsv", CSV.replace(",", "\t"), {}, ""),
    "commas in a tsv": ("t.tsv", CSV, {}, "separated by ','"),
    "bar": ("t.csv", CSV.replace(",", "|"), {}, "separated by '|'"),
    "txt": ("t.txt", CSV.replace(",", "\t"), {}, "separated by tabs"),
    "dat": ("t.dat", CSV, {}, ""),
    "capitals": ("T.CSV", CSV, {}, ""),
    "bom": ("t.csv", CSV.encode("utf-8-sig"), {}, ""),
    "utf-16": ("t.csv", CSV.encode("utf-16"), {}, "UTF-16"),
    "utf-16 with semicolons": ("t.csv", GERMAN.encode("utf-16"), {}, "UTF-16"),
    "latin-1": ("t.csv", CSV.replace("value", "v°").encode("latin-1"), {"values": ["v°"]}, "Latin-1"),
    "Windows": ("t.csv", CSV.replace("value", "v€").encode("cp1252"), {"values": ["v€"]}, "Latin-1"),
    "Japanese": ("t.csv", CSV.replace("value", "気温(℃)").encode("cp932"), {"values": ["気温(℃)"]}, "read as CP932"),
    "Korean": ("t.csv", CSV.replace("value", "기온(°C)").encode("cp949"), {"values": ["기온(°C)"]}, "read as EUC_KR"),
    "Chinese": ("t.csv", CSV.replace("value", "气温").encode("gb18030"), {"values": ["气温"]}, "read as GB2312"),
    "Russian": ("t.csv", CSV.replace("value", "Дебит").encode("cp1251"), {"values": ["Дебит"]}, "read as CP1251"),
    "comments with a word of their own": (
        "t.txt",
        "HDR trend -273.4\nHDR\nHDR id (name) mass\n"
        + ROWS_ALONE.replace("a,", "1,").replace("b,", "2,").replace(",", " "),
        {"id": "column 1", "time": "column 2", "values": ["column 3"], "check": lambda data: len(data.times) == 3},
        "no line names the columns",
    ),
    "Latin-1 in pairs": ("t.csv", CSV.replace("value", "Größe").encode("latin-1"), {"values": ["Größe"]}, "Latin"),
    "names in several lines, which tell columns apart together": (
        "t.csv",
        CSV.replace("id,", "z6,Port 1,Port 1\nid,"),
        {"id": "z6 id", "time": "Port 1 time", "values": ["Port 1 value"]},
        "",
    ),
    "latin-1, late": ("t.csv", CSV.encode() + b"c" * 70_000 + b"\xe9,1,1\n", {"check": lambda d: len(d) == 3}, ""),
    "utf-8 cut in a letter": (
        "t.csv",
        CSV + "é,1,2\n" * 10_000,
        {"duplicates": "first", "check": lambda d: len(d) == 3},
        "",
    ),
    "gzip": ("t.csv.gz", gzip.compress(CSV.encode()), {}, ""),
    "bzip2": ("t.csv.bz2", bz2.compress(GERMAN.encode()), {}, "decimal commas"),
    "own word for missing": (
        "t.csv",
        CSV + "b,9,--\n",
        {"na": ["--"]},
        "1 of 4 rows dropped: 'value' is missing in 1",
    ),
    "usual words for missing": ("t.csv", CSV + "b,9,NA\nb,8,nan\nb,7,n/a\nb,6,\n", {}, "4 of 7 rows dropped"),
    "parquet": ("t.parquet", lambda path: parquet(path, columns()), {}, ""),
    "feather": ("t.feather", lambda path: pyarrow.feather.write_feather(pa.table(columns()), path), {}, ""),
    "lists": ("t.parquet", lambda path: parquet(path, LISTS), {}, "none of 3 rows dropped"),
    "lists, one empty": (
        "t.parquet",
        lambda path: parquet(path, {name: [*column, "c" if name == "id" else []] for name, column in LISTS.items()}),
        {},
        "1 series without observations left out",
    ),
    "json lines": ("t.jsonl", "\n".join(json.dumps(dict(zip(columns(), row, strict=True))) for row in ROWS), {}, ""),
    "json records": ("t.json", json.dumps([dict(zip(columns(), row, strict=True)) for row in ROWS]), {}, ""),
    "json columns": ("t.json", json.dumps(columns()), {}, ""),
    "json rows": ("t.json", json.dumps([[*columns()], *ROWS]), {}, ""),
    "json rows of texts": ("t.json", json.dumps([[*columns()], *([*map(str, row)] for row in ROWS)]), {}, ""),
    "json names and rows": ("t.json", json.dumps({"source": "x", "columns": [*columns()], "data": ROWS}), {}, ""),
    "json fields and rows": (
        "t.json",
        json.dumps({"result": {"rows": ROWS, "fields": [{"id": name, "type": "text"} for name in columns()]}}),
        {},
        "",
    ),
    "json of pandas, split": (
        "t.json",
        json.dumps({"columns": ["time", "value"], "index": columns()["id"], "data": [row[1:] for row in ROWS]}),
        {"id": "index"},
        "",
    ),
    "zstandard": ("t.csv.zst", zstandard, {}, ""),
    "comments": ("t.csv", "# made today\n#\n# units: d, mJy\n" + CSV, {}, "the header is line 4"),
    "comments in utf-16": ("t.csv", ("# made in Köln\n" + GERMAN).encode("utf-16"), {}, "the header is line 2"),
    "a header with a hash": ("t.csv", f"# made today\n#{CSV}", {}, "the header is line 2"),
    "a header with a hash and a blank": ("t.txt", "# " + CSV.replace(",", " "), {}, "separated by blanks"),
    "units below a header, both with a hash": (
        "t.csv",
        f"#{CSV}".replace("\n", "\n#-,d,d\n", 1),
        {},
        "a row of units below it (d, d)",
    ),
    "units that repeat the names of columns without one": (
        "t.csv",
        GERMAN.replace("value\n", "value\nid;time;1/µs\n").encode("cp1252"),
        {},
        "a row of units below it (1/µs)",
    ),
    "units of texts, too, and a row of statistics": (
        "t.csv",
        CSV.replace("value\n", "value\nname,d,mJy\n,Smp,Avg\n"),
        {},
        "a row of units below it (name, d, mJy)",
    ),
    "names and units with a hash, none of which repeats": (
        "t.txt",
        CSV.replace(",", " ").replace("id", "#id").replace("\n", "\n#no d m/s\n", 1),
        {},
        "a row of units below it (no, d, m/s)",
    ),
    "IPAC": (
        "t.tbl",
        '\\STAR = "OGLE 235"\n|id  | time|value|\n|char| real| real|\n|    |    d|  mag|\n'
        + ROWS_ALONE.replace(",", "  "),
        {},
        "a row of units below it (d, mag)",
    ),
    "lines below the names": (
        "t.txt",
        CSV.replace(",", "|").replace("e\n", "e\n--|--|--\n", 1),
        {},
        "separated by '|'",
    ),
    "comments, and ids with a hash": (
        "t.csv",
        "# one\n" + CSV.replace("\na,", "\n#a,").replace("\nb,", "\n#b,"),
        {"check": lambda data: data.ids.tolist() == ["#a", "#b"]},
        "none of 3 rows",
    ),
    "numbers above the names": ("t.txt", "1 2 3\n" + CSV.replace(",", " "), {}, "the header is line 2"),
    "a header row far below": (
        "t.csv",
        '"key","text"\n' * 150 + CSV,
        {"header_row": 151},
        "the header is line 151",
    ),
    "no header, and a text": (
        "t.csv",
        ROWS_ALONE.replace("\n", ",ok\n"),
        {"id": "column 1", "time": "column 2", "values": ["column 3"]},
        "no line names the columns",
    ),
    "no header, and a text in the same words": (
        "t.csv",
        "ok," + ROWS_ALONE.replace("b,", "a,").replace("\n", "\nok,").removesuffix("ok,"),
        {"id": "column 2", "time": "column 3", "values": ["column 4"], "check": lambda data: len(data.times) == 3},
        "no line names the columns",
    ),
    "names listed by number": (
        "t.cnv",
        "* instrument\n# name 0 = id: Ship\n# name 1 = time: Time [d]\n# name 2 = value\n*END*\n" + ROWS_ALONE,
        {},
        "the lines above the rows list the names of the columns",
    ),
    "names listed from one": (
        "t.txt",
        "# Column 1: id\n# Column 2: time (d)\n# Column 3: value\n" + ROWS_ALONE.replace(",", " "),
        {},
        "list the names of the columns",
    ),
    "names with numbers in one line": (
        "t.txt",
        "# 1:id 2:time 3:value\n" + ROWS_ALONE.replace(",", " "),
        {"id": "1:id", "time": "2:time", "values": ["3:value"]},
        "none of 3 rows",
    ),
    "numbers of other things": (
        "t.txt",
        "# 1: id\n# 3: time\n# 4: value\n" + ROWS_ALONE.replace(",", " "),
        {"id": "column 1", "time": "column 2", "values": ["column 3"]},
        "no line names the columns",
    ),
    "a header that comes again": (
        "t.csv",
        CSV.replace("b,", "id,time,value\nb,"),
        {},
        "1 of 4 rows dropped: a line repeats the header in 1",
    ),
    "comments in the middle": ("t.csv", "# one\n" + CSV.replace("b,", "# two,,\nb,"), {}, "none of 3 rows"),
    "text of another suffix": ("t.data", CSV, {}, "read as text, as the suffix '.data' tells no format"),
    "json of another suffix": ("t.geojson", json.dumps(columns()), {}, "read as JSON"),
    "units in names": (
        "t.csv",
        CSV.replace("time,value", "time [d],flux (mJy)"),
        {"time": "time [d]", "values": ["flux (mJy)"]},
        "",
    ),
    "json lines with lists": (
        "t.jsonl",
        "\n".join(json.dumps({name: column[i] for name, column in LISTS.items()}) for i in range(2)),
        {},
        "none of 3 rows",
    ),
    "durations": (
        "t.parquet",
        lambda path: parquet(path, columns(time=pa.array([43_200, 129_600, 21_600], pa.duration("s")))),
        {},
        "",
    ),
    "decimals": (
        "t.parquet",
        lambda path: parquet(path, columns(value=list(map(Decimal, ("1.25", "-2.5", "3"))))),
        {},
        "",
    ),
    **{
        f"{sign!r} {where}": (
            "t.csv",
            text,
            {"values": [f"va{sign}lue"] if where == "in a name" else ["value"]},
            "",
        )
        for sign in ("\x0c", "\u2028")
        for where, text in (
            ("above the names", f"# made{sign}today\n{CSV}"),
            ("in a name", CSV.replace("value", f"va{sign}lue")),
        )
    },
    "an ellipsis of Windows, and columns aligned by blanks": (
        "t.dat",
        CSV.replace("a,", "a…a,").replace(",", "  ").encode("cp1252"),
        {"check": lambda data: data.ids.tolist() == ["a…a", "b"]},
        "separated by blanks, read as Latin-1",
    ),
    "a column called filename in parquet": (
        "t.parquet",
        lambda path: parquet(path, columns(filename=["p", "p", "q"])),
        {"static": ["filename"]},
        "",
    ),
    "a column called filename in json": ("t.json", json.dumps(columns(filename=["p", "p", "q"])), {}, ""),
    "names in parquet that differ in capitals": (
        "t.parquet",
        lambda path: parquet(path, {"Time": [9.0, 9.0, 9.0], **columns(), "VALUE": [9.0, 9.0, 9.0]}),
        {},
        "",
    ),
    "a name twice in arrow": (
        "t.feather",
        lambda path: pyarrow.feather.write_feather(
            pa.table([*map(pa.array, columns().values()), [1, 2, 3], [4, 5, 6]], [*columns(), "x", "x"]), path
        ),
        {},
        "",
    ),
    "a name twice in rows of json": (
        "t.json",
        json.dumps([[*columns(), "x", "x"], *([*row, 1, 2] for row in ROWS)]),
        {},
        "",
    ),
    "a huge number in rows of json": (
        "t.json",
        json.dumps([[*columns(), "n"], *([*row, 10**30] for row in ROWS)]),
        {},
        "",
    ),
    "no ids": (
        "only a.csv",
        CSV.replace("id,", "").replace("a,", "").replace("b,", ""),
        {"id": None, "check": one_series},
        "one series",
    ),
}


def put(path, content):
    if callable(content):
        content(path)
    else:
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


@pytest.mark.filterwarnings("ignore::rotarymae.errors.InputWarning")
@pytest.mark.parametrize("memory", [None, 0], ids=["memory", "mapped"])
@pytest.mark.parametrize("case", READ)
def test_tables_of_many_kinds_are_read(tmp_path, case, memory):
    name, content, options, noted = READ[case]
    if memory == 0 and case == "latin-1, late":
        pytest.skip("a stream cannot begin anew")
    options = dict(options)
    check = options.pop("check", None)
    data = SeriesDataset.from_file(put(tmp_path / name, content), **options, memory=memory)
    assert noted in str(data.reading)
    if check:
        assert check(data)
    else:
        assert data.ids.tolist() == ["a", "b"] and data.times.tolist() == [0.5, 1.5, 0.25]
        assert data.values.ravel().tolist() == [1.25, -2.5, 3.0]


# name → (file name, content, options, parts of the message)
REFUSED: Any = {
    "another date format": (
        "t.csv",
        DATES,
        {"time_format": "%d.%m.%Y"},
        ["'2024-03-31'", "'%d.%m.%Y'", "neither is any other"],
    ),
    "lists of unequal length": (
        "t.parquet",
        lambda p: parquet(p, LISTS | {"value": [[1.0], [3.0]]}),
        {},
        ["row 1 of", "equally long"],
    ),
    "excel that is none": ("t.xlsx", b"no", {}, ["t.xlsx"]),
    "json that is none": ("t.json", "{", {}, ["t.json cannot be read as json"]),
    "json of numbers": ("t.json", "[1, 2]", {}, ["t.json cannot be read as json", "holds 1, 2; wanted are records"]),
    "json rows of two lengths": ("t.json", '[["id", "time"], [1, 2], [1]]', {}, ["row 2 has 1 cells", "2 columns"]),
    "a folder without tables": ("t/readme.md", "", {}, ["folder without table files", "quoted pattern"]),
    "line protocol of InfluxDB": (
        "t.txt",
        '# of a garden\nweather,loc=a\\ b temp=21.5,sky="half clear" 1650000000\nweather temp=3i 1650000010\n',
        {},
        ["t.txt: it is no table but line protocol of InfluxDB", "as CSV, one per row"],
    ),
    "a dump of SQL": (
        "t.sql",
        '-- SQLite\nBEGIN TRANSACTION;\nINSERT INTO "x" VALUES(1,2);\nINSERT INTO "x" VALUES(2,3);\n',
        {},
        ["t.sql: it is no table but a dump of SQL", "a query of the database"],
    ),
    "XML": ("t.gpx", '<?xml version="1.0"?>\n<gpx><trk></trk></gpx>\n', {}, ["it is no table but XML", "pandas"]),
    "several formats": ("t/a.csv", CSV, {}, ["several formats"]),
    "another suffix": ("t.doc", b"\0\1" + CSV.encode(), {}, ["cannot tell the kind", ".csv"]),
    "a pattern of nothing": ("no*.csv", None, {}, ["no*.csv does not exist"]),
    "utf-8 in name only": ("t.parquet", CSV, {}, ["cannot be read as parquet"]),
    "a column without any value": ("t.csv", "id,time,value\na,1,\na,2,\n", {}, ["no value was observed"]),
    "a name of columns that is too long for one of a file": (
        CSV * 20,
        None,
        {},
        ["no path of a table (File name too long)"],
    ),
    "a pattern that is none": ("**.csv", None, {}, ["no path of a table", "Invalid pattern"]),
    "an empty line of names": ("t.csv", f"key,x\n\n{CSV}", {"header_row": 2}, ["t.csv: it is empty in line 2"]),
    "a line of names before the first": ("t.csv", CSV, {"header_row": 0}, ["header_row is 0", "at least 1"]),
    "blanks in quotes, where blanks separate": (
        "t.dat",
        CSV.replace("a,", '"a x",').replace("b,", '"b x",').replace(",", "  "),
        {},
        ["line 1 names 3 columns", "leave no blanks within cells."],
    ),
    "a time of day": (
        "t.parquet",
        lambda p: parquet(p, columns(time=[clock(i) for i in range(3)])),
        {},
        ["'time'", "time64"],
    ),
    "several tables": ("t.csv", CSV + "id,time,flux\nc,1,2\n", {}, ["'id', 'time', 'flux'", "several tables"]),
    "a second line of names": (
        "t.csv",
        CSV.replace("value\n", "value\nid,time,2024\n"),
        {},
        ["'id', 'time', '2024'", "--header-row"],
    ),
    "several tables in another order": (
        "t.csv",
        CSV + "time,id,value\n3,c,1\n",
        {},
        ["'time', 'id', 'value' begins"],
    ),
    "several tables, far below": (
        "t.csv",
        CSV + "c,1,2\n" * 1000 + "id,time,flux\nc,1,2\n",
        {},
        ["'id', 'time', 'flux'", "several tables", "--header-row"],
    ),
    "names further below": ("t.csv", "key\n" + "a,b\na,b,c\n" * 9 + CSV, {}, ["line 1", "(--header-row)"]),
    "an empty line of names above others": (
        "t.csv",
        f"made today\n\nid,time,value\n{TWELVE}",
        {"header_row": 2},
        ["(--header-row)"],
    ),
    "a line of names that is too long": (
        "t.txt",
        "a table\n" + PREAMBLES["names of several words"],
        {"header_row": 4},
        [
            "line 4 names 5 columns, and no line below it has as many cells, such as 'b 11.25 -8'",
            "leave --header-row out",
        ],
    ),
    "a line of names that is too short": (
        "t.csv",
        PREAMBLES["shorter rows"],
        {"header_row": 1},
        ["line 1 names 2 columns, and most lines", "(--header-row)", "leave --header-row out"],
    ),
    "lists within lists": (
        "t.json",
        json.dumps([{"id": "a", "of": [{"x": [{"time": 0, "value": 1}]}]}]),
        {"time": "of.x"},
        ["'of.x' holds lists of lists", "json_normalize"],
    ),
    "no header": ("t.csv", ROWS_ALONE, {}, ["no column 'time'", "'column 1', 'column 2', 'column 3'"]),
    "a column twice": ("t.csv", CSV.replace("time,", "value,"), {"time": "value"}, ["'value'", "twice"]),
    "arrow that is none": ("t.feather", b"not arrow", {}, ["t.feather", "cannot be read as arrow"]),
    "nothing": ("t.csv", b"", {}, ["t.csv", "before line 1", "complete", "a csv file"]),
    "cut off": ("t.csv.gz", gzip.compress(CSV.encode() * 999, mtime=0)[:40], {}, ["cannot be read as csv", "complete"]),
    "one name for two columns": ("t.csv", "x,y,x\n1,2,3\n", {"id": "x", "time": "y"}, ["'x'", "more than once"]),
    "packed in name only": ("t.csv.gz", CSV, {}, ["t.csv.gz cannot be read"]),
    "deeply nested": ("t.json", "[" * 100_000, {}, ["t.json cannot be read as json"]),
    "header only": ("t.csv", "id,time,value\n", {}, ["no rows", "the right one"]),
    "header only, as a list": ("t.json", '[["id", "time", "value"]]', {}, ["no rows"]),
}


@pytest.mark.parametrize("case", REFUSED)
def test_other_tables_are_refused_with_the_cause(tmp_path, case):
    name, content, options, parts = REFUSED[case]
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    if content is not None:
        put(path, content)
    if case == "several formats":
        parquet(path.with_name("b.parquet"), columns())
    with refuses(*parts):
        SeriesDataset.from_file(path.parent if "/" in name else path, **options)


PAIRS = {"a": [[0.5, 1.25], [1.5, -2.5], [2.5, 0.0]], "b": [[0.25, 3.0], [0.5, 7.0], [0.75, 4.0]]}
PAIRS["c"] = [[1.0, 0.5]]
LISTS_OF_ROWS: dict[str, Any] = {  # as programs and sites hand them out
    "pairs by key": {"version": 3, "name": "x", **PAIRS},
    "pairs within objects": {"chart": {"type": "line"}, "series": [{"name": k, "data": v} for k, v in PAIRS.items()]},
    "pairs of labels": {"data": {"result": [{"metric": {"job": "x", "on": k}, "values": v} for k, v in PAIRS.items()]}},
    "pairs with the time behind": [{"target": k, "datapoints": [p[::-1] for p in v]} for k, v in PAIRS.items()],
    "three cells": {"error": [], "result": {k: [[*pair, "z"] for pair in v] for k, v in PAIRS.items()}},
}


@pytest.mark.parametrize("lines", [False, True])
@pytest.mark.parametrize("kind", LISTS_OF_ROWS)
def test_lists_of_rows_under_keys_are_channels(kind, lines, tmp_path):
    content = LISTS_OF_ROWS[kind]
    path = put(tmp_path / ("t.jsonl" if lines else "t.json"), json.dumps(content, indent=None if lines else 2))
    schema = propose(open_source(path), TableSchema(), set()).schema
    assert (schema.id, schema.time, schema.channel) == ("file", "time", "channel")
    data = TableReader.open(path, replace(schema, values=schema.values[:1])).read()
    assert data.channel_names == ("a", "b", "c") and "each list of rows is a channel" in str(data.reading)
    assert data.channels is not None
    rows = [*zip(data.times, map("abc".__getitem__, data.channels), data.values[:, 0], strict=True)]
    assert sorted(rows) == sorted((time, key, value) for key, part in PAIRS.items() for time, value in part)


def test_lists_of_rows_without_names_are_numbered(tmp_path):
    path = put(tmp_path / "t.json", json.dumps([{"data": part} for part in PAIRS.values()]))
    assert {*open_source(path).read(["channel"])["channel"].to_pylist()} == {"1", "2", "3"}


@pytest.mark.parametrize("key", ["coordinates", "track"])
def test_pairs_that_go_not_one_way_or_are_places_are_no_times(key, tmp_path):
    pairs = [[9.1, 48.2], [9.2, 48.3], [9.3, 48.1]] if key == "coordinates" else [[3, 1], [1, 2], [2, 1]]
    path = put(tmp_path / "t.json", json.dumps([{"name": "a", key: pairs}, {"name": "b", key: pairs}]))
    with refuses(f"'{key}' holds lists of lists", "json_normalize"):
        propose(open_source(path), TableSchema(), set())


def test_an_object_with_empty_lists_keeps_its_static_value_apart(tmp_path):
    table = {"id": ["c", "a", "b"], "host": [1.0, 2.0, 3.0], **{k: [[], *LISTS[k]] for k in ("time", "value")}}
    parquet(tmp_path / "t.parquet", table)
    with pytest.warns(InputWarning, match="1 series have no observation and are left out: 'c'"):
        data = SeriesDataset.from_file(tmp_path / "t.parquet", static=["host"])
    assert data.ids.tolist() == ["a", "b"] and data.static["host"].tolist() == [2.0, 3.0]


@pytest.mark.parametrize("what", ["folder", "night*.csv"])
def test_several_files_are_one_table(tmp_path, what):
    folder = tmp_path / "folder"
    folder.mkdir()
    put(folder / "night1.csv", CSV)
    put(folder / "night2.csv", GERMAN.replace("a;", "c;"))
    put(folder / "_ignored.csv", "x")
    (folder / ".ipynb_checkpoints").mkdir()
    put(folder / ".ipynb_checkpoints" / "night1-checkpoint.csv", CSV)
    for memory in (None, 0):
        options: Any = {"memory": memory, "duplicates": "first"}
        data = SeriesDataset.from_file(folder if what == "folder" else folder / what, **options)
        assert data.ids.tolist() == ["a", "b", "c"] and data.lengths.tolist() == [2, 1, 2]
        with pytest.warns(InputWarning, match="times that were not ascending"):
            by_file = SeriesDataset.from_file(folder / "night*.csv", id=None, **options)
        assert by_file.ids.tolist() == ["night1", "night2"] and by_file.lengths.tolist() == [3, 3]


@pytest.mark.parametrize(
    "content",
    [
        CSV.encode(),
        GERMAN.encode(),
        gzip.compress(CSV.encode()),
        "parquet",
        json.dumps([dict(zip(("id", "time", "value"), row, strict=True)) for row in ROWS]).encode(),
        b"\n" + json.dumps(columns()).encode(),
    ],
    ids=["csv", "german", "gzip", "parquet", "json", "json below a line"],
)
def test_standard_input(monkeypatch, content):
    if content == "parquet":
        pyarrow.parquet.write_table(pa.table(columns()), packed := io.BytesIO())
        content = packed.getvalue()
    monkeypatch.setattr(sys, "stdin", types.SimpleNamespace(buffer=io.BytesIO(content)))
    source_file.standard_input.cache_clear()
    assert SeriesDataset.from_file("-").values.ravel().tolist() == [1.25, -2.5, 3.0]
    again = open_source("-")
    assert again.columns == ["id", "time", "value"] and again.name == "standard input"


def test_records_of_json_may_lack_fields_and_lie_in_several_files(tmp_path):
    for patient in "12":
        rows = [{"time": 0, "hr": 80.0}, {"time": 1, "hr": 81.0, "temp": 37.0}, {"time": 2, "temp": 37.5}]
        put(tmp_path / f"{patient}.json", json.dumps([{"id": patient, **row} for row in rows[: 1 + int(patient)]]))
    table = open_source(tmp_path)
    assert table.columns == ["id", "time", "hr", "temp"]
    assert table.read(["temp"])["temp"].to_pylist() == [None, 37.0, None, 37.0, 37.5]
    assert SeriesDataset.from_file(tmp_path, values=["hr"], id=None).lengths.tolist() == [2, 2]


def test_a_long_line_of_json(tmp_path):
    times = list(range(300_000))
    line = json.dumps({"id": 1, "time": times, "value": times})
    assert SeriesDataset.from_file(put(tmp_path / "t.jsonl", line)).lengths.tolist() == [300_000]


def test_files_of_one_name_in_two_folders_are_two_series(tmp_path):
    for patient in ("p1", "p2"):
        (tmp_path / patient).mkdir()
        put(tmp_path / patient / "signals.csv", "time,value\n0,1\n1,2\n")
    for memory in (None, 0):
        data = SeriesDataset.from_file(tmp_path, id=None, memory=memory)
        assert data.ids.tolist() == ["p1/signals.csv", "p2/signals.csv"] and data.lengths.tolist() == [2, 2]
    assert stem(Path("star.dat.csv.gz")) == "star.dat"


def test_a_late_letter_of_another_encoding_in_a_large_file_is_read(tmp_path, monkeypatch):
    path = tmp_path / "t.csv"
    path.write_bytes((CSV + "b,1,2\n" * 20_000).encode() + "é,0,1\n".encode("latin-1"))
    assert SeriesDataset.from_file(path, duplicates="first").ids.tolist() == ["a", "b", "é"]
    monkeypatch.setattr(read, "PART", 0)
    parts = list(TableReader.open(path, TableSchema(duplicates="first")).parts())
    assert [id for part in parts for id in part.ids.to_pylist()] == ["a", "b", "é"]


def test_a_file_that_lacks_a_column_is_named(tmp_path):
    parquet(tmp_path / "a.parquet", columns())
    parquet(tmp_path / "b.parquet", {"id": ["c"], "time": [0.0], "val": [1.0]})
    with refuses("b.parquet", "'val'", "a.parquet"):
        SeriesDataset.from_file(tmp_path)


def test_a_later_file_without_a_row_that_fits_is_refused(tmp_path):
    put(tmp_path / "a.csv", "id,time,value\n")
    put(tmp_path / "b.csv", "id,time,value\n1,2\n1,3\n")
    with refuses("no line has as many cells as the header: line 2 of b.csv", "3", "2", "--header-row"):
        SeriesDataset.from_file(tmp_path)


def test_files_without_headers_are_looked_at_one_by_one_where_their_rows_differ(tmp_path):
    (tmp_path / "a.csv").write_text("5,1.5,a\n6,2.5,a\n7,1,a\n")
    (tmp_path / "b.csv").write_text("8,1.5,b\n")
    source = open_source(tmp_path)
    assert source.columns == ["column 1", "column 2", "column 3"] and source.rows() == 4
    (tmp_path / "b.csv").write_text("time,value,id\n0,1,b\n1,3,b\n")
    with refuses("b.csv has the column 'id', 'time', 'value'"):
        open_source(tmp_path)


@pytest.mark.parametrize("suffix", ["csv", "parquet", "ecsv"])
def test_files_that_give_a_column_other_units_are_doubted(tmp_path, suffix):
    for name, unit in (("a", "mJy"), ("b", "Jy")):
        path = tmp_path / f"{name}.{suffix}"
        if suffix == "csv":
            path.write_text(CSV.replace("value\n", f"value\n,d,{unit}\n"))
        elif suffix == "parquet":
            fields = [pa.field("time", pa.float64()), pa.field("value", pa.float64(), metadata={"unit": unit})]
            parquet(path, pa.table([[0.0], [1.0]], schema=pa.schema(fields)))
        else:
            table = pytest.importorskip("astropy.table").Table({"time": [0.0], "value": [1.0]})
            table["value"].unit = unit
            table.write(path)
    with pytest.warns(InputWarning, match=f"b.{suffix}: column 'value' is in Jy, and in mJy in files before it"):
        assert open_source(tmp_path).units["value"] == "mJy"


def test_other_tables_of_a_fits_file_are_noted(tmp_path):
    fits = pytest.importorskip("astropy.io.fits")
    parts = [fits.BinTableHDU.from_columns([fits.Column(name, "D", array=[0.0])]) for name in ("time", "value")]
    fits.HDUList([fits.PrimaryHDU(), *parts]).writeto(tmp_path / "t.fits")
    source = open_source(tmp_path / "t.fits")
    assert source.columns == ["time"] and source.notes == ("t.fits has several tables, and the first is read",)


def test_names_that_differ_in_capitals_stand_in_one_order_in_all_files(tmp_path):
    for name in ("a", "b"):
        parquet(
            tmp_path / f"{name}.parquet", {"Value": [7.0, 8.0, 9.0], **columns(id=[name] * 3, time=[1.0, 2.0, 3.0])}
        )
    assert SeriesDataset.from_file(tmp_path).values.ravel().tolist() == [1.25, -2.5, 3.0] * 2
    parquet(tmp_path / "b.parquet", {**columns(), "Value": [7.0, 8.0, 9.0]})
    with refuses("a.parquet and 1 more", "whose order differs"):
        SeriesDataset.from_file(tmp_path)


def test_a_column_of_a_file_counts_and_not_the_name_of_its_folder(tmp_path):
    (tmp_path / "value=7").mkdir()
    parquet(tmp_path / "value=7" / "t.parquet", columns())
    assert SeriesDataset.from_file(tmp_path).values.ravel().tolist() == [1.25, -2.5, 3.0]


def test_the_folder_one_is_in(tmp_path, monkeypatch):
    put(tmp_path / "t.csv", CSV)
    monkeypatch.chdir(tmp_path)
    assert len(SeriesDataset.from_file(".")) == 2
    with refuses("list", "pandas, polars, Arrow or astropy"):
        SeriesDataset.from_file(["t.csv"])  # type: ignore[arg-type]
    with refuses("Its columns are none."):
        SeriesDataset.from_frame(pa.table([[1], [2]], names=["a", "a"]))
    with refuses("Quantity", "pandas, polars, Arrow or astropy"):
        SeriesDataset.from_frame([1, 2] * pytest.importorskip("astropy.units").m)
    with pytest.raises(ValueError) as raised:
        SeriesDataset.from_file(["t.csv"] * 99)  # type: ignore[arg-type]
    assert len(str(raised.value)) < 400  # a frame is not written out


def test_numbers_and_dates_among_options_are_texts():
    given: Any = {"na": np.int64(-999), "since": 5, "until": date(2024, 3, 31)}
    schema = TableSchema(**given)
    assert (schema.na, schema.since, schema.until) == (("-999",), "5", "2024-03-31")
    objects = pa.table({"id": ["a"]})
    assert TableSchema.resolve({"objects": objects, "values": [], "na": ()}).objects is objects
    with refuses("header_row is 0"):
        TableSchema.resolve({"header_row": 0})


@pytest.mark.parametrize("kind", ["csv", "json", "arrow", "parquet", "decimals", "lists", "table"])
def test_cells_that_mean_missing(tmp_path, kind):
    """As texts, and as numbers whatever their spelling; never ids."""
    table: dict[str, Any] = {"id": ["a", "a", "?"], "time": [0.0, 1.0, 0.0], "value": [1.0, -999.0, 3.0]}
    table["sex"] = ["F", "F", "?"]
    if kind == "lists":
        table = {"id": ["a", "?"], "time": [[0.0, 1.0], [0.0]], "value": [[1.0, -999.0], [3.0]], "sex": ["F", "?"]}
    path = tmp_path / f"t.{'parquet' if kind in ('decimals', 'lists', 'table') else kind}"
    if kind == "decimals":
        table["value"] = [Decimal(f"{value}0") for value in table["value"]]
    if kind == "csv":
        put(path, "id,time,value,sex\na,0,1.5,F\na,1,-999.0,F\n?,0,3,?\n")
    elif kind == "json":
        put(path, json.dumps([dict(zip(table, row, strict=True)) for row in zip(*table.values(), strict=True)]))
    elif kind == "arrow":
        pyarrow.feather.write_feather(pa.table(table), path)
    else:
        parquet(path, table)
    if kind == "table":
        data = TableReader.open(pa.table(table), TableSchema(static=("sex",), na=("-999", "?"))).read()
    else:
        data = SeriesDataset.from_file(path, static=["sex"], na=["-999", "?"])
    assert data.ids.tolist() == ["a", "?"] and data.lengths.tolist() == [1, 1]
    assert data.static["sex"].tolist() == ["F", None]


def test_excel(tmp_path):
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    book.active.title = "one"
    for row in [("made by hand",), ("id", "time", "value"), *ROWS, ("b", 2.0, "see note")]:
        book.active.append(row)
    book.save(tmp_path / "t.xlsx")
    with pytest.warns(InputWarning, match="'see note' 1"):
        data = SeriesDataset.from_file(tmp_path / "t.xlsx")
    assert data.values.ravel().tolist() == [1.25, -2.5, 3.0] and "the header is line 2" in str(data.reading)
    book.active.insert_rows(2, 3)
    book.save(tmp_path / "t.xlsx")
    for row in (None, 5):  # as the sheet counts them
        with pytest.warns(InputWarning, match="'see note' 1"):
            data = SeriesDataset.from_file(tmp_path / "t.xlsx", header_row=row)
        assert len(data.times) == 3 and "the header is line 5" in str(data.reading)
    with refuses(f"{tmp_path / 't.xlsx'}: it ends before line 50"):
        SeriesDataset.from_file(tmp_path / "t.xlsx", header_row=50)
    book.create_sheet("two")
    book.save(tmp_path / "t.xlsx")
    with pytest.warns(InputWarning, match="t.xlsx: the first sheet, 'one', is read and 'two' not"):
        open_source(tmp_path / "t.xlsx")


@pytest.mark.parametrize(
    "cells, how, zone",
    [
        (["2024-03-31", "2024-04-01", "2024-04-02"], None, "UTC"),
        (["2024-03-31 00:00:00", "2024-04-01 00:00:00", "2024-04-02 00:00:00"], None, "UTC"),
        (["2024-03-31T02:00+02:00", "2024-04-01T00:00Z", "2024-04-02T01:00+01:00"], None, "UTC"),
        (["31.03.2024 00:00", "01.04.2024 00:00", "02.04.2024 00:00"], "%d.%m.%Y %H:%M", "UTC"),
        (["20240331", "20240401", "20240402"], "%Y%m%d", "UTC"),
        (["0.5", "1.5", "2.5"], None, None),
    ],
)
@pytest.mark.parametrize("memory", [None, 0])
def test_dates_are_days_and_dates_again(tmp_path, cells, how, zone, memory):
    rows = "".join(f"a,{cell},1\n" for cell in cells)
    data = SeriesDataset.from_file(put(tmp_path / "t.csv", "id,time,value\n" + rows), time_format=how, memory=memory)
    assert data.time_zone == zone
    if zone is None:
        assert data.times.tolist() == [0.5, 1.5, 2.5]
    else:
        assert data.times.tolist() == [19813, 19814, 19815]
        assert [str(day)[:10] for day in as_dates(data.times, zone).to_pylist()] == [
            "2024-03-31",
            "2024-04-01",
            "2024-04-02",
        ]


def test_a_zone_is_kept_and_its_absence_said():
    berlin = pa.array([0, 3_600_000_001], pa.timestamp("us", tz="Europe/Berlin"))
    data = SeriesDataset.from_frame(pa.table(columns(id=[1, 1], time=berlin, value=[1.0, 2.0])))
    assert data.time_zone == "Europe/Berlin" and "zone" not in str(data.reading)
    assert as_dates(data.times, data.time_zone).equals(berlin)
    naive = SeriesDataset.from_frame(
        pa.table(columns(id=[1, 1], time=berlin.cast(pa.timestamp("us")), value=[1.0, 2.0]))
    )
    assert naive.time_zone == "UTC" and "no zone and are taken as UTC" in str(naive.reading)


def test_times_as_a_user_writes_them():
    assert parse_time("1.5", None) == 1.5 and parse_time("19813.25", "UTC") == 19813.25
    assert parse_time("2024-03-31", "UTC") == 19813 and parse_time("2024-03-31T06:00", "UTC") == 19813.25
    assert parse_time("2024-01-01T01:00", "Europe/Berlin") == parse_time("2024-01-01T00:00Z", "Europe/Berlin") == 19723
    with refuses("'2024-03-31' is no number"):
        parse_time("2024-03-31", None)
    with refuses("'nan' is no number"):
        parse_time("nan", None)
    with refuses("'Easter'", "2024-03-31T10:00"):
        parse_time("Easter", "UTC")
    assert parse_time("20240331", "UTC") == 19813 and parse_time("20240331", None) == 20240331
    with refuses("1e300", "years 1 to 9999"):
        parse_time("1e300", "UTC")
    once, twice = (parse_time(text, "Europe/Berlin") for text in ("2023-10-29T02:30+02:00", "2023-10-29T02:30"))
    assert once == twice


def test_fractions_of_seconds_in_a_format(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("id,time,value\n1,2.1.2024 00:00:00.250,1\n1,2.1.2024 12:00:00.5,2\n")
    read = lambda how: SeriesDataset.from_file(path, time_format=how)  # noqa: E731
    wanted = 19724 + np.array([0.25, 43200.5]) / 86400
    assert np.allclose(read("%d.%m.%Y %H:%M:%S.%f").times, wanted, rtol=0, atol=1e-9)
    with refuses("2.1.2024 00:00:00.250", "not written as", "%f"):
        read("%d.%m.%Y %H:%M:%S")


@pytest.mark.parametrize(
    ("cells", "how", "word"),
    [
        (["1.2.2024", " 3.02.2024", "31.02.2024"], "%d.%m.%Y", "31.02.2024"),
        (["01FEB24", "30FEB24"], "%d%b%y", "30FEB24"),
        (["20240301 01", "20230229 01"], "%Y%m%d %I", "20230229 01"),
        (["2024-02-01 00:30+0200", "2024-02-30 00:30+0200"], "%Y-%m-%d %H:%M%z", "2024-02-30 00:30+0200"),
    ],
)
def test_days_that_do_not_exist_are_no_times_and_are_counted(cells, how, word):
    read = times_of(pa.array(cells), "time", how)
    assert read.words == {word: 1} and np.isnan(read.values).tolist() == [False] * (len(cells) - 1) + [True]


def test_names_of_zones_are_refused():
    with refuses("%Z", "offsets", "%z"):
        times_of(pa.array(["2024-06-01 CEST"] * 2), "time", "%Y-%m-%d %Z")


def test_names_above_several_columns_of_a_sheet_are_joined_with_those_below(tmp_path):
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    rows = [["Becken 3"], [], ["day", "in", None, "out", None], [None, "NH4", "NO3", "NH4", "NO3"]]
    for row in [
        *rows,
        *([f"2023-01-{k + 1:02d}", k + 0.5, 2 * k, "<0,05" if k == 4 else 0.25, 7.5] for k in range(20)),
    ]:
        book.active.append(row)
    book.save(tmp_path / "t.xlsx")
    source = open_source(tmp_path / "t.xlsx")
    assert source.columns == ["day", "in NH4", "in NO3", "out NH4", "out NO3"]
    data = SeriesDataset.from_file(tmp_path / "t.xlsx", id="file", time="day", values=["out NH4"])
    assert data.values[4, 0] == 0.05 and data.sides[4, 0] == -1  # a decimal comma next to decimal points


def test_a_comment_with_as_many_commas_as_columns_is_no_header(tmp_path):
    path = tmp_path / "t.csv"
    for header in (
        "# by night, dome open, cold\nid,time,value\n",
        "#id,time,value\n",
        "# id, time, value\nid,time,value\n",
    ):
        path.write_text(header + "a,1,2.5\na,2,3.5\n")
        names = [name.strip("# ") for name in open_source(path).columns]
        assert (
            names == ["id", "time", "value"]
            and len(open_source(path).read(open_source(path).columns)[open_source(path).columns[0]]) == 2
        )


@pytest.mark.parametrize(
    ("cells", "labels"),
    [
        (["01", " 1", "", "-9"], ["01", "1", None, None]),
        (["1", "0", "", "-9"], [1, 0, None, None]),
        (["0.5", "1", "", "-9"], [0.5, 1, None, None]),
        (["0.5", "1", "", "-9.0"], [0.5, 1, None, None]),
        (["1", "a", "", "-9"], ["1", "a", None, None]),
    ],
)
def test_labels_with_leading_zeros_stay_text(tmp_path, cells, labels):
    path = tmp_path / "t.csv"
    path.write_text("id,kind\n" + "".join(f"{i},{cell}\n" for i, cell in enumerate(cells)))
    data = SeriesDataset.from_arrays([[0.0]] * 4, [[1.0]] * 4, ids=np.arange(4))
    assert align_labels(data, path, label="kind", unlabelled="none", na=("-9",)).tolist() == labels


@pytest.mark.parametrize("quote", ["", '"'])
def test_a_single_column_of_dates_with_times_is_not_split_at_the_blanks(tmp_path, quote):
    path = tmp_path / "q.csv"
    path.write_text("time\n" + "".join(f"{quote}2024-10-27 0{hour}:37{quote}\n" for hour in (2, 3)))
    assert open_source(path).columns == ["time"]
    path.write_text("day clock\n2024-10-27 02:37\n2024-10-27 03:37\n")
    assert open_source(path).columns == ["day", "clock"]
