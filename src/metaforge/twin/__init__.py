"""The design record: items and their revisions, records, links, and the runs that draft changes to them."""
