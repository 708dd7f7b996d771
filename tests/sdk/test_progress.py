# SPDX-License-Identifier: MIT
"""Progress of the SDK: reported by its worker, read by its client."""

import pytest

from byrote.core.errors import RunNotFound
from byrote.core.state import Status
from byrote.sdk import Retry
from tests.sdk.harness import Service, StartSdkWorker

TWICE = Retry(attempts=2, delay_first=0.0)


@pytest.mark.parametrize("executor", ["hand", "inline", "command"])
def test_a_worker_reports_and_a_client_sees(
    service: Service, start_sdk_worker: StartSdkWorker, executor: str
) -> None:
    start_sdk_worker(service.url, service.token, executor=executor)
    run = service.client.enqueue("telling", 1_000)
    ended = service.client.wait(run.id, 30)
    seen = service.client.progress(run.id)

    assert (seen.run, seen.status, seen.attempts) == (run.id, Status.SUCCESSFUL, 1)
    assert seen.progress is not None
    assert (seen.progress.percent, seen.progress.message) == (100.0, "telling")
    assert ended.progress is not None
    assert (ended.progress.done, ended.progress.eta) == (1_000.0, None)


def test_a_second_attempt_begins_anew(service: Service, start_sdk_worker: StartSdkWorker) -> None:
    start_sdk_worker(service.url, service.token)
    run = service.client.enqueue("telling", 10, retry=TWICE, labels={"fail": "once"})
    service.client.wait(run.id, 30)
    seen = service.client.progress(run.id).progress

    assert seen is not None
    assert (seen.attempt, seen.percent, seen.retrying) == (2, 100.0, False)


def test_a_run_that_is_not_there_has_no_progress(service: Service) -> None:
    with pytest.raises(RunNotFound):
        service.client.progress("0190b0a0-1111-7222-8333-444455556666")
