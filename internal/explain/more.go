package explain

import (
	"strings"

	"github.com/ncclinic/ncclinic/internal/diag"
	"github.com/ncclinic/ncclinic/internal/fact"
	"github.com/ncclinic/ncclinic/internal/fact/kind"
)

// decideMore judges libraries, extensions and options that several causes can explain.
func (v *view) decideMore() {
	v.missingLibraries()
	v.oldPython()
	if es := v.ev("log-nccl-tests-wrong"); len(es) > 0 {
		v.unknown(es, "nvidia-smi -q -d ECC,ROW_REMAPPER", "dmesg | grep -i xid", "nccl-tests on one pair of GPUs, with NCCL_P2P_DISABLE=1 and with NCCL_SHM_DISABLE=1")
	}
	v.decideNodes()
	v.decideShadow()
	v.decideFilters()
	v.decideTwice()
	if es := v.ev("S238", "S370"); len(es) > 0 {
		var vision []*fact.Event
		for _, e := range es {
			if strings.Contains(e.Text, "torchvision::") || strings.Contains(e.Text, "torchaudio::") {
				vision = append(vision, e)
			}
		}
		if o, n, cmd, ok := v.replaced(); ok && !explicitTorch(cmd) {
			c := v.add(cand{id: "torch-replaced-by-dependency", cert: diag.Proven, args: wanted(o, n, cmd), over: []string{"run-exception"}}, cap4(es)...)
			v.said(c, o, n)
		} else if len(vision) > 0 {
			c := v.add(cand{id: "torch-extension-built-for-other-torch", cert: diag.Likely, over: []string{"run-exception"}}, cap4(vision)...)
			for _, s := range v.facts(kind.Pkg) {
				if s.Name == "torch" || s.Name == "torchvision" || s.Name == "pytorch" {
					v.said(c, s)
				}
			}
		} else {
			v.unsure = append(v.unsure, es...)
		}
	}
	if es := v.ev("S057", "S058", "S059", "S055"); len(es) > 0 {
		v.add(cand{id: "run-exception", cert: diag.Proven, over: []string{"run-collective-hang"}}, cap4(es)...)
	}
	if es := v.ev("S082"); len(es) > 0 {
		loop := false
		for _, e := range es {
			loop = loop || strings.Contains(e.Text, "127.") || strings.Contains(e.Text, "[::1]")
		}
		refused := false // on the own loopback nobody listens: the peer is another machine
		for _, e := range v.peek("log-gloo-connect-refused") {
			refused = refused || strings.Contains(e.Text, "[127.") || strings.Contains(e.Text, "[::1]")
		}
		if refused || loop && v.multiNode() || len(v.peek("S081")) > 0 {
			v.add(cand{id: "net-interface-wrong", cert: diag.Likely, tier: 1}, cap4(es)...)
		} else {
			v.unknown(es, "env | grep GLOO_SOCKET_IFNAME", "ip -br a", "srun -l bash -c 'getent hosts $(hostname)'")
		}
	}
	if es := v.ev("S279", "S415"); len(es) > 0 {
		v.add(cand{id: "slurm-request-impossible", cert: diag.Likely}, cap4(es)...)
	}
	if es := v.ev("S294", "S295"); len(es) > 0 {
		c := cand{id: "slurm-options-conflict", cert: diag.Likely}
		if _, s, ok := v.env("SLURM_CPU_BIND"); ok {
			c.id = "env-inherited-from-outer-job"
			c.ev = append(c.ev, v.evidence(s.Place, s.Text))
		}
		for _, x := range v.l.Commands { // somebody took the variable away and tried again
			if strings.Contains(x.Text, "-u SLURM_CPU_BIND") || strings.Contains(x.Text, "unset SLURM_CPU_BIND") {
				c.id = "env-inherited-from-outer-job"
				c.ev = append(c.ev, v.evidence(x.Place, x.Text))
			}
		}
		v.add(c, cap4(es)...)
	}
	if es := v.ev("S500"); len(es) > 0 && len(v.cands) == 0 {
		v.unknown(es, "python -c 'import torch; print(torch.__file__, torch.__version__)'", "env | grep -e PYTHONPATH -e VIRTUAL_ENV -e CONDA_PREFIX")
	}
}

// missingLibraries judges CUDA libraries that the loader does not find, or
// finds in a version of somebody else.
func (v *view) missingLibraries() {
	var gone, other []*fact.Event
	for _, e := range v.ev("S233", "S384") {
		switch {
		case strings.Contains(e.Text, "libnccl") || strings.Contains(e.Text, "libcuda.so"):
		case strings.Contains(e.Text, "cannot open shared object"):
			gone = append(gone, e)
		default:
			other = append(other, e)
		}
	}
	if len(other) > 0 {
		c := cand{id: "cuda-library-shadowed", cert: diag.Possible, over: []string{"run-exception"}, needs: []string{"echo $LD_LIBRARY_PATH", "ldd of the library that the message names"}}
		if val, s, ok := v.env("LD_LIBRARY_PATH"); ok && val != "" {
			c.cert, c.needs = diag.Likely, nil
			c.ev = append(c.ev, v.evidence(s.Place, s.Text))
		}
		p := v.add(c, cap4(other)...)
		v.moduleEv(p, "cudnn", "cuda")
	}
	if len(gone) == 0 {
		return
	}
	c := cand{id: "cuda-library-missing", cert: diag.Likely, over: []string{"run-exception"}}
	if x := v.excAt(gone[0]); x != nil && len(x.Frames) > 0 && !loadsTorch(x) && extFrame(x) != "" {
		c.id = "torch-extension-built-for-other-torch"
	}
	v.add(c, cap4(gone)...)
}
