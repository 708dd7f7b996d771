# SPDX-License-Identifier: MIT
import gzip
import os
import subprocess
from pathlib import Path

import pytest
from psycopg.conninfo import conninfo_to_dict

from byrote.cli.support import dump as restoring
from byrote.embedded.binaries import find_binaries
from tests.cli.console import NOBODY, byrote
from tests.store.verify.test_verify import chain_all
from tests.support import Db, claim, enqueue, finish, success


def test_a_sound_database_passes(url: str, db: Db) -> None:
    enqueue(db, 3)
    finish(db, [success(lease) for lease in claim(db, 2)])
    told = byrote("verify", url=url)

    assert told.code == 0
    assert "ok    leases" in told.out
    assert told.out.endswith("3 runs and 7 events were read.\n")
    assert byrote("verify", "--json", url=url).object["sound"] is True


def test_a_database_that_was_tampered_with_fails_and_the_run_is_named(url: str, db: Db) -> None:
    [run_id] = enqueue(db)
    finish(db, [success(lease, "1") for lease in claim(db)])
    db.execute("update byrote_task_runs set return_json = '2'")
    told, as_json = byrote("verify", url=url), byrote("verify", "--json", url=url)

    assert (told.code, as_json.code) == (3, 3)
    assert f"results: {run_id}: the result does not match its hash" in told.out
    assert as_json.object["counts"]["results"] == 1
    assert as_json.object["findings"][0]["run"] == run_id


def test_a_database_without_our_schema_fails_the_check(bare_url: str) -> None:
    told, shown = byrote("verify", "--json", url=bare_url), byrote("verify", url=bare_url)

    assert (told.code, shown.code) == (3, 3)
    assert "byrote migrate" in told.object["findings"][0]["message"]
    assert told.object["counts"] == {"catalog": 1}
    assert shown.out.startswith("fail  catalog")
    assert "ok  " not in shown.out
    assert "Nothing else was checked." in shown.out


def dump(url: str, path: Path, *words: str) -> Path:
    program = find_binaries(os.environ).path / "pg_dump"
    # Other tests install Byrote in a second schema of this database.
    only = ("--schema", "public")
    subprocess.run([program, "--dbname", url, *only, "--file", path, *words], check=True)
    return path


def test_a_dump_is_verified_on_a_separate_server(url: str, db: Db, tmp_path: Path) -> None:
    enqueue(db, 3)
    finish(db, [success(lease) for lease in claim(db, 2)])
    told = byrote("verify", "--dump", str(dump(url, tmp_path / "d", "--format=custom")), url=url)

    assert (told.code, told.err) == (0, "")
    assert told.out.endswith("3 runs and 7 events were read.\n")


def test_a_plain_dump_that_was_tampered_with_fails(url: str, db: Db, tmp_path: Path) -> None:
    """Packed, with roles that are nowhere and a table that cannot be made."""
    [run_id] = enqueue(db)
    finish(db, [success(lease, "1") for lease in claim(db)])
    text = dump(url, tmp_path / "d.sql").read_bytes()
    more = (
        b"grant select on public.byrote_runs to nobody_here; create table public.t (x no_type);\n"
    )
    packed = tmp_path / "d.sql.gz"
    packed.write_bytes(gzip.compress(text + more + b"update public.byrote_task_runs "
                                     b"set return_json = '2';\n"))  # fmt: skip
    told = byrote("verify", "--dump", str(packed), "--json")

    assert told.code == 3
    assert [(f["check"], f["run"]) for f in told.object["findings"]] == [("results", run_id)]
    assert "no_type" in told.err
    assert "nobody_here" not in told.err


def test_what_cannot_be_a_dump_is_refused(tmp_path: Path) -> None:
    other = tmp_path / "other.sql"
    other.write_text("create table their_own (x integer);\n")
    both = byrote("verify", "--dump", str(other), "--url", NOBODY)
    nowhere = byrote("verify", "--dump", str(tmp_path / "nowhere"))

    assert (both.code, nowhere.code) == (2, 2)
    assert "not both" in both.err
    assert "does not exist" in nowhere.err


@pytest.mark.parametrize(("times", "said"), [(0, "no schema of Byrote"), (2, "several times")])
def test_a_dump_must_hold_byrote_once(
    url: str, bare_url: str, *, monkeypatch: pytest.MonkeyPatch, times: int, said: str
) -> None:
    name = conninfo_to_dict(bare_url if times == 0 else url)["dbname"]
    monkeypatch.setattr(restoring, "_names", lambda _server: [name] * max(times, 1))
    with pytest.raises(restoring.DumpUnreadable, match=said) as told:
        restoring._home_of_ours(url, Path("d.sql"), ["ERROR: why"])

    assert ("ERROR: why" in str(told.value)) == (times == 0)


def test_a_kept_head_moves_on_with_the_chain_and_not_when_it_breaks(
    url: str, db: Db, tmp_path: Path
) -> None:
    kept = tmp_path / "head.json"
    enqueue(db, 3)
    chain_all(db, limit=1)
    told = byrote("verify", "--head", str(kept), url=url)
    first = kept.read_bytes()
    enqueue(db, 2)
    chain_all(db, limit=1)
    again = byrote("verify", "--head", str(kept), "--json", url=url)
    second = kept.read_bytes()
    db.execute("delete from byrote_chain where link = (select max(link) from byrote_chain)")
    broken = byrote("verify", "--head", str(kept), url=url)

    assert (told.code, again.code, broken.code) == (0, 0, 3)
    assert "The chain ends with link 1 of 20" in told.out
    assert again.object["head"]["hash"] in second.decode()
    assert first != second == kept.read_bytes()
    assert "was taken out" in broken.out
    assert list(tmp_path.iterdir()) == [kept]


def test_a_kept_head_is_compared_with_a_dump(url: str, db: Db, tmp_path: Path) -> None:
    kept = tmp_path / "head.json"
    enqueue(db, 3)
    chain_all(db, limit=1)
    byrote("verify", "--head", str(kept), url=url)
    older = str(dump(url, tmp_path / "older", "--format=custom"))
    enqueue(db, 2)
    chain_all(db, limit=1)
    assert byrote("verify", "--dump", older, "--head", str(kept)).code == 0
    byrote("verify", "--head", str(kept), url=url)
    told = byrote("verify", "--dump", older, "--head", str(kept))

    assert told.code == 3
    assert "or this is an older copy" in told.out


def test_a_head_is_not_kept_where_there_is_none(url: str, db: Db, tmp_path: Path) -> None:
    enqueue(db)
    kept = tmp_path / "head.json"
    unchained = byrote("verify", "--head", str(kept), url=url)
    kept.write_text("{}")
    other = byrote("verify", "--head", str(kept), url=url)
    nowhere = byrote("verify", "--head", str(tmp_path), url=url)

    assert (unchained.code, other.code, nowhere.code) == (2, 2, 2)
    assert "events.chain = true" in unchained.err
    assert "does not hold the head of a chain" in other.err
    assert kept.read_text() == "{}"
