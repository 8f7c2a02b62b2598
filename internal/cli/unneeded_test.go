package cli

import (
	"testing"

	"github.com/ncclinic/ncclinic/internal/fact"
	"github.com/ncclinic/ncclinic/internal/source/packtest"
)

// TestExplainLoadWithoutNCCL: where nothing asks for NVIDIA's libraries the answer
// says so, in every form of a target.
func TestExplainLoadWithoutNCCL(t *testing.T) {
	cpu := packtest.Prefix(packtest.Site("2.6.0+cpu", "")).Write(t, t.TempDir())
	wheel := put(t, t.TempDir(), "torch-2.6.0+cpu-cp311-cp311-linux_x86_64.whl", packtest.Site("2.6.0+cpu", "").Zip(nil))
	none := packtest.Prefix(nil).Write(t, t.TempDir())
	for _, c := range []struct {
		args []string
		code int
		says []string
	}{
		{[]string{"libnccl.so.2", cpu}, exitFound, []string{"torch 2.6.0+cpu in ", "is a CPU build without NCCL: nothing of it asks for libnccl.so.2", "ncclinic fix"}},
		{[]string{"libnccl.so.2", cpu, "--lang", "zh"}, exitFound, []string{"torch 2.6.0+cpu 是不含 NCCL 的 CPU 构建", "libnccl.so.2"}},
		{[]string{"libnccl.so.2", wheel}, exitFound, []string{"is a CPU build without NCCL"}},
		{[]string{"libcudart.so.12", cpu}, exitFound, []string{"CPU build", "libcudart.so.12"}},
		{[]string{"libnccl.so.2", cpu, "--format", "json"}, exitFound, []string{`"load": null`, `"why": "torch 2.6.0+cpu`}},
		{[]string{"libnccl.so.2", none}, exitFound, []string{"There is no torch here: nothing asks for libnccl.so.2."}},
		{[]string{"libnccl", cpu}, exitUsage, []string{`"libnccl" is no name of a library`}},
		{[]string{"libfoo.so.1", cpu}, exitFound, []string{"libfoo.so.1 is nowhere on the search path"}},
	} {
		code, out, errs := ncclinic(t, nil, append([]string{"check", "--with-node", "none", "--explain-load"}, c.args...)...)
		if code != c.code {
			t.Errorf("%v: exit %d, want %d\n%s%s", c.args, code, c.code, out, errs)
		}
		must(t, c.args[0], out+errs, c.says...)
	}
}

func TestUnneeded(t *testing.T) {
	a := &app{lang: "en"}
	at := fact.Evidence{}
	torch := func(f func(*fact.Torch)) *fact.Bundle {
		x := fact.Torch{Dir: "/t/torch", Version: fact.Of("2.6.0", at)}
		f(&x)
		return &fact.Bundle{Torch: []fact.Torch{x}}
	}
	cuda := torch(func(x *fact.Torch) { x.CUDA, x.NCCL = fact.Of("12.4", at), fact.Of(true, at) })
	noNCCL := torch(func(x *fact.Torch) { x.CUDA, x.NCCL = fact.Of("12.4", at), fact.Of(false, at) })
	rocm := torch(func(x *fact.Torch) { x.HIP, x.NCCL = fact.Of("6.2", at), fact.Of(false, at) })
	for _, c := range []struct {
		b       *fact.Bundle
		soname  string
		why     bool
		missing bool
	}{
		{cuda, "libnccl.so.2", false, false}, {cuda, "libcudart.so.12", false, false},
		{noNCCL, "libnccl.so.2", true, true}, {noNCCL, "libcudart.so.12", false, false},
		{rocm, "libnccl.so.2", true, false}, {rocm, "librccl.so.1", false, false},
		{torch(func(*fact.Torch) {}), "libnccl.so.2", false, false}, // nobody could look
		{&fact.Bundle{}, "libnccl.so.2", false, false},
		{&fact.Bundle{Loads: []fact.Load{{Soname: "libnccl.so.2"}}, Target: fact.Target{Kind: "library"}}, "libnccl.so.2", false, false},
	} {
		why, missing := a.unneeded(c.b, c.soname)
		if (why != "") != c.why || missing != c.missing {
			t.Errorf("%s: %q, missing %v", c.soname, why, missing)
		}
	}
}
