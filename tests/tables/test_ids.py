"""Ids that several columns make together, by `--id subject+trial`."""

import pandas as pd
import pytest

from rotarymae.errors import InputError, InputWarning
from rotarymae.queries import QueryTable
from rotarymae.tables import TableReader, TableSchema, align_labels, open_source, propose_objects, read_table


def trials(first="A"):
    """Two subjects with two trials each of three times, and a cell of the first subject's column of ids."""
    keys = [(s, k, t) for s in (first, "B") for k in (1, 2) for t in range(3)]
    rows = [(s, k, t, 10.0 * k + t, f"{s}{k}") for s, k, t in keys]
    return pd.DataFrame(rows, columns=["subject", "trial", "time", "value", "name"])


@pytest.mark.parametrize("suffix", ["csv", "parquet", "memory"])
@pytest.mark.parametrize("names", ["subject+trial", "trial+subject", "trial+subject+name"])
def test_ids_may_stand_in_several_columns(suffix, names, tmp_path):
    table, path = trials(), tmp_path / f"t.{suffix}"
    source = table
    if suffix != "memory":
        getattr(table, f"to_{suffix}")(path, index=False)
        source = path
    dataset = read_table(source, TableSchema(id=names, static=("name",) if "name" not in names else ()))
    ids = ["+".join(str(table[name][row]) for name in names.split("+")) for row in (0, 3, 6, 9)]
    assert dataset.ids.tolist() == ids and dataset.lengths.tolist() == [3, 3, 3, 3]
    assert dataset.reading is not None and not any("trial" in note for note in dataset.reading.notes)
    if "name" not in names:
        assert align_labels(dataset, table, id=names, label="name").tolist() == ["A1", "A2", "B1", "B2"]


def test_joined_ids_are_not_proposed_as_static_columns_of_objects():
    objects = pd.DataFrame({"subject": [*range(10)] * 2, "trial": [1] * 10 + [2] * 10, "age": range(20)})
    assert propose_objects(open_source(objects), "subject+trial", None)[1] == ("age",)


def test_joined_ids_are_no_channels_and_may_be_static_or_the_split():
    table = trials().drop(columns="name").assign(further=1.0)
    schema = TableSchema(id="subject+trial", values=(), wide=True, static=("subject",))
    reader = TableReader.open(table, schema, others=["trial"])
    assert reader.values == ("value", "further") and reader.read().static["subject"].tolist() == ["A", "A", "B", "B"]


@pytest.mark.parametrize("cell", [None, "", "  "])
def test_a_part_of_an_id_may_be_empty_and_a_row_without_any_is_left_out_and_counted(cell, tmp_path):
    table = trials(first=cell).assign(trial=lambda one: one.trial.where(one.index >= 3))
    table["trial"] = table.trial.astype("Int64")
    table.to_csv(tmp_path / "t.csv", index=False)
    for source in (table, tmp_path / "t.csv"):
        with pytest.warns(InputWarning, match="is missing in 3"):
            dataset = read_table(source, TableSchema(id="subject+trial"))
        assert dataset.ids.tolist() == ["+2", "B+1", "B+2"] and dataset.reading is not None
        assert sum(dataset.reading.left_out.values()) == 3


def test_a_column_with_a_plus_in_its_name_is_one_column_and_absent_parts_are_named():
    table = trials().rename(columns={"name": "subject+trial"})
    assert read_table(table, TableSchema(id="subject+trial")).ids.tolist() == ["A1", "A2", "B1", "B2"]
    with pytest.raises(InputError) as caught:
        read_table(trials(), TableSchema(id="subject+trail"))
    assert caught.value.code == "unknown-column" and "'trail'" in str(caught.value)


def test_queries_and_facts_have_the_same_columns_of_ids(tmp_path):
    table = trials()
    table.to_csv(tmp_path / "t.csv", index=False)
    objects = table.drop_duplicates("name")[["name", "trial", "subject"]].iloc[::-1]
    dataset = read_table(
        table.drop(columns="name"),
        TableSchema(id="subject+trial", static=("name",), objects=objects.assign(name=list("dcba"))),
    )
    assert dataset.static["name"].tolist() == list("abcd")
    objects.assign(time=0.5).to_csv(tmp_path / "q.csv", index=False)
    queries = QueryTable.read(tmp_path / "q.csv", TableSchema(id="subject+trial"), tmp_path / "t.csv")
    assert queries.ids == ["B+2", "B+1", "A+2", "A+1"]
