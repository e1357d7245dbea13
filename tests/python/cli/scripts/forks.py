"""A child that evaluates what the parent has trained, while that goes on."""

import os
import sys

import torch
from layers import batches, network, train

torch.set_num_threads(1)  # those of OpenMP do not survive a fork
model = network()
train(model, batches(2))
for parameter in model.parameters():
    parameter.grad = None
child = os.fork()
if child == 0:
    with torch.no_grad():
        torch.save(model(torch.ones(64, 256)), "evaluated.pt")
    sys.exit(5)  # an ordinary end: what was registered for it is done
train(model, batches(2))
torch.save(model.state_dict(), "trained.pt")
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
