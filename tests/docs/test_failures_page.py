# SPDX-License-Identifier: MIT
"""docs/how-to/failures.md works as written."""

from pathlib import Path

from tests.docs.test_readme import blocks, byrote
from tests.support import Db
from tests.worker.harness import send_one, spec


def test_the_tracker_gets_the_failure_and_the_filter_redacts_it(
    url: str, db: Db, tmp_path: Path
) -> None:
    [task] = blocks("docs/how-to/failures.md", "python")
    # The records of the tracker are in the hand: print them there.
    told = task.replace("reported.append(", "print('TRACKED', record.exc_info); reported.append(")
    (tmp_path / "shop.py").write_text(told, encoding="utf-8")
    send_one(db, spec("charge", "4111 1111"))
    words = ("worker", "shop:app", "--drain", "--hands", "1", "--log-format", "text")
    out, err = byrote(*words, folder=tmp_path, url=url).communicate(timeout=60)

    assert "TRACKED None" in out
    assert "] charge failed" in err
    assert "Traceback" not in err
