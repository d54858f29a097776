"""The whole of `/api/v1`, in the order in which it is described. What is asked most often is found first."""

from __future__ import annotations

from fastapi import APIRouter

from sealane.doors.http.api import (
    events,
    exchanges,
    publishing,
    pulling,
    schemas,
    subscriptions,
    topics,
    transactions,
    webhooks,
)


def api_routes() -> APIRouter:
    api = APIRouter(prefix="/api/v1/domains/{domain}")
    for part in (publishing, pulling, events, topics, subscriptions, exchanges, transactions, schemas, webhooks):
        api.include_router(part.routes)
    return api
