"""The history of the schema, for alembic."""
