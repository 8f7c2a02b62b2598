package explain

import (
	"strings"

	"github.com/ncclinic/ncclinic/internal/diag"
	"github.com/ncclinic/ncclinic/internal/fact"
	"github.com/ncclinic/ncclinic/internal/fact/kind"
	"github.com/ncclinic/ncclinic/internal/lazyre"
)

// inMessage finds the file that Python names behind a failed import or attribute.
var inMessage = lazyre.New(`[( ']((?:/|[A-Za-z]:\\)[^\s'"()]*[/\\]torch(?:\.py|[/\\]__init__\.py))\b`)

// localTorch judges an import of torch that took a file or folder of that name
// outside of any environment.
func (v *view) localTorch() bool {
	for _, x := range v.exc {
		at := ""
		for _, f := range x.Frames {
			if strayTorch(f.File) {
				at = f.File
			}
		}
		if m := inMessage.FindStringSubmatch(x.Message); at == "" && m != nil && strayTorch(m[1]) {
			at = m[1]
		}
		not := strings.Contains(x.Message, "'torch' is not a package") || strings.Contains(x.Message, "folder of the PyTorch repository rather than the C extensions")
		if !not && (at == "" || !strings.Contains(x.Message, "torch") || !strings.HasSuffix(at, "torch.py") && !importFails.MatchString(x.Message)) {
			continue
		}
		c := v.addExc(cand{id: "env-local-module-shadows", cert: diag.Proven, over: []string{"run-exception", "torch-install-damaged", "torch-not-installed", "env-not-activated", "torch-built-without-distributed"}, args: diag.Args{}}, x)
		if at != "" {
			c.args["path"] = at
			if !quotesFile(c.ev, at) {
				c.ev = append(c.ev, v.evidence(x.Place, at))
			}
		}
		v.used["S453"], v.used["S500"] = true, true
		return true
	}
	return false
}

// importFails matches what Python says when a module lacks what is asked of it.
var importFails = lazyre.New(`No module named|cannot import name|has no attribute|partially initialized`)

func quotesFile(es []fact.Evidence, file string) bool {
	for _, e := range es {
		if strings.Contains(e.Excerpt, file) {
			return true
		}
	}
	return false
}

// strayTorch reports a torch.py or torch/__init__.py that no installer put there.
func strayTorch(f string) bool {
	f = strings.ReplaceAll(f, `\`, "/")
	if strings.Contains(f, "-packages/") || strings.Contains(f, "/site/") || strings.HasPrefix(f, "/usr/") || strings.HasPrefix(f, "/opt/") {
		return false
	}
	return strings.HasSuffix(f, "/torch.py") || strings.HasSuffix(f, "/torch/__init__.py")
}

// needsGPU are words of frameworks for a process in which torch has no GPU to
// offer: the build of torch, the allocation and the driver can each be why.
var needsGPU = []string{
	"No supported gpu backend found", "No GPU backend", "no gpu backend",
	"Attempting to deserialize object on a CUDA device but torch.cuda.is_available() is False",
	"Your setup doesn't support bf16/gpu", "Failed to infer device type", "Megatron requires CUDA", "DeepSpeed requires CUDA",
	"can not run on your system since the accelerator is not available",
	"CUDA is required but not available", "requires CUDA to be available", "CUDA must be available", "GPU is required", "requires a CUDA", "requires a GPU",
	"torch.cuda.is_available() is False", "torch.cuda.is_available() returned False", "Unable to find a CUDA device", "No GPU found", "no GPU found", "GPU device not found",
	"`fp16` mixed precision requires a GPU", "fp16 mixed precision requires a GPU", "bf16 mixed precision requires",
	"does not support CUDA", "CUDA unavailable, invalid device", "Invalid CUDA 'device=", "No accelerator device available", "requires torch.cuda",
}

// needGPU returns exceptions of programs that find no GPU, also bare assertions
// of torch.cuda.is_available().
func (v *view) needGPU() []*fact.Exception {
	out := v.excWith(needsGPU...)
	for _, x := range v.exc {
		if n := len(x.Frames); x.Type == "AssertionError" && n > 0 && strings.HasPrefix(x.Frames[n-1].Code, "assert torch.cuda.is_available()") {
			out = append(out, x)
		}
	}
	return out
}

// noDistributed judges a torch that says of itself that it was built without
// torch.distributed, or that lacks the module compiled for it.
func (v *view) noDistributed() bool {
	var off []fact.Said
	for _, s := range v.facts(kind.DistAvail) {
		if s.V == "False" {
			off = append(off, s)
		}
	}
	for _, x := range v.exc {
		part := strings.Contains(x.Message, "torch._C._distributed_c10d") // the compiled part
		if !part && (len(off) == 0 || !strings.Contains(x.Message, "torch.distributed") && !strings.Contains(x.Message, "distributed_c10d")) {
			continue
		}
		c := v.addExc(cand{id: "torch-built-without-distributed", cert: diag.Likely, over: []string{"run-exception", "torch-install-damaged", "env-not-activated"}}, x)
		if len(off) > 0 {
			c.cert = diag.Proven
			v.said(c, off[0])
		} else {
			c.needs = append(c.needs, "python -c 'import torch; print(torch.__file__, torch.__version__, torch.distributed.is_available())'")
		}
		v.used["S453"], v.used["S007"] = true, true
		return true
	}
	return false
}
