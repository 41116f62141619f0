"""Functions that modules of this package need of others that import them: who defines one puts it here.

An import inside a function would do as well, but costs each call a microsecond.
"""
