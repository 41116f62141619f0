"""Datasets, samplers and the DataLoader (PyTorch's `torch.utils.data`)."""

from clnn.utils.data._worker import WorkerInfo, get_worker_info
from clnn.utils.data.collate import default_collate, default_convert
from clnn.utils.data.dataloader import DataLoader
from clnn.utils.data.datapipes.datapipe import DataChunk, DFIterDataPipe, IterDataPipe, MapDataPipe, functional_datapipe
from clnn.utils.data.dataset import ChainDataset, ConcatDataset, Dataset, IterableDataset, StackDataset, Subset, TensorDataset, random_split
from clnn.utils.data import sampler as distributed  # noqa: F401
from clnn.utils.data.sampler import (BatchSampler, DistributedSampler, RandomSampler, Sampler, SequentialSampler, SubsetRandomSampler,
                                     WeightedRandomSampler)
from clnn.utils.data import _utils  # noqa: E402, F401
from clnn.utils.data.datapipes import iter as _iter, map as _map  # noqa: E402, F401 - their steps become methods of all pipes

__all__ = ["BatchSampler", "ChainDataset", "ConcatDataset", "DFIterDataPipe", "DataChunk", "DataLoader", "Dataset", "DistributedSampler", "IterDataPipe",
           "IterableDataset", "MapDataPipe", "RandomSampler", "Sampler", "SequentialSampler", "StackDataset", "Subset", "SubsetRandomSampler", "TensorDataset",
           "WeightedRandomSampler", "default_collate", "default_convert", "functional_datapipe", "get_worker_info", "random_split"]
