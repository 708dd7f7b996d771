# SPDX-License-Identifier: MIT
"""The SDK's worker: the whole life of a run over HTTP."""

from tests.sdk.harness import Service, StartSdkWorker


def test_a_run_comes_back_as_the_handler_left_it(
    service: Service, start_sdk_worker: StartSdkWorker
) -> None:
    start_sdk_worker(service.url, service.token)
    client = service.client
    values = [None, 1.0, {"a": [1, 2.5, "ä\u0007"]}, 2**70]
    runs = [client.enqueue(task, value) for task in ("echo", "a_echo") for value in values]

    assert [client.result(run.id, 20) for run in runs] == values + values


def test_plain_functions_and_objects_are_handlers_too(
    service: Service, start_sdk_worker: StartSdkWorker
) -> None:
    start_sdk_worker(service.url, service.token)
    client = service.client
    added = client.enqueue("add", args=[1], kwargs={"b": 41}, version=2)
    counted = client.enqueue("object", {"a": 1})

    assert client.result(added.id, 20) == 42
    assert client.result(counted.id, 20) == {"attempt": 1, "payload": {"a": 1}}
