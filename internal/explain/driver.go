package explain

import (
	"strings"

	"github.com/ncclinic/ncclinic/internal/diag"
	"github.com/ncclinic/ncclinic/internal/fact/kind"
)

// decideDriver judges messages about driver, fabric and device initialisation.
func (v *view) decideDriver() {
	over := []string{"gpu-not-allocated", "gpu-driver-missing", "gpu-visible-devices-wrong", "run-exception"}
	old := v.ev("S185")
	if len(old) > 0 {
		b := v.build()
		if o, n, cmd, ok := v.replaced(); ok && (!explicitTorch(cmd) || flavour(o.V) != "" && flavour(n.V) == "") {
			c := v.add(cand{id: "torch-replaced-by-dependency", cert: diag.Proven, args: wanted(o, n, cmd), over: append(over, "torch-needs-newer-driver")}, cap4(old)...)
			v.said(c, o, n)
		} else if ss, dir, ok := v.userSiteShadows(b); ok {
			c := v.add(cand{id: "env-user-site-shadows", cert: diag.Proven, args: diag.Args{"dir": dir}, over: append(over, "torch-needs-newer-driver")}, cap4(old)...)
			v.said(c, ss...)
		} else if strings.Contains(old[0].Text, "/.local/lib/python") && v.condaEnvNamed() {
			c := v.add(cand{id: "env-user-site-shadows", cert: diag.Likely, over: append(over, "torch-needs-newer-driver")}, cap4(old)...)
			c.needs = append(c.needs, "python -c 'import torch; print(torch.__file__)'", "PYTHONNOUSERSITE=1 python -c 'import torch; print(torch.__file__)'")
		} else {
			c := v.add(cand{id: "torch-needs-newer-driver", cert: diag.Proven, args: v.torchArgs(b), over: over}, cap4(old)...)
			v.said(c, first(v.facts(kind.Driver), 1)...)
		}
	}
	if es := v.ev("S191", "S192", "S224"); len(es) > 0 {
		c := v.add(cand{id: "gpu-driver-library-mismatch", cert: diag.Proven, over: over}, cap4(es)...)
		if val, s, ok := v.env("LD_LIBRARY_PATH"); ok && strings.Contains(val, "compat") {
			v.said(c, s)
		}
		v.said(c, first(v.facts(kind.Driver), 1)...)
	}
	if es := v.ev("S190", "S156", "S157"); len(es) > 0 {
		c := v.add(cand{id: "gpu-fabric-manager", cert: diag.Proven, over: over}, cap4(es)...)
		v.said(c, first(v.facts(kind.FM), 1)...)
	}
	if es := v.ev("S217"); len(es) > 0 && !v.candidate("gpu-fabric-manager") {
		cert := diag.Likely
		for _, e := range es {
			if strings.Contains(e.Text, "nvls") || strings.Contains(e.Text, "NVLS") {
				cert = diag.Proven
			}
		}
		v.add(cand{id: "gpu-fabric-manager", cert: cert, over: over}, cap4(es)...)
	}
	v.used["S189"] = true
	if es := v.ev("S183"); len(es) > 0 && len(old) == 0 {
		b := v.build()
		switch ev, ok := v.containerWithoutGPU(); {
		case ok:
			c := v.add(cand{id: "gpu-not-in-container", cert: diag.Proven, over: over}, cap4(es)...)
			c.ev = append(c.ev, ev...)
			v.said(c, first(v.facts(kind.GPU), 1)...)
		default:
			c := v.add(cand{id: "torch-needs-newer-driver", cert: diag.Likely, args: v.torchArgs(b), over: over}, cap4(es)...)
			v.said(c, first(v.facts(kind.Driver), 1)...)
			if len(v.facts(kind.Driver)) > 0 {
				c.cert = diag.Proven
			} else {
				c.needs = append(c.needs, "nvidia-smi")
			}
			for _, n := range []string{"CUDA_VERSION"} {
				if _, s, ok := v.env(n); ok {
					v.said(c, s)
				}
			}
		}
	}
	v.decideUnknownInit()
}

func (v *view) condaEnvNamed() bool {
	for _, c := range v.l.Commands {
		if c.Env != "" {
			return true
		}
	}
	_, _, a := v.env("CONDA_PREFIX")
	_, _, b := v.env("VIRTUAL_ENV")
	return a || b
}

func (v *view) candidate(id string) bool {
	for i := range v.cands {
		if v.cands[i].id == id {
			return true
		}
	}
	return false
}

// decideUnknownInit judges "unknown error", unless the kernel log or
// nvidia-smi show a lost GPU.
func (v *view) decideUnknownInit() {
	es := v.ev("S188", "S194")
	if len(es) == 0 || v.lostGPU() {
		return
	}
	c := v.add(cand{id: "gpu-init-unknown-error", cert: diag.Likely, over: []string{"gpu-not-allocated", "gpu-visible-devices-wrong", "run-exception"}}, cap4(es)...)
	devs := v.facts(kind.Dev)
	if len(devs) > 0 {
		uvm := false
		for _, d := range devs {
			uvm = uvm || strings.Contains(d.V, "uvm")
		}
		if !uvm {
			c.cert = diag.Proven
			c.args = mergeArgs(c.args, diag.Args{"variant": ""})
			v.said(c, first(devs, 3)...)
			return
		}
	}
	c.needs = append(c.needs, "ls -l /dev/nvidia*", "nvidia-smi", "dmesg | grep -i -e NVRM -e Xid")
}
