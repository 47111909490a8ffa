"""What alembic runs: the migrations, on the connection that `metaforge.store.upgrade` hands it."""

from alembic import context

from metaforge.store.tables import METADATA

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=METADATA,
    render_as_batch=True,
    transactional_ddl=True,
)
context.run_migrations()
