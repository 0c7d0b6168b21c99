"""Muon: momentum whose matrix is made orthogonal before the step. In f32 and for all matrices of one shape at once,
because a CPU without bf16 arithmetic spends half of its time in a bf16 version."""
import torch


def orthogonal(g, steps=5):
    """Pushes the singular values of each matrix in g (n, rows, columns) towards 1: quintic Newton-Schulz iteration."""
    tall = g.shape[-2] > g.shape[-1]
    x = g.mT if tall else g
    x = x / (x.norm(dim=(-2, -1), keepdim=True) + 1e-7)
    for _ in range(steps):
        a = x @ x.mT
        x = 3.4445 * x + (-4.7750 * a + 2.0315 * a @ a) @ x
    return x.mT if tall else x


class Muon(torch.optim.Optimizer):
    """The step is scaled to the size that AdamW's would have, so that both share a learning rate."""

    def __init__(self, matrices, lr, momentum=0.95, decay=0.1):
        super().__init__(list(matrices), dict(lr=lr, momentum=momentum, decay=decay))

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            shapes = {}
            for p in group["params"]:
                shapes.setdefault(tuple(p.shape), []).append(p)
            for shape, same in shapes.items():
                self.step_together(group, shape, same)

    def step_together(self, group, shape, same):
        for p in same:
            m = self.state[p].setdefault("momentum", torch.zeros_like(p))
            m.lerp_(p.grad, 1 - group["momentum"])
        ahead = torch.stack([p.grad.lerp(self.state[p]["momentum"], group["momentum"]) for p in same])
        size = group["lr"] * 0.2 * max(shape) ** 0.5
        for p, u in zip(same, orthogonal(ahead)):
            p.mul_(1 - group["lr"] * group["decay"]).add_(u, alpha=-size)
