"""Optimizers: groups with options of their own, a schedule with warm-up, averaged weights, and going on from a saved state.

    python examples/schedules.py
"""
import clnn as torch
from clnn import nn
from clnn.optim import lr_scheduler, swa_utils

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(2, 32), nn.Tanh(), nn.Linear(32, 1))
decayed = [p for name, p in net.named_parameters() if name.endswith("weight")]
plain = [p for name, p in net.named_parameters() if name.endswith("bias")]
optimizer = torch.optim.AdamW([{"params": decayed, "weight_decay": 0.01}, {"params": plain, "weight_decay": 0.0, "lr": 0.01}], lr=0.02)
schedule = lr_scheduler.SequentialLR(optimizer, [lr_scheduler.LinearLR(optimizer, start_factor=0.1, total_iters=10),
                                                 lr_scheduler.CosineAnnealingLR(optimizer, T_max=90)], milestones=[10])
average = swa_utils.AveragedModel(net, multi_avg_fn=swa_utils.get_ema_multi_avg_fn(0.95))


def wave(x):
    return (3 * x[:, :1]).sin() * x[:, 1:]


rates = []
for step in range(100):
    x = torch.rand(64, 2) * 2 - 1
    loss = nn.functional.mse_loss(net(x), wave(x))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    schedule.step()
    average.update_parameters(net)
    rates.append(schedule.get_last_lr())
    if step % 25 == 0:
        print(f"step {step}: loss {loss.item():.4f}, learning rates {rates[-1][0]:.4f} {rates[-1][1]:.4f}")

test = torch.rand(256, 2) * 2 - 1
errors = [nn.functional.mse_loss(model(test), wave(test)).item() for model in (net, average)]
print(f"error {errors[0]:.4f}, of the averaged weights {errors[1]:.4f}")
assert max(errors) < 0.05 and rates[9][0] == max(rate[0] for rate in rates) and rates[-1][0] < 1e-4

# The state of both can be saved, and goes on where it was.
saved = optimizer.state_dict(), schedule.state_dict()
again = torch.optim.AdamW([{"params": decayed}, {"params": plain}])
again.load_state_dict(saved[0])
assert [group["weight_decay"] for group in again.param_groups] == [0.01, 0.0] and again.state[decayed[0]]["step"] == 100
