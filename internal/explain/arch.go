package explain

import (
	"slices"
	"strconv"
	"strings"

	"github.com/ncclinic/ncclinic/internal/diag"
	"github.com/ncclinic/ncclinic/internal/fact"
	"github.com/ncclinic/ncclinic/internal/fact/kind"
	"github.com/ncclinic/ncclinic/internal/lazyre"
	"github.com/ncclinic/ncclinic/internal/tables"
)

// decideArch judges "no kernel image": the wheel's or an extension's fault.
func (v *view) decideArch() {
	es := v.ev("S199")
	warn := v.ev("S200", "S201", "S202", "log-gpu-capability-not-compatible", "log-gpu-too-old-for-torch", "log-torch-arch-list")
	lists := v.facts(kind.ArchList)
	caps := v.capabilities()
	if len(es) == 0 {
		if len(warn) > 0 && v.dead && len(v.cands) == 0 {
			// the warning alone, and the job died: likely, when nothing else says more
			v.add(cand{id: "torch-gpu-arch-unsupported", cert: diag.Possible, tier: 1}, cap4(warn)...)
		}
		return
	}
	ext := ""
	for _, e := range es {
		if x := v.excAt(e); x != nil {
			if ext = extFrame(x); ext != "" {
				break
			}
		}
	}
	covers, known := archCovers(lists, caps)
	own := ext == "" // the extension itself complains, torch does not
	if own {
		ext = ownKernel(es)
	}
	switch {
	case len(warn) > 0 && (!known || !covers || ext == "" && namesGPU(warn)):
		c := v.add(cand{id: "torch-gpu-arch-unsupported", cert: diag.Proven, over: []string{"run-exception"}, args: v.archArgs(lists, caps, warn)}, cap4(append(es[:1:1], warn...))...)
		v.said(c, first(lists, 1)...)
		told(c)
	case known && !covers:
		c := v.add(cand{id: "torch-gpu-arch-unsupported", cert: diag.Proven, over: []string{"run-exception"}, args: v.archArgs(lists, caps, warn)}, cap4(es)...)
		v.said(c, append(first(lists, 1), first(caps, 1)...)...)
		told(c)
	case ext != "" && (covers || !known && (own || knownExtension(ext))):
		cert := diag.Likely
		if covers {
			cert = diag.Proven
		}
		c := v.add(cand{id: "torch-extension-arch-unsupported", cert: cert, over: []string{"run-exception"}, args: diag.Args{"package": ext}}, cap4(es)...)
		v.said(c, append(first(lists, 1), first(caps, 1)...)...)
		for _, n := range []string{"TORCH_CUDA_ARCH_LIST", "FLASH_ATTN_CUDA_ARCHS"} {
			if _, s, ok := v.env(n); ok {
				v.said(c, s)
			}
		}
	case covers:
		c := v.add(cand{id: "torch-extension-arch-unsupported", cert: diag.Likely, over: []string{"run-exception"}}, cap4(es)...)
		v.said(c, append(first(lists, 1), first(caps, 1)...)...)
	default:
		v.unknown(es, "nvidia-smi --query-gpu=name,compute_cap --format=csv", "python -c 'import torch; print(torch.cuda.get_arch_list())'", "a run with CUDA_LAUNCH_BLOCKING=1, which shows the call that has no kernel")
	}
}

var warnsOf = lazyre.New(`^\s*(.+?) with CUDA capability sm_(\d+)(\d) is not compatible`)

// namesGPU reports that torch itself says which GPU its build has no code for: a
// capability that is listed elsewhere may be another machine's.
func namesGPU(warn []*fact.Event) bool {
	return slices.ContainsFunc(warn, func(e *fact.Event) bool { return warnsOf.MatchString(e.Text) })
}

// archArgs names the GPU and what the build has code for, where both are told.
func (v *view) archArgs(lists, caps []fact.Said, warn []*fact.Event) diag.Args {
	a := diag.Args{}
	for _, e := range warn {
		if m := warnsOf.FindStringSubmatch(e.Text); m != nil {
			a["device"], a["cap"] = m[1], m[2]+"."+m[3]
			break
		}
	}
	if a["device"] == "" && len(caps) > 0 {
		a["cap"], a["device"] = caps[len(caps)-1].V, "GPU"
		if gs := v.facts(kind.GPU); len(gs) > 0 {
			a["device"] = gs[0].V
		}
	}
	if len(lists) > 0 {
		a["archs"] = lists[0].V
	}
	if a["device"] != "" && a["archs"] != "" {
		a["variant"] = "told"
		if n, ok := strings.CutPrefix(newestArch(a["archs"]), "sm_"); ok && len(n) > 1 && v.interpreter() != "" {
			a["age"] = "newer"
			if archNumber(n) > archNumber(strings.ReplaceAll(a["cap"], ".", "")) {
				a["age"] = "older"
			}
		}
	}
	return a
}

// told lets the cause's own words stand where they name more than the message does.
func told(c *cand) {
	if c.args["variant"] == "told" {
		c.rule = ""
	}
}

// newestArch returns the last sm_ entry of a list, which ascends.
func newestArch(list string) string {
	last := ""
	for _, f := range strings.Fields(list) {
		if strings.HasPrefix(f, "sm_") {
			last = f
		}
	}
	return last
}

func archNumber(s string) int { return atoi(strings.TrimRight(s, "af")) }

// capabilities are what the input says of the GPUs, else what their names tell.
func (v *view) capabilities() []fact.Said {
	if caps := v.facts(kind.Capability); len(caps) > 0 {
		return caps
	}
	var out []fact.Said
	for _, g := range v.facts(kind.GPU) {
		if c := tables.CapOf(g.V); c != "" {
			s := g
			s.V = c
			out = append(out, s)
		}
	}
	return out
}

func knownExtension(p string) bool {
	for _, k := range []string{"flash_attn", "flash_attn_2_cuda", "apex", "xformers", "mamba_ssm", "causal_conv1d", "bitsandbytes", "transformer_engine", "gsplat", "vllm", "torch_scatter", "torch_sparse", "torch_cluster", "pytorch3d", "detectron2", "mmcv", "deepspeed", "spconv", "nvdiffrast", "diff_gaussian_rasterization", "tinycudann", "fused_dense_lib", "rotary_emb", "selective_scan_cuda", "natten", "sageattention", "exllamav2", "auto_gptq", "awq"} {
		if strings.HasPrefix(p, k) {
			return true
		}
	}
	return false
}

// archCovers compares the architectures of a build with the GPU's capability.
// A cubin runs on the same major version and an equal or higher minor one; PTX
// runs on everything newer.
func archCovers(lists, caps []fact.Said) (covers, known bool) {
	if len(lists) == 0 || len(caps) == 0 {
		return false, false
	}
	maj, min, ok := strings.Cut(caps[len(caps)-1].V, ".")
	if !ok {
		return false, false
	}
	M, _ := strconv.Atoi(maj)
	m, _ := strconv.Atoi(min)
	for _, a := range strings.Fields(lists[0].V) {
		ptx := strings.HasPrefix(a, "compute_")
		n := strings.TrimPrefix(strings.TrimPrefix(a, "compute_"), "sm_")
		n = strings.TrimRight(n, "af")
		if len(n) < 2 {
			continue
		}
		am, _ := strconv.Atoi(n[:len(n)-1])
		an, _ := strconv.Atoi(n[len(n)-1:])
		if ptx && am*10+an <= M*10+m || am == M && an <= m {
			return true, true
		}
	}
	return false, true
}
