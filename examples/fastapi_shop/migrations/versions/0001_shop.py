# SPDX-License-Identifier: MIT
"""Products, orders, imports and reports."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    op.create_table(
        "products",
        sa.Column("sku", sa.Text, primary_key=True),
        sa.Column("title", sa.Text, nullable=False),
        sa.Column("price", sa.Numeric(10, 2), nullable=False),
        sa.Column("stock", sa.Integer, nullable=False),
        sa.CheckConstraint("stock >= 0", name="products_stock_check"),
    )
    op.create_table(
        "orders",
        sa.Column("id", sa.Uuid, primary_key=True),
        sa.Column("email", sa.Text, nullable=False),
        sa.Column("sku", sa.Text, sa.ForeignKey("products.sku"), nullable=False),
        sa.Column("quantity", sa.Integer, nullable=False),
        sa.Column("total", sa.Numeric(10, 2), nullable=False),
        sa.Column(
            "created_at", sa.DateTime(timezone=True), nullable=False, server_default=sa.func.now()
        ),
    )
    op.create_table(
        "imports",
        sa.Column("id", sa.Uuid, primary_key=True),
        sa.Column("text", sa.Text, nullable=False),
        sa.Column("done", sa.Integer, nullable=False),
    )
    op.create_table(
        "reports",
        sa.Column("day", sa.Date, primary_key=True),
        sa.Column("text", sa.Text, nullable=False),
    )


def downgrade() -> None:
    for table in ("reports", "imports", "orders", "products"):
        op.drop_table(table)
