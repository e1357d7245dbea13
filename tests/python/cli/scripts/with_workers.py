"""Workers of both kinds: those that are spawned import this file again."""

import torch
from layers import network, train
from torch.utils.data import DataLoader, Dataset


class Numbers(Dataset):
    def __len__(self):
        return 3072

    def __getitem__(self, index):
        main = float(__name__ == "__main__")  # it is "__mp_main__" where it was spawned
        return torch.full((256,), main) + torch.rand(256) / 10


if __name__ == "__main__":
    model = network()
    losses = []
    for context in ("fork", "spawn"):
        loader = DataLoader(Numbers(), 1024, num_workers=1, multiprocessing_context=context)
        losses += train(model, loader)
    torch.save([losses, model.state_dict()], "result.pt")
