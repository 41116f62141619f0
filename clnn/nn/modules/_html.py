"""Modules as HTML for notebooks."""
import html


def parameter_count(p):
    """Number of elements; 0 of a lazy parameter, which has no shape yet."""
    try:
        return p.numel()
    except (TypeError, ValueError, RuntimeError):
        return 0


def module_html(module, name="", opened=True) -> str:
    """A module as nested, collapsible HTML: type, settings and number of parameters of each part (``Module._repr_html_``)."""
    count = sum(parameter_count(p) for p in module.parameters())
    label = f"{f'({html.escape(name)}): ' if name else ''}<b>{html.escape(type(module).__name__)}</b>({html.escape(module.extra_repr())})"
    label += f" <small>{count:,} parameters</small>" if count else ""
    children = list(module.named_children())
    if not children:
        return f"<div style='margin-left:1.4em'>{label}</div>"
    inside = "".join(module_html(child, child_name, False) for child_name, child in children)
    return f"<details style='margin-left:1.4em'{' open' if opened else ''}><summary>{label}</summary>{inside}</details>"
