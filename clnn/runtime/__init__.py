"""Drivers, devices, memory, templates, programs and launches: the only floor that talks to pyopencl and Mako."""
