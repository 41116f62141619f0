"""Functions for :meth:`DistributedDataParallel.register_comm_hook`, as they are among the processes of a group of one."""
import clnn
from clnn.futures import Future


def noop_hook(_, bucket):
    """The gradients as they are, without an exchange."""
    future = Future()
    future.set_result(bucket.buffer())
    return future


def allreduce_hook(process_group, bucket):
    """The mean over the processes."""
    return noop_hook(None, bucket)


def _rounding(dtype):
    def hook(process_group, bucket):
        future = Future()
        future.set_result(bucket.buffer().to(dtype).to(bucket.buffer().dtype))
        return future

    def wrapper(hook):
        def wrapped(state, bucket):
            given = bucket.buffer()
            bucket.set_buffer(given.to(dtype))
            return hook(state, bucket).then(lambda future: future.value().to(given.dtype))
        return wrapped
    hook.__doc__ = f"The mean over the processes, exchanged as numbers of {dtype}."
    wrapper.__doc__ = f"Let another function have the gradients as numbers of {dtype}."
    return hook, wrapper


fp16_compress_hook, fp16_compress_wrapper = _rounding(clnn.float16)
bf16_compress_hook, bf16_compress_wrapper = _rounding(clnn.bfloat16)
HOOKS = {f.__name__: f for f in (noop_hook, allreduce_hook)}
for _name in ("fp16_compress_hook", "fp16_compress_wrapper", "bf16_compress_hook", "bf16_compress_wrapper"):
    HOOKS[_name] = globals()[_name]
    HOOKS[_name].__name__ = HOOKS[_name].__qualname__ = _name
