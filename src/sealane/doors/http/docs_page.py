"""`/docs`: the API as a page for people, written out by the node from its own OpenAPI document. It loads nothing."""

from __future__ import annotations

import html
import json
from collections.abc import Iterator, Mapping
from typing import Any

from fastapi import APIRouter, FastAPI, Request
from fastapi.responses import HTMLResponse, Response

METHODS = ("get", "post", "put", "patch", "delete")
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
_STYLE = """
body{font:16px/1.5 system-ui,sans-serif;max-width:60em;margin:2em auto;padding:0 1em;color:#1b2733}
h1{font-weight:600}h2{margin-top:2em;text-transform:capitalize;border-bottom:1px solid #d5dde5}
details{border:1px solid #d5dde5;border-radius:6px;margin:.5em 0}summary{padding:.5em .8em;cursor:pointer}
summary:hover{background:#f3f6f9}details>div{padding:0 1em 1em}
code,pre{font:14px/1.45 ui-monospace,monospace}pre{background:#f3f6f9;border-radius:6px;padding:.7em;overflow-x:auto}
.m{display:inline-block;min-width:4.2em;font-weight:700;font-size:.8em}
.get{color:#0b6bcb}.post{color:#157f3b}.put,.patch{color:#9a5b00}.delete{color:#b3261e}
table{border-collapse:collapse}td{padding:.15em 1em .15em 0;vertical-align:top}.s{color:#55636f}
@media(prefers-color-scheme:dark){body{background:#12181f;color:#dbe4ec}pre,summary:hover{background:#1b242e}
details,h2{border-color:#2c3947}.s{color:#94a3b1}.get{color:#6cb2ff}.post{color:#5fce86}.put,.patch{color:#e6b35c}
.delete{color:#ff8a80}a{color:#6cb2ff}}
"""


docs_routes = APIRouter(include_in_schema=False)


@docs_routes.get("/docs")
async def _docs(request: Request) -> Response:
    # Asked of the request and not from around it, as in `watching`.
    app: FastAPI = request.app
    return HTMLResponse(page_of(app.openapi()), headers={"content-security-policy": _POLICY})


def page_of(document: Mapping[str, Any]) -> str:
    """The whole page."""
    sections: dict[str, list[str]] = {}
    for path, operations in document["paths"].items():
        for method in METHODS:
            if method in operations:
                operation = operations[method]
                sections.setdefault(operation.get("tags", ["more"])[-1], []).append(_operation(path, method, operation))
    body = "".join(f"<h2>{_text(tag)}</h2>{''.join(found)}" for tag, found in sections.items())
    info = document["info"]
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{_text(info["title"])} API</title>'
        f'<meta name="viewport" content="width=device-width"><style>{_STYLE}</style>'
        f"<h1>{_text(info['title'])} {_text(info['version'])}</h1><p>{_text(info.get('description', ''))}</p>"
        f'<p class="s">For programs: <a href="/openapi.json">openapi.json</a>.</p>{body}</html>'
    )


def _operation(path: str, method: str, operation: Mapping[str, Any]) -> str:
    parts = [
        f'<details><summary><span class="m {method}">{method.upper()}</span> <code>{_text(path)}</code>'
        f' <span class="s">{_text(operation.get("summary", ""))}</span></summary><div>',
        f"<p>{_text(operation.get('description', ''))}</p>",
        _parameters(operation.get("parameters", [])),
        *_bodies(operation),
        f"<pre>{_text(curl_of(path, method, operation))}</pre>",
        _answers(operation.get("responses", {})),
        "</div></details>",
    ]
    return "".join(parts)


def _parameters(parameters: list[Mapping[str, Any]]) -> str:
    rows = [
        f"<tr><td><code>{_text(each['name'])}</code></td><td class=s>{_text(each['in'])}</td>"
        f"<td>{_text(each.get('description', ''))} "
        f"<span class=s>{_text(_bounds(each.get('schema', {})))}</span></td></tr>"
        for each in parameters
    ]
    return f"<table>{''.join(rows)}</table>" if rows else ""


def _bounds(schema: Mapping[str, Any]) -> str:
    words = [str(schema["type"])] if "type" in schema else []
    if "minimum" in schema and "maximum" in schema:
        words.append(f"{schema['minimum']} to {schema['maximum']}")
    if "default" in schema:
        words.append(f"default {schema['default']}")
    return ", ".join(words)


def _bodies(operation: Mapping[str, Any]) -> Iterator[str]:
    content = operation.get("requestBody", {}).get("content", {})
    if content:
        kinds = ", ".join(f"<code>{_text(kind)}</code>" for kind in content)
        yield f"<p>Body: {kinds}</p>"


def curl_of(path: str, method: str, operation: Mapping[str, Any]) -> str:
    """A line to try it with."""
    flags = ["" if method == "get" else f"-X {method.upper()}", "--cacert ca.pem", '-H "Authorization: Bearer $KEY"']
    content = operation.get("requestBody", {}).get("content", {}).get("application/json")
    if content is not None:
        example: Any = next((each["value"] for each in content.get("examples", {}).values()), {})
        flags += ["-H 'content-type: application/json'", f"-d '{json.dumps(example)}'"]
    return " ".join(["curl", *filter(None, flags), f"'https://localhost:8080{path}'"])


def _answers(responses: Mapping[str, Mapping[str, Any]]) -> str:
    rows = [
        f"<tr><td><code>{_text(status)}</code></td><td>{_text(answer.get('description', ''))}</td></tr>"
        for status, answer in sorted(responses.items())
    ]
    return f"<p>Answers:</p><table>{''.join(rows)}</table>"


def _text(value: object) -> str:
    return html.escape(str(value))
