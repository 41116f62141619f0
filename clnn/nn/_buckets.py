"""Programs' own functions between a backward pass and the gradients of :class:`~clnn.nn.parallel.DistributedDataParallel`."""
import clnn


class GradBucket:
    """What such a function gets: the gradients of some parameters, as one vector."""

    def __init__(self, parameters):
        self._parameters = parameters
        self._buffer = clnn.cat([clnn.zeros_like(p).view(-1) if p.grad is None else p.grad.detach().reshape(-1) for p in parameters])

    def index(self):
        """The number of the bucket; there is one."""
        return 0

    def is_last(self):
        """Whether no other follows in this pass."""
        return True

    def buffer(self):
        """All gradients, one after the other."""
        return self._buffer

    def set_buffer(self, buffer):
        """Let another vector be the gradients."""
        self._buffer = buffer

    def gradients(self):
        """The gradients in their shapes, as views of :meth:`buffer`."""
        return [part.view(p.shape) for part, p in zip(self._buffer.split([p.numel() for p in self._parameters]), self._parameters)]

    def parameters(self):
        """The parameters, in the order of their gradients."""
        return self._parameters


class Exchange:
    """Calls ``hook(state, bucket)`` once all gradients of a pass are there, and gives the parameters what its future holds."""

    def __init__(self, module, state, hook):
        self.module, self.state, self.hook, self.waiting = module, state, hook, {}
        module.register_forward_hook(self.expect)
        for p in module.parameters():
            if p.requires_grad:
                p.register_post_accumulate_grad_hook(self.arrived)

    def expect(self, module, args, output):
        """After a forward pass: which parameters the result depends on."""
        if not module.require_backward_grad_sync or not clnn.is_grad_enabled():
            self.waiting = {}
            return
        tensors = [t for t in clnn.utils._pytree.tree_leaves(output) if isinstance(t, clnn.Tensor) and t.grad_fn is not None]
        seen, todo, leaves = set(), [t.grad_fn for t in tensors], set()
        while todo:
            node = todo.pop()
            if node is None or node in seen:
                continue
            seen.add(node)
            if hasattr(node, "variable"):
                leaves.add(id(node.variable))
            todo += [following for following, _ in node.next_functions]
        self.parameters = [p for p in module.parameters() if p.requires_grad]
        self.used = {id(p) for p in self.parameters if id(p) in leaves}
        self.waiting = set(self.used)

    def arrived(self, p):
        """One gradient is complete."""
        if id(p) not in self.waiting:
            return
        self.waiting.discard(id(p))
        if not self.waiting:
            self.exchange()

    def exchange(self):
        """All are."""
        bucket = GradBucket(self.parameters)
        with clnn.no_grad():
            found = self.hook(self.state, bucket).wait()
            bucket.set_buffer(found[0] if isinstance(found, (list, tuple)) else found)
            for p, g in zip(self.parameters, bucket.gradients()):
                if id(p) in self.used:
                    p.grad.copy_(g)
