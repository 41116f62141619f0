"""Resampling of images and volumes: ``interpolate`` and its old names, ``grid_sample`` and ``affine_grid``."""
