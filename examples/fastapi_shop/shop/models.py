# SPDX-License-Identifier: MIT
"""The tables of the shop."""

from datetime import date, datetime
from decimal import Decimal
from uuid import UUID

from sqlalchemy import CheckConstraint, DateTime, ForeignKey, Numeric, Text, func
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column


class Base(DeclarativeBase):
    """The base of all tables."""

    type_annotation_map = {str: Text, Decimal: Numeric(10, 2), datetime: DateTime(timezone=True)}


class Product(Base):
    """Something to buy."""

    __tablename__ = "products"
    __table_args__ = (CheckConstraint("stock >= 0", name="products_stock_check"),)

    sku: Mapped[str] = mapped_column(primary_key=True)
    title: Mapped[str]
    price: Mapped[Decimal]
    stock: Mapped[int]


class Order(Base):
    """A customer's order of one product."""

    __tablename__ = "orders"

    id: Mapped[UUID] = mapped_column(primary_key=True)
    email: Mapped[str]
    sku: Mapped[str] = mapped_column(ForeignKey("products.sku"))
    quantity: Mapped[int]
    total: Mapped[Decimal]
    created_at: Mapped[datetime] = mapped_column(server_default=func.now())


class Import(Base):
    """An uploaded list of products, and how many of its rows are stored."""

    __tablename__ = "imports"

    id: Mapped[UUID] = mapped_column(primary_key=True)
    text: Mapped[str]
    done: Mapped[int]


class Report(Base):
    """The report of one day."""

    __tablename__ = "reports"

    day: Mapped[date] = mapped_column(primary_key=True)
    text: Mapped[str]
