"""Cypher over the design record: a gate that reads the text, and a copy of one project's graph to run it on."""
