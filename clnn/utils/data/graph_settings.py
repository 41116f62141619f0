"""Settings for all steps of a pipe."""

from clnn.utils.data.graph import traverse_dps
from clnn.utils.data.sampler import draw_seed

__all__ = ["apply_random_seed", "apply_sharding", "apply_shuffle_seed", "apply_shuffle_settings", "get_all_graph_pipes"]


def get_all_graph_pipes(graph):
    """The pipes of a graph of :func:`~clnn.utils.data.graph.traverse_dps`, each once."""
    found = {}
    for key, (pipe, below) in graph.items():
        found[key] = pipe
        found.update((id(p), p) for p in get_all_graph_pipes(below))
    return list(found.values())


def apply_sharding(datapipe, num_of_instances, instance_id, sharding_group=None):
    """Give every step that shares out samples its share."""
    for pipe in get_all_graph_pipes(traverse_dps(datapipe)):
        if callable(getattr(pipe, "apply_sharding", None)):
            pipe.apply_sharding(num_of_instances, instance_id, sharding_group)
    return datapipe


def apply_shuffle_settings(datapipe, shuffle=None):
    """Switch all shuffling on or off; where there is none, it is added behind the last step."""
    if shuffle is None:
        return datapipe
    found = [pipe for pipe in get_all_graph_pipes(traverse_dps(datapipe)) if callable(getattr(pipe, "set_shuffle", None))]
    if not found and shuffle:
        import warnings
        warnings.warn("`shuffle=True` was set, but the datapipe does not contain a `Shuffler`. Adding one at the end. "
                      "Be aware that the default buffer size might not be sufficient for your task.", stacklevel=2)
        datapipe = datapipe.shuffle()
        found = [datapipe]
    for pipe in found:
        pipe.set_shuffle(shuffle)
    return datapipe


def apply_random_seed(datapipe, rng):
    """Seed every step that draws random numbers, from a generator."""
    for pipe in get_all_graph_pipes(traverse_dps(datapipe)):
        if callable(getattr(pipe, "set_seed", None)):
            pipe.set_seed(draw_seed(rng))
    return datapipe


apply_shuffle_seed = apply_random_seed
