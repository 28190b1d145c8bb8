"""The parts of tools/torture and tools/cluster: see docs/torture.md."""
