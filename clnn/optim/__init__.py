"""Optimizers, learning-rate schedules and weight averaging (PyTorch's `torch.optim`)."""

from clnn.optim.adadelta import Adadelta
from clnn.optim.adafactor import Adafactor
from clnn.optim.adagrad import Adagrad
from clnn.optim.adam import Adam, AdamW
from clnn.optim.adamax import Adamax
from clnn.optim.asgd import ASGD
from clnn.optim.lbfgs import LBFGS
from clnn.optim.muon import Muon
from clnn.optim.nadam import NAdam
from clnn.optim.optimizer import Optimizer
from clnn.optim.radam import RAdam
from clnn.optim.rmsprop import RMSprop
from clnn.optim.rprop import Rprop
from clnn.optim.sgd import SGD
from clnn.optim.sparse_adam import SparseAdam
from clnn.optim import lr_scheduler, swa_utils  # noqa: E402 - they build on the optimizers
