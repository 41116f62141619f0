"""Work that is started before any of it is compared, of one test or of several cases of a parametrised test: the kernels of all are then built in few
programs, which takes less than half of the time where a program has fixed costs."""
import numpy as np


class Later:
    """Comparisons of a test that wait until all of its work was started (the fixture ``later``)."""

    def __init__(self):
        self.pairs = []

    def equal(self, got, want):
        self.pairs.append((got, lambda values: np.testing.assert_array_equal(values, want)))

    def close(self, got, want, rtol=1e-7, atol=0.0, text=""):
        self.pairs.append((got, lambda values: np.testing.assert_allclose(values, want, rtol, atol, err_msg=text)))

    def settle(self):
        for got, _ in self.pairs:
            got._storage.buffer()
        for got, compare in self.pairs:
            compare(got.detach().numpy())


class Ahead:
    """``start(**parameters)`` begins one case and returns the function that ends it (or None); what it raises is raised in the test of that case."""

    def __init__(self, start, cases=16):
        self.start, self.cases, self.started = start, cases, {}

    def finish(self, request):
        """End the case of the running test; begin the next ones first when it was not begun yet."""
        node = request.node
        if node.nodeid not in self.started:
            items = request.session.items
            following = (item for item in items[items.index(node):] if getattr(item, "originalname", None) == node.originalname)
            for item, _ in zip(following, range(self.cases)):
                if item.nodeid not in self.started:
                    self.started[item.nodeid] = self._begin(item.callspec.params)
        finish = self.started.pop(node.nodeid)
        if isinstance(finish, Exception):
            raise finish
        if finish is not None:
            finish()

    def _begin(self, parameters):
        try:
            return self.start(**parameters)
        except Exception as failure:
            return failure
