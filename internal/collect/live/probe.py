# Asked of the job's own interpreter by "ncclinic check --live". Prints one line
# of JSON after a marker, again after every step, so that a crash or a hang of
# one step does not lose what the steps before it said. Python 3.6 and later.
import sys

# "python -c" puts the current folder first; a script of the job has its own
# folder there instead. A checkout of PyTorch or a json.py lying here must not be
# taken for what the job imports.
if sys.path and sys.path[0] == "":
    del sys.path[0]

import json
import os

MARK = "ncclinic-live-1 "
out = {"steps": []}


def say():
    # On a line of its own whatever other modules print, and past any replaced sys.stdout.
    try:
        os.write(1, ("\n" + MARK + json.dumps(out) + "\n").encode("utf-8", "replace"))
    except (OSError, ValueError):
        pass


def step(name, f):
    out["steps"].append(name)
    say()
    try:
        f()
    except BaseException as e:  # a SystemExit or a foreign BaseException is an answer too
        out.setdefault("errors", {})[name] = (type(e).__name__ + ": " + str(e))[:2000]
        return False
    return True


def text(v):
    return None if v is None else str(v)[:500]


def imports():
    global torch
    import torch

    out["file"] = text(getattr(torch, "__file__", None))
    out["version"] = text(getattr(torch, "__version__", None))
    v = getattr(torch, "version", None)
    out["cuda"] = text(getattr(v, "cuda", None))
    out["hip"] = text(getattr(v, "hip", None))


def dist():
    global dist_mod
    import torch.distributed as dist_mod

    out["distributed"] = bool(dist_mod.is_available())


def backends():
    # Both are missing where torch.distributed was not compiled in, and
    # is_gloo_available is newer than is_nccl_available.
    out["nccl"] = bool(getattr(dist_mod, "is_nccl_available", lambda: False)())
    gloo = getattr(dist_mod, "is_gloo_available", None)
    if gloo is not None:
        out["gloo"] = bool(gloo())


def nccl_version():
    v = torch.cuda.nccl.version()
    # An int such as 2708 before torch 1.10.
    if isinstance(v, int):
        v = (v // 1000, v % 1000 // 100, v % 100) if v < 10000 else (v // 10000, v % 10000 // 100, v % 100)
    out["ncclVersion"] = ".".join(str(x) for x in v)[:50]


def devices():
    out["devices"] = int(torch.cuda.device_count())


def archs():
    out["archs"] = [str(a)[:40] for a in torch.cuda.get_arch_list()][:64]


def gloo_group():
    import datetime
    import shutil
    import tempfile

    d = tempfile.mkdtemp(prefix="ncclinic-")
    try:
        # A store in a file of its own: no port that could be taken, and none of the job's variables.
        dist_mod.init_process_group("gloo", init_method="file://" + os.path.join(d, "store"), rank=0, world_size=1,
                                    timeout=datetime.timedelta(seconds=30))
        try:
            t = torch.ones(3)
            dist_mod.all_reduce(t)
            if t.tolist() != [1.0, 1.0, 1.0]:
                raise RuntimeError("all_reduce over one process gave %s" % t.tolist())
        finally:
            dist_mod.destroy_process_group()
    finally:
        shutil.rmtree(d, ignore_errors=True)
    out["glooGroup"] = "ok"


out["sysPath"] = [str(p)[:1000] for p in sys.path][:200]
out["python"] = "%d.%d.%d" % sys.version_info[:3]
if step("import", imports):
    if step("distributed", dist) and out.get("distributed"):
        step("backends", backends)
    if out.get("cuda"):
        if out.get("nccl"):
            step("ncclVersion", nccl_version)
        step("archs", archs)
    step("devices", devices)
    if out.get("distributed") and out.get("gloo") is not False:
        step("glooGroup", gloo_group)
out["steps"].append("done")
say()
# Not sys.exit: at-exit code of broken installations may hang or crash.
os._exit(0)
