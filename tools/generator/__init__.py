"""The parts of tools/generate: the schema model, and one module per kind of output."""
