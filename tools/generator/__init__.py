"""What tools/generate is made of: the schema model and one module per kind of output."""
