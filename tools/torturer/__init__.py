"""What tools/torture is made of: see docs/torture.md."""
