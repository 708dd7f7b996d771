# SPDX-License-Identifier: MIT
"""The shop's HTTP interface."""

import hashlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated
from uuid import UUID, uuid4

from fastapi import Body, FastAPI, HTTPException, Response
from pydantic import BaseModel, Field
from sqlalchemy.exc import IntegrityError

from byrote import RunNotFound, Status
from shop import tasks
from shop.database import engine, sessions
from shop.models import Import, Order, Product


@asynccontextmanager
async def lifespan(_web: FastAPI) -> AsyncIterator[None]:
    """Close the connections of Byrote and SQLAlchemy at the end."""
    async with tasks.app:
        yield
    await engine.dispose()


web = FastAPI(title="Shop", lifespan=lifespan)


class NewOrder(BaseModel):
    email: str
    sku: str
    quantity: int = Field(ge=1)


class Accepted(BaseModel):
    id: str
    run: str


class Progress(BaseModel):
    status: str
    attempts: int
    percent: float | None
    result: object


@web.post("/orders", status_code=201)
async def order(new: NewOrder) -> Accepted:
    """Store an order; its mail and the warehouse's message are committed with it, or not at all."""
    try:
        async with sessions.begin() as session:
            product = await session.get(Product, new.sku)
            if product is None:
                raise HTTPException(404, f"There is no product {new.sku!r}.")
            made = Order(
                id=uuid4(),
                email=new.email,
                sku=new.sku,
                quantity=new.quantity,
                total=product.price * new.quantity,
            )
            session.add(made)
            receipt = tasks.Receipt(made.id, made.email, made.total)
            run = await tasks.send_receipt.using(connection=session).aenqueue(receipt)
            await tasks.notify_warehouse.using(connection=session).aenqueue(
                made.id, made.sku, made.quantity
            )
            product.stock -= new.quantity  # The commit fails if the table would go below zero.
    except IntegrityError:
        raise HTTPException(409, f"There are fewer than {new.quantity} in stock.") from None
    return Accepted(id=str(made.id), run=run.id)


@web.post("/imports", status_code=202)
async def upload_products(text: Annotated[str, Body(media_type="text/csv")]) -> Accepted:
    async with sessions.begin() as session:
        upload = Import(id=uuid4(), text=text, done=0)
        session.add(upload)
        run = await tasks.import_products.using(connection=session).aenqueue(upload.id)
    return Accepted(id=str(upload.id), run=run.id)


@web.post("/pictures", status_code=202)
def upload_picture(
    content: Annotated[bytes, Body(media_type="application/octet-stream")], width: int = 64
) -> Accepted:
    """Store a picture and shrink it. FastAPI calls this in a thread, where `enqueue` may block."""
    picture = hashlib.sha256(content).hexdigest()
    tasks.MEDIA.mkdir(parents=True, exist_ok=True)
    (tasks.MEDIA / picture).write_bytes(content)
    run = tasks.thumbnail.enqueue(picture, width)
    return Accepted(id=picture, run=run.id)


@web.get("/runs/{run_id}")
async def progress(run_id: UUID) -> Progress:
    """How far a task is; 404 if there is no such run."""
    try:
        run = await tasks.app.run(str(run_id)).arefresh()
    except RunNotFound as error:
        raise HTTPException(404, str(error)) from None
    percent = None if run.progress is None else run.progress.percent
    return Progress(status=run.status, attempts=run.attempts, percent=percent, result=run.result)


@web.get("/runs/{run_id}/thumbnail")
def picture(run_id: UUID) -> Response:
    try:
        run = tasks.app.run(str(run_id)).refresh()
    except RunNotFound as error:
        raise HTTPException(404, str(error)) from None
    if run.status is not Status.SUCCESSFUL:
        raise HTTPException(409, f"The picture is not ready: the run is {run.status}.")
    found = tasks.app.run(run.result["run"]).artifact("thumbnail.png")
    return Response(found.read(), media_type=found.media_type)
