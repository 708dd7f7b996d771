# SPDX-License-Identifier: MIT
"""Errors on the wire: RFC 9457 problem+json with a stable `code`, the same class on both sides."""

from collections.abc import Mapping
from typing import Final

import msgspec

from byrote.core.errors import (
    BadArguments,
    BadOption,
    BadPayload,
    ByroteError,
    DatabaseUnreachable,
    KeyContended,
    PayloadTooLarge,
    RowLocked,
    RunNotFound,
    SchemaMismatch,
    UnknownQueue,
)

MEDIA_TYPE: Final = "application/problem+json"
URN: Final = "urn:byrote:problem:"


class FieldError(msgspec.Struct, frozen=True):
    """The error in one field."""

    path: str
    """Path of the field, as in `$.runs[3].queue`."""
    message: str


class Problem(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Why a request was refused, and what to do instead."""

    type: str
    """`urn:byrote:problem:` and the code."""
    title: str
    status: int
    detail: str
    code: str
    """Stable: programs may depend on it."""
    request_id: str = ""
    errors: list[FieldError] = []
    retry_after_s: float | None = None
    """As the Retry-After header; the same request may succeed then."""


class Refused(ByroteError):
    """The service refused a request; see `status` and `code`."""

    code = "refused"
    status = 400
    title = "The request was refused"

    def __init__(
        self,
        detail: str,
        *,
        errors: tuple[FieldError, ...] = (),
        retry_after_s: float | None = None,
        request_id: str = "",
    ) -> None:
        super().__init__(detail)
        self.errors = errors
        self.retry_after_s = retry_after_s
        self.request_id = request_id


class BadRequest(Refused):
    """The request could not be read."""

    code, status, title = "bad_request", 400, "The request cannot be read"


class Invalid(Refused):
    """The request was read, and a value in it is invalid."""

    code, status, title = "invalid", 422, "A value is not acceptable"


class Unauthorized(Refused):
    """The token is missing or not valid."""

    code, status, title = "unauthorized", 401, "A valid token is needed"


class Forbidden(Refused):
    """The token is valid, but not for this request."""

    code, status, title = "forbidden", 403, "The token does not allow this"


class NotFound(Refused):
    """The object does not exist, or this token may not see it."""

    code, status, title = "not_found", 404, "Not found"


class MethodNotAllowed(Refused):
    """The address is right and the method is not."""

    code, status, title = "method_not_allowed", 405, "Method not allowed"


class Conflict(Refused):
    """The status of the run does not allow this."""

    code, status, title = "conflict", 409, "Not in this state"


class RunLocked(Refused):
    """Another transaction has locked the run, and nothing was done: try again later."""

    code, status, title = "row_locked", 503, "The run is locked"


class KeyReused(Refused):
    """The Idempotency-Key was used with another body."""

    code, status, title = "key_reused", 409, "The Idempotency-Key belongs to another request"


class TooLarge(Refused):
    """The body is over its limit."""

    code, status, title = "too_large", 413, "The body is too large"


class NotJson(Refused):
    """The body is not JSON."""

    code, status, title = "not_json", 415, "Send JSON"


class TooMany(Refused):
    """The token sends more requests than it may."""

    code, status, title = "too_many", 429, "Too many requests"


class TooSlow(Refused):
    """The request did not arrive, or was not done, in time."""

    code, status, title = "too_slow", 408, "The request took too long to arrive"


class Broken(Refused):
    """The service failed; its log has the error under the request's id."""

    code, status, title = "broken", 500, "The service failed"


class Unavailable(Refused):
    """The service is stopping or full, or its database does not answer: try again later."""

    code, status, title = "unavailable", 503, "Try again in a moment"


REFUSALS: Final[Mapping[str, type[Refused]]] = {
    refusal.code: refusal
    for refusal in (
        BadRequest,
        Invalid,
        Unauthorized,
        Forbidden,
        NotFound,
        MethodNotAllowed,
        Conflict,
        KeyReused,
        TooLarge,
        NotJson,
        TooMany,
        TooSlow,
        Broken,
        Unavailable,
        RunLocked,
    )
}
PASSING: Final = frozenset({"too_many", "too_slow", "unavailable", "broken", "row_locked"})
"""Codes after which the same request may succeed a little later."""


def refusal_of(error: ByroteError) -> Refused:  # noqa: PLR0911 -- one return per kind.
    """Returns the refusal for an error of the core."""
    match error:
        case Refused():
            return error
        case PayloadTooLarge():
            return TooLarge(str(error))
        case BadPayload(path=path, reason=reason):
            return Invalid(str(error), errors=(FieldError(path, reason),))
        case BadOption() | BadArguments():
            return Invalid(str(error))
        case RunNotFound() | UnknownQueue():
            return NotFound(str(error))
        case DatabaseUnreachable():
            # The address of the database is not disclosed to clients.
            return Unavailable("The database does not answer.", retry_after_s=2)
        case SchemaMismatch():
            return Unavailable("The database lacks tables of Byrote.", retry_after_s=2)
        case RowLocked(brief=brief):
            return RunLocked(brief, retry_after_s=1)
        case KeyContended():
            return Unavailable(str(error), retry_after_s=1)
        case _:
            return Refused(str(error))


def problem_of(error: Refused, *, request_id: str = "") -> Problem:
    """Returns the body of a refusal."""
    return Problem(
        type=URN + error.code,
        title=error.title,
        status=error.status,
        detail=str(error),
        code=error.code,
        request_id=request_id,
        errors=list(error.errors),
        retry_after_s=error.retry_after_s,
    )


def error_of(status: int, body: bytes) -> Refused:
    """Returns the error for a response, also for one of a proxy in between, without a Problem."""
    try:
        problem = msgspec.json.decode(body, type=Problem)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        refusal = next((refusal for refusal in REFUSALS.values() if refusal.status == status), None)
        if refusal is None:
            refusal = Unavailable if status >= 500 else BadRequest
        return refusal(f"The answer was {status}, and not from Byrote.")
    refusal = REFUSALS.get(problem.code, Unavailable if problem.status >= 500 else BadRequest)
    return refusal(
        problem.detail,
        errors=tuple(problem.errors),
        retry_after_s=problem.retry_after_s,
        request_id=problem.request_id,
    )
