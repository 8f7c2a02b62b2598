package explain

import (
	"strings"

	"github.com/ncclinic/ncclinic/internal/diag"
	"github.com/ncclinic/ncclinic/internal/fact"
	"github.com/ncclinic/ncclinic/internal/fact/kind"
	"github.com/ncclinic/ncclinic/internal/lazyre"
	"github.com/ncclinic/ncclinic/internal/tables"
)

var (
	nvidiaMajor = lazyre.New(`^nvidia-[a-z-]+-cu(\d+)$`)
	tagMajor    = lazyre.New(`\+cu(\d+)\d$`)
)

// driverTooOld judges a torch whose CUDA, as its packages tell, is of a later
// major release than the newest that the driver runs.
func (v *view) driverTooOld(es []*fact.Event) bool {
	need, by := 0, fact.Said{}
	see := func(n int, s fact.Said) {
		if n > need {
			need, by = n, s
		}
	}
	for _, s := range v.facts(kind.Pkg) {
		if m := nvidiaMajor.FindStringSubmatch(s.Name); m != nil {
			see(atoi(m[1]), s)
		}
		if s.Name == "nvidia-cuda-runtime" {
			see(atoi(s.V), s)
		}
		if m := tagMajor.FindStringSubmatch(s.V); m != nil && s.Name == "torch" {
			see(atoi(m[1]), s)
		}
	}
	for _, s := range v.facts(kind.TorchCUDA) {
		see(atoi(s.V), s)
	}
	for _, s := range v.facts(kind.TorchVer) {
		if m := tagMajor.FindStringSubmatch(s.V); m != nil {
			see(atoi(m[1]), s)
		}
	}
	for _, d := range v.facts(kind.Driver) {
		if max := cudaOf(d); max > 0 && need > max && need < 100 {
			c := v.add(cand{id: "torch-needs-newer-driver", cert: diag.Likely, args: v.torchArgs(v.build()), over: []string{"run-exception", "gpu-driver-missing", "gpu-not-allocated"}}, cap4(es)...)
			v.said(c, by, d)
			return true
		}
	}
	return false
}

// cudaOf returns the major release of CUDA that a driver runs: as nvidia-smi
// says, or by its version; 0 when not known.
func cudaOf(driver fact.Said) int {
	if n := atoi(driver.Aux); n > 0 {
		return n
	}
	return atoi(tables.DriverCUDA(driver.V))
}

// assertsCUDA reports a program that stops, in words of its own, when
// torch.cuda.is_available() is false.
func assertsCUDA(x *fact.Exception) bool {
	n := len(x.Frames)
	return n > 0 && strings.HasSuffix(x.Type, "AssertionError") && strings.Contains(x.Frames[n-1].Code, "cuda.is_available()")
}

// byGPUs is a remainder of a division by the number of GPUs.
var byGPUs = lazyre.New(`%\s*\(?(?:[\w.]+\.)?(?:device_count\(\)|(?:num|n)_?(?:gpus?|devices)\b|(?:gpu|device)_count\b|gpus_per_node\b)`)

// dividesByGPUs reports a program that places itself on a GPU by its rank and
// finds that there are none: "local_rank % torch.cuda.device_count()".
func dividesByGPUs(x *fact.Exception) bool {
	n := len(x.Frames)
	return n > 0 && x.Type == "ZeroDivisionError" && byGPUs.MatchString(x.Frames[n-1].Code)
}
