package cli

import (
	"fmt"
	"strings"

	"github.com/ncclinic/ncclinic/internal/fact"
	"github.com/ncclinic/ncclinic/internal/lazyre"
)

// sonameForm is a name that a library can ask for: libnccl.so.2, libc10.so.
var sonameForm = lazyre.New(`^[^\s/]+\.so(\.[0-9A-Za-z_.-]+)?$`)

// checkSoname refuses what is no name of a library, before anything is unpacked for it.
func (a *app) checkSoname(name string) error {
	if name == "" || sonameForm.MatchString(name) {
		return nil
	}
	return usagef("--explain-load: %q %s", name, a.tr("is no name of a library as programs ask for it, such as libnccl.so.2", "不是程序请求的库名，应为 libnccl.so.2 这样的名字"))
}

// cudaLibs are the beginnings of the names of NVIDIA's libraries that a CUDA
// build of torch asks for.
var cudaLibs = []string{"libnccl.so", "libcuda.so", "libcudart.so", "libcudnn", "libcublas", "libcufft", "libcufile", "libcupti", "libcurand", "libcusolver", "libcusparse", "libnvrtc", "libnvJitLink", "libnvToolsExt", "libnvshmem"}

// unneeded says why nothing asks for one of NVIDIA's libraries, "" when that is
// not so, and whether NCCL is missing by it.
func (a *app) unneeded(b *fact.Bundle, soname string) (why string, missing bool) {
	known := false
	for _, l := range cudaLibs {
		known = known || strings.HasPrefix(soname, l)
	}
	if !known {
		return "", false
	}
	w := b.Winner()
	if w == nil {
		if len(b.Loads) > 0 || !b.Python.Exe.IsKnown() && b.Target.Kind == "" {
			return "", false // a library alone, or nobody looked
		}
		return fmt.Sprintf(a.tr("There is no torch here: nothing asks for %s.", "这里没有 torch，没有任何库需要 %s。"), soname), true
	}
	v, nccl := w.Version.Or("?"), strings.HasPrefix(soname, "libnccl.so")
	switch {
	case nccl && w.NCCL.Or(false):
		return "", false
	case w.Accel() == fact.AccelROCm:
		return fmt.Sprintf(a.tr("torch %s is a ROCm build: nothing asks for %s; RCCL (librccl.so.1) has NCCL's place.", "torch %s 是 ROCm 构建，没有任何库需要 %s；对应 NCCL 的是 RCCL（librccl.so.1）。"), v, soname), false
	case w.Accel() == fact.AccelCPU:
		return fmt.Sprintf(a.tr("torch %s in %s is a CPU build without NCCL: nothing of it asks for %s. No library mends that, only another build of torch (ncclinic fix).",
			"%[2]s 中的 torch %[1]s 是不含 NCCL 的 CPU 构建，其中没有任何库需要 %[3]s。换库无济于事，只能换成另一种 torch 构建（ncclinic fix）。"), v, w.Dir, soname), true
	case nccl && w.NCCL.IsKnown():
		return fmt.Sprintf(a.tr("torch %s in %s is built without NCCL: nothing of it asks for %s. No library mends that, only another build of torch (ncclinic fix).",
			"%[2]s 中的 torch %[1]s 没有编入 NCCL，其中没有任何库需要 %[3]s。换库无济于事，只能换成另一种 torch 构建（ncclinic fix）。"), v, w.Dir, soname), true
	}
	return "", false
}
