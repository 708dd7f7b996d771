# SPDX-License-Identifier: MIT
"""The OpenAPI 3.1 description, made of the routes and the types of the wire."""

import re
from collections.abc import Sequence
from typing import Any, Final

import msgspec

from byrote.service.http.request import Endpoint, NoQuery
from byrote.wire.problems import MEDIA_TYPE, REFUSALS, Problem
from byrote.wire.terms import KEY_MAX, PATH_TYPES, Name

REFERENCE: Final = "#/components/schemas/{name}"
EVERYWHERE: Final = (400, 401, 403, 404, 408, 413, 415, 422, 429, 503)
"""Refusals that any route may answer with."""
JSON: Final = "application/json"
BYTES: Final = "application/octet-stream"

type JsonSchema = dict[str, Any]


def describe(endpoints: Sequence[Endpoint], *, version: str) -> JsonSchema:
    """The whole description."""
    types: list[Any] = [Problem, *PATH_TYPES.values(), Name]
    for endpoint in endpoints:
        types += [t for t in (endpoint.body, endpoint.reply, endpoint.batch_reply) if t is not None]
        types.append(endpoint.query)
    schemas, components = msgspec.json.schema_components(types, ref_template=REFERENCE)
    known = dict(zip(map(id, types), schemas, strict=True))
    paths: dict[str, JsonSchema] = {}
    for endpoint in endpoints:
        operation = _operation(endpoint, known, components)
        paths.setdefault(endpoint.path, {})[endpoint.method.lower()] = operation
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Byrote",
            "version": version,
            "description": "A task queue on PostgreSQL, by leases.",
        },
        "security": [{"token": []}],
        "paths": paths | {"/livez": _livez()},
        "components": {
            "schemas": components,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }


def _operation(
    endpoint: Endpoint, known: dict[int, JsonSchema], components: JsonSchema
) -> JsonSchema:
    roles = " or ".join([*endpoint.roles, "admin"]) if endpoint.roles else "any"
    doc = (endpoint.handler.__doc__ or "").strip()
    operation: JsonSchema = {
        "operationId": endpoint.handler.__name__,
        "summary": doc.partition("\n")[0],
        "description": f"Role: {roles}.",
        "parameters": [
            *_path_parameters(endpoint, known),
            *_query_parameters(endpoint, components),
        ],
        "responses": _responses(endpoint, known),
    }
    if endpoint.keyed:
        operation["parameters"].append(
            {
                "name": "Idempotency-Key",
                "in": "header",
                "schema": {"type": "string", "minLength": 1, "maxLength": KEY_MAX},
            }
        )
    if endpoint.streams:
        content = {BYTES: {"schema": {"type": "string", "format": "binary"}}}
        operation["requestBody"] = {"required": True, "content": content}
    if endpoint.body is not None:
        content = {JSON: {"schema": known[id(endpoint.body)]}}
        operation["requestBody"] = {"required": True, "content": content}
    return operation


def _path_parameters(endpoint: Endpoint, known: dict[int, JsonSchema]) -> list[JsonSchema]:
    return [
        {
            "name": name,
            "in": "path",
            "required": True,
            "schema": known[id(PATH_TYPES.get(name, Name))],
        }
        for name in re.findall(r"{(\w+)}", endpoint.path)
    ]


def _query_parameters(endpoint: Endpoint, components: JsonSchema) -> list[JsonSchema]:
    if endpoint.query is NoQuery:
        return []
    # Described as parameters, so not among the schemas of bodies.
    found = components.get(endpoint.query.__name__, {})
    return [
        {
            "name": name,
            "in": "query",
            "required": name in found["required"],
            "schema": _plain(schema),
        }
        for name, schema in found["properties"].items()
    ]


def _plain(schema: JsonSchema) -> JsonSchema:
    """A parameter is absent or present, never null."""
    options = [option for option in schema.get("anyOf", ()) if option != {"type": "null"}]
    if len(options) != 1:
        return {key: value for key, value in schema.items() if value is not None}
    return options[0]  # type: ignore[no-any-return]  # A schema is plain JSON.


def _responses(endpoint: Endpoint, known: dict[int, JsonSchema]) -> JsonSchema:
    replies = [known[id(t)] for t in (endpoint.reply, endpoint.batch_reply) if t is not None]
    content: JsonSchema = {endpoint.media: {"schema": {"type": "string"}}}
    if replies:
        content = {JSON: {"schema": replies[0] if len(replies) == 1 else {"anyOf": replies}}}
    done = {str(endpoint.status): {"description": "Done.", "content": content}}
    if endpoint.found:
        done["200"] = {"description": "It exists already; the reply names it.", "content": content}
    refusals = sorted({*EVERYWHERE, *endpoint.refusals})
    return done | {str(status): _refusal(status) for status in refusals}


def _refusal(status: int) -> JsonSchema:
    titles = " / ".join(refusal.title for refusal in REFUSALS.values() if refusal.status == status)
    schema = {"$ref": REFERENCE.format(name="Problem")}
    answer: JsonSchema = {"description": f"{titles}.", "content": {MEDIA_TYPE: {"schema": schema}}}
    if status in {429, 503}:
        answer["headers"] = {"Retry-After": {"schema": {"type": "integer"}}}
    return answer


def _livez() -> JsonSchema:
    reply = {"description": "The process lives.", "content": {JSON: {"schema": {"type": "object"}}}}
    return {
        "get": {
            "operationId": "livez",
            "summary": "Whether the process lives; needs neither token nor database.",
            "security": [],
            "responses": {"200": reply, "503": _refusal(503)},
        }
    }
