"""The checkpoint formats behind `clnn.save` and `clnn.load`."""
