package archive

import "testing"

func TestClassify(t *testing.T) {
	for name, want := range map[string]Class{
		"./opt/env/lib/python3.11/site-packages/torch/lib/libtorch_cuda.so":                           Lib,
		"usr/lib/x86_64-linux-gnu/libstdc++.so.6.0.30":                                                Lib,
		"usr/lib/x86_64-linux-gnu/libleveldb.so.1d":                                                   Shared,
		"usr/lib/x86_64-linux-gnu/libnccl-net.so":                                                     Lib,
		"usr/local/cuda/compat/libcuda.so.550.54.15":                                                  Lib,
		"opt/env/lib/python3.11/site-packages/flash_attn_2_cuda.cpython-311-x86_64-linux-gnu.so":      Lib,
		"opt/env/lib/python3.11/site-packages/numpy/core/_multiarray.cpython-311-x86_64-linux-gnu.so": Name,
		"etc/ld.so.cache": Text, "etc/ld.so.conf.d/x.conf": Text, "etc/environment": Text, "etc/nccl.conf": Text,
		"usr/bin/python3.11": Shared, "usr/bin/torchrun": Shared, "usr/bin/ls": Name,
		"usr/lib/python3.11/os.py": Text, "usr/lib/python3.11/site.py": Text, "usr/lib/python3.11/json/decoder.py": Ignore,
		"x/site-packages/torch/version.py": Text, "x/site-packages/torch/__init__.py": Text, "x/site-packages/torch/nn/functional.py": Ignore,
		"x/site-packages/torch-2.6.0.dist-info/METADATA": Text, "x/site-packages/torch-2.6.0.dist-info/RECORD": Text, "x/site-packages/numpy-1.dist-info/LICENSE": Name,
		"x/site-packages/a.pth": Text, "x/site-packages/torch.py": Text, "x/site-packages/numpy/__init__.py": Name,
		"usr/share/doc/x/README": Ignore, "usr/lib/python3.11/__pycache__/os.cpython-311.pyc": Ignore, "opt/conda/pkgs/pytorch/lib/libtorch.so": Ignore,
		"opt/conda/conda-meta/pytorch-2.6.0-cuda126_0.json": Text, "var/lib/dpkg/status": Text, "var/lib/dpkg/info/bash.list": Ignore,
		"proc/cpuinfo": Ignore, "home/u/data.bin": Ignore, "data.bin": Text,
	} {
		if got := Classify(name, 1000); got != want {
			t.Errorf("%s: %d, want %d", name, got, want)
		}
	}
	if got := Classify("etc/huge", 1<<30); got != Name {
		t.Errorf("a huge text: %d", got)
	}
}
