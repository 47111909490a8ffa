"""The libraries of the dashboard's pages, fetched and bundled when the package is built."""
