# One rank of the process group that "ncclinic check --nodes --live" forms. Says
# how far it came after every step, so that a crash or a hang loses nothing.
# Arguments: backend, time limit in seconds. RANK, WORLD_SIZE, LOCAL_RANK,
# MASTER_ADDR and MASTER_PORT are set. Python 3.6 and later.
import sys

if sys.path and sys.path[0] == "":
    del sys.path[0]

import json
import os
import time

MARK = "ncclinic-rank-1 "
backend, limit = sys.argv[1], float(sys.argv[2])
rank, world, local = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"]), int(os.environ["LOCAL_RANK"])
out = {"s": "start", "t": 0}


def say():
    try:
        os.write(1, ("\n" + MARK + json.dumps(out) + "\n").encode("utf-8", "replace"))
    except (OSError, ValueError):
        pass


def step(name, f):
    out["s"], out["t"] = name, int(time.time() * 1000)
    say()
    try:
        f()
    except BaseException as e:
        out["e"], out["t"] = (type(e).__name__ + ": " + str(e))[:2000], int(time.time() * 1000)
        say()
        os._exit(1)


def imports():
    global torch, dist
    import torch
    import torch.distributed as dist


def device():
    global dev
    if backend != "nccl":
        dev = torch.device("cpu")
        return
    torch.cuda.set_device(local)
    dev = torch.device("cuda", local)
    torch.ones(1, device=dev)
    p = torch.cuda.get_device_properties(local)
    seen = os.environ.get("CUDA_VISIBLE_DEVICES")
    name = getattr(p, "uuid", None) or getattr(p, "pci_bus_id", None)
    if name is None and seen and local < len(seen.split(",")):
        name = seen.split(",")[local]
    out["d"] = str(local if name is None else name)[:60]


def init():
    import datetime

    dist.init_process_group(backend, rank=rank, world_size=world, timeout=datetime.timedelta(seconds=limit))


def all_reduce():
    # Sums of whole numbers below 2**24 are exact in float32; the second one is
    # large enough for more than one channel and chunk.
    for n in (1, 1 << 20):
        t = torch.full((n,), float(rank % 1000 + 1), device=dev)
        dist.all_reduce(t)
        want = float(sum(r % 1000 + 1 for r in range(world)))
        got = [t[0].item(), t[-1].item()]
        if got != [want, want] and world < 30000:
            raise RuntimeError("all_reduce over %d ranks gave %s, right is %s" % (world, got, want))


def all_gather():
    me = ("%d %s" % (rank, out.get("d", ""))).encode()[:96].ljust(96, b" ")
    mine = torch.tensor(list(me), dtype=torch.uint8, device=dev)
    all_ = [torch.zeros_like(mine) for _ in range(world)]
    dist.all_gather(all_, mine)
    for r, t in enumerate(all_):
        if not bytes(t.cpu().tolist()).startswith(b"%d " % r):
            raise RuntimeError("all_gather: the part of rank %d is not its own" % r)


step("import", imports)
step("device", device)
step("init", init)
step("all_reduce", all_reduce)
step("all_gather", all_gather)
out["s"], out["t"] = "done", int(time.time() * 1000)
say()
# A rank that leaves takes rank 0's store with it: the others may still need it.
try:
    dist.barrier()
    dist.destroy_process_group()
except BaseException:
    pass
os._exit(0)
