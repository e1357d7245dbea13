"""Networks for pictures."""

import torch
from torch import nn
from torch.nn import functional

from .program import Training, program


def conv_norm(inputs: int, outputs: int, stride: int = 1) -> list[nn.Module]:
    return [nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False), nn.BatchNorm2d(outputs)]


class Residual(nn.Module):
    def __init__(self, inputs: int, outputs: int, stride: int = 1):
        super().__init__()
        self.path = nn.Sequential(
            *conv_norm(inputs, outputs, stride),
            nn.ReLU(inplace=True),
            *conv_norm(outputs, outputs),
        )
        is_plain = inputs == outputs and stride == 1
        self.shortcut = (
            nn.Identity() if is_plain else nn.Sequential(*conv_norm(inputs, outputs, stride))
        )

    def forward(self, x):
        y = self.path(x)
        y += self.shortcut(x)
        return functional.relu_(y)


class ResNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(*conv_norm(3, 8), nn.ReLU(inplace=True))
        self.blocks = nn.Sequential(
            *[Residual(8, 8) for _ in range(4)], Residual(8, 16, 2), Residual(16, 16)
        )
        self.head = nn.Linear(16, 10)

    def forward(self, x):
        return self.head(self.blocks(self.stem(x)).mean((2, 3)))


def classify(model: nn.Module, optimizer, batch=(8, 3, 16, 16), classes=10) -> Training:
    def step():
        inputs = torch.randn(batch)
        targets = torch.randint(0, classes, batch[:1])
        optimizer.zero_grad()
        loss = functional.cross_entropy(model(inputs), targets)
        loss.backward()
        optimizer.step()
        return loss

    return Training(step, [model], [optimizer])


@program()
def resnet():
    model = ResNet()
    optimizer = torch.optim.SGD(
        model.parameters(), lr=0.05, momentum=0.9, weight_decay=1e-4, nesterov=True
    )
    return classify(model, optimizer)


class UNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.down = nn.ModuleList([self.double(a, b) for a, b in ((1, 8), (8, 16), (16, 32))])
        self.up = nn.ModuleList([self.double(a, b) for a, b in ((48, 16), (24, 8))])
        self.grow = nn.ModuleList([nn.ConvTranspose2d(n, n, 2, 2) for n in (32, 16)])
        self.head = nn.Conv2d(8, 2, 1)

    @staticmethod
    def double(inputs, outputs):
        relu = nn.ReLU(inplace=True)
        return nn.Sequential(*conv_norm(inputs, outputs), relu, *conv_norm(outputs, outputs), relu)

    def forward(self, x):
        skips = []
        for block in self.down:
            x = block(x if not skips else functional.max_pool2d(x, 2))
            skips.append(x)
        skips.pop()
        for grow, block in zip(self.grow, self.up, strict=True):
            x = block(torch.cat([grow(x), skips.pop()], 1))
        return self.head(x)


@program()
def unet():
    model = UNet()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)

    def step():
        inputs = torch.randn(4, 1, 24, 24)
        targets = (inputs[:, 0] > 0).long()
        optimizer.zero_grad()
        loss = functional.cross_entropy(model(inputs), targets)
        loss.backward()
        optimizer.step()
        return loss

    return Training(step, [model], [optimizer])


class Discriminator(nn.Sequential):
    def __init__(self):
        super().__init__(
            nn.Conv2d(1, 8, 3, 2, 1),
            nn.LeakyReLU(0.2, inplace=True),
            nn.Conv2d(8, 16, 3, 2, 1),
            nn.Tanh(),
            nn.Flatten(),
            nn.Linear(256, 1),
        )


class Generator(nn.Sequential):
    def __init__(self):
        super().__init__(
            nn.Linear(16, 256),
            nn.BatchNorm1d(256),
            nn.ReLU(inplace=True),
            nn.Unflatten(1, (16, 4, 4)),
            nn.ConvTranspose2d(16, 8, 2, 2),
            nn.BatchNorm2d(8),
            nn.ReLU(inplace=True),
            nn.ConvTranspose2d(8, 1, 2, 2),
        )


@program()
def gan_with_gradient_penalty():
    """The gradient of a gradient's length: double backward."""
    generator, critic = Generator(), Discriminator()
    makes = torch.optim.Adam(generator.parameters(), lr=1e-3, betas=(0.5, 0.9))
    judges = torch.optim.Adam(critic.parameters(), lr=1e-3, betas=(0.5, 0.9))

    def judge(batch):
        real = torch.randn(batch, 1, 16, 16)
        made = generator(torch.randn(batch, 16)).detach()
        between = torch.lerp(real, made, torch.rand(batch, 1, 1, 1)).requires_grad_()
        (gradient,) = torch.autograd.grad(critic(between).sum(), between, create_graph=True)
        penalty = (gradient.flatten(1).norm(dim=1) - 1).square().mean()
        loss = critic(made).mean() - critic(real).mean() + 10 * penalty
        judges.zero_grad()
        loss.backward()
        judges.step()
        return loss

    def step():
        loss = judge(32)
        makes.zero_grad()
        fooled = -critic(generator(torch.randn(32, 16))).mean()
        fooled.backward()
        makes.step()
        return loss + fooled

    return Training(step, [generator, critic], [makes, judges])
