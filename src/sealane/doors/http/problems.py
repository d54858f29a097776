"""Whatever goes wrong in a route is answered with a problem document."""

from __future__ import annotations

from http import HTTPStatus

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException

from sealane.doors.http.problem import Problem, problem_of
from sealane.doors.http.request_ids import request_id_of
from sealane.errors import SealaneError
from sealane.node.gate import Gate


def answer_with_problems(app: FastAPI) -> None:
    """Let every error of the app become a problem document."""
    app.add_exception_handler(HTTPException, _refused)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(SealaneError, _known)
    app.add_exception_handler(Exception, _failed)


async def problem_from(request: Request, error: Exception) -> Problem:
    """The document for whatever a route raises."""
    if isinstance(error, SealaneError):
        return await _known(request, error)
    if isinstance(error, HTTPException):
        return await _refused(request, error)
    return await _failed(request, error)


async def _refused(request: Request, error: Exception) -> Problem:
    assert isinstance(error, HTTPException)
    if error.status_code == HTTPStatus.NOT_FOUND and error.detail == HTTPStatus.NOT_FOUND.phrase:
        return Problem(404, f"there is nothing at {request.url.path}; /docs lists what there is")
    if error.status_code == HTTPStatus.METHOD_NOT_ALLOWED:
        return Problem(405, f"{request.url.path} does not take {request.method}", headers=error.headers)
    return Problem(error.status_code, str(error.detail), headers=error.headers)


async def _invalid(request: Request, error: Exception) -> Problem:
    assert isinstance(error, RequestValidationError)
    # The input itself stays out of the answer: it may be a payload.
    errors = [{"at": ".".join(str(part) for part in each["loc"]), "problem": each["msg"]} for each in error.errors()]
    detail = "; ".join(f"{each['at']}: {each['problem']}" for each in errors)
    return Problem(422, detail, errors=errors)


async def _known(request: Request, error: Exception) -> Problem:
    assert isinstance(error, SealaneError)
    gate: Gate | None = request.app.state.gate
    if gate is not None:
        gate.refused(error)
    return problem_of(error, request_id=request_id_of(request.scope))


async def _failed(request: Request, error: Exception) -> Problem:
    return Problem(
        500, "the node failed to answer this request; its log has the reason", request_id=request_id_of(request.scope)
    )
