package explain

import (
	"slices"
	"strings"

	"github.com/ncclinic/ncclinic/internal/diag"
	"github.com/ncclinic/ncclinic/internal/fact"
	"github.com/ncclinic/ncclinic/internal/fact/kind"
	"github.com/ncclinic/ncclinic/internal/lazyre"
)

// decideLibraries judges loader errors.
func (v *view) decideLibraries() {
	if es := v.ev("S227"); len(es) > 0 {
		var w11 []fact.Said
		seen := map[string]fact.Said{}
		for _, s := range v.facts(kind.Pkg) {
			if strings.HasPrefix(s.Name, "nvidia-nccl-cu") {
				seen[s.Name] = s
			}
		}
		for _, s := range seen {
			w11 = append(w11, s)
		}
		if len(seen) > 1 {
			c := v.add(cand{id: "nccl-wheels-collide", cert: diag.Proven, over: []string{"nccl-library-too-old"}}, cap4(es)...)
			v.said(c, w11...)
		} else {
			c := v.add(cand{id: "nccl-library-too-old", cert: diag.Proven}, cap4(es)...)
			for _, s := range v.facts(kind.LDD) {
				if strings.HasPrefix(s.Name, "libnccl") {
					v.said(c, s)
					c.args = mergeArgs(c.args, diag.Args{"path": s.V})
				}
			}
			for _, n := range []string{"LD_PRELOAD", "LD_LIBRARY_PATH"} {
				if val, s, ok := v.env(n); ok && strings.Contains(strings.ToLower(val), "nccl") {
					v.said(c, s)
					c.args = mergeArgs(c.args, diag.Args{"var": n, "value": val})
				}
			}
			v.said(c, w11...)
		}
	}
	if es := v.ev("S228"); len(es) > 0 {
		v.add(cand{id: "nccl-library-missing", cert: diag.Proven}, cap4(es)...)
	}
	// cuDNN, nvJitLink, cuBLASLt of somebody else come first
	if es := v.ev("S230", "S231", "log-cudnn-version-incompatible"); len(es) > 0 {
		c := v.add(cand{id: "cuda-library-shadowed", cert: diag.Proven}, cap4(es)...)
		if val, s, ok := v.env("LD_LIBRARY_PATH"); ok && val != "" {
			v.said(c, s)
			c.args = mergeArgs(c.args, diag.Args{"var": "LD_LIBRARY_PATH", "value": val})
		}
		v.moduleEv(c, "cuda", "cudnn", "nvhpc", "hpc_sdk")
	} else if xs := v.excWith("cuDNN version incompatibility"); len(xs) > 0 {
		c := v.addExc(cand{id: "cuda-library-shadowed", cert: diag.Proven}, xs[0])
		v.moduleEv(c, "cudnn", "cuda")
	}
	v.foreignCuDNN()
	if es := v.ev("S229"); len(es) > 0 {
		e := es[0]
		x := v.excAt(e)
		torchItself := x != nil && loadsTorch(x)
		if x != nil && !torchItself && len(x.Frames) > 0 {
			c := v.add(cand{id: "torch-extension-built-for-other-torch", cert: diag.Likely}, cap4(es)...)
			for _, s := range v.facts(kind.TorchCUDA) {
				v.said(c, s)
				c.cert = diag.Proven
			}
			v.said(c, first(v.facts(kind.TorchVer), 1)...)
		} else {
			v.add(cand{id: "cuda-library-missing", cert: diag.Likely}, cap4(es)...)
		}
	}
	v.torchLibraryMissing()
	var foreign, es []*fact.Event // symbols of CUDA's libraries, of torch
	for _, e := range v.ev("S237") {
		if strings.Contains(e.Text, "Warning: ") {
			continue // the import went on without that part
		}
		if cudaSymbol.MatchString(e.Text) {
			foreign = append(foreign, e)
		} else {
			es = append(es, e)
		}
	}
	if len(foreign) > 0 && !v.candidate("cuda-library-shadowed") {
		c := v.add(cand{id: "cuda-library-shadowed", cert: diag.Likely, over: []string{"run-exception", "run-native-crash"}}, cap4(foreign)...)
		if val, s, ok := v.env("LD_LIBRARY_PATH"); ok && val != "" {
			v.said(c, s)
			c.args = mergeArgs(c.args, diag.Args{"var": "LD_LIBRARY_PATH", "value": val})
		}
		v.moduleEv(c, "cudnn", "cuda")
	}
	if len(es) > 0 && v.tornTorch() == nil && !v.userTorch(es) {
		c := v.add(cand{id: "torch-extension-built-for-other-torch", cert: diag.Proven}, cap4(es)...)
		for _, s := range v.facts(kind.Pkg) {
			if s.Name == "torch" {
				v.said(c, s)
				break
			}
		}
	}
}

// foreignCuDNN judges a cuDNN that fails while ldd shows one of a module or the
// system in the place of torch's own: likely, for the shell that ran ldd need not
// be the job.
func (v *view) foreignCuDNN() {
	es := v.peek("S222")
	if len(es) == 0 || v.candidate("cuda-library-shadowed") {
		return
	}
	for _, s := range v.facts(kind.LDD) {
		if !strings.HasPrefix(s.Name, "libcudnn") || !strings.HasPrefix(s.V, "/") || strings.Contains(s.V, "-packages/") {
			continue
		}
		if dir, _ := v.torchDir(); strings.HasPrefix(dir, prefixOf(strings.Replace(s.V, "/lib/", "/bin/", 1))+"/") {
			continue // of the same conda environment
		}
		v.used["S222"] = true
		c := v.add(cand{id: "cuda-library-shadowed", cert: diag.Likely, over: []string{"run-exception"}, args: diag.Args{"path": s.V}}, cap4(es)...)
		v.said(c, s)
		for _, p := range v.facts(kind.Pkg) {
			if strings.HasPrefix(p.Name, "nvidia-cudnn-cu") {
				v.said(c, p)
				break
			}
		}
		if val, e, ok := v.env("LD_LIBRARY_PATH"); ok && val != "" {
			v.said(c, e)
			c.args = mergeArgs(c.args, diag.Args{"var": "LD_LIBRARY_PATH", "value": val})
		}
		v.moduleEv(c, "cudnn", "cuda")
		return
	}
}

// loadsTorch reports that an exception was raised while torch loads its own libraries.
func loadsTorch(x *fact.Exception) bool {
	n := len(x.Frames)
	for i, f := range x.Frames {
		if strings.Contains(f.File, "/torch/__init__.py") && (i == n-1 || strings.Contains(f.Func, "_load_global_deps") || strings.Contains(f.Func, "_preload_cuda")) {
			return true
		}
	}
	return false
}

// userTorch judges an extension of an environment or image whose symbols are
// missing because the torch of ~/.local comes first: frames of the launcher or
// the program show that torch, and the extension lies elsewhere.
func (v *view) userTorch(es []*fact.Event) bool {
	for _, e := range es {
		if strings.Contains(e.Text, "/.local/") || !strings.Contains(e.Text, "-packages/") {
			return false
		}
	}
	for i := range v.l.Exceptions {
		for _, f := range v.l.Exceptions[i].Frames {
			dir, _, ok := strings.Cut(f.File, "/site-packages/torch/")
			if !ok || !strings.Contains(dir, "/.local/lib/python") {
				continue
			}
			c := v.add(cand{id: "env-user-site-shadows", cert: diag.Likely, args: diag.Args{"dir": dir + "/site-packages", "torch_dir": dir + "/site-packages/torch"},
				over: []string{"run-exception", "torch-extension-built-for-other-torch", "torch-install-damaged"}, needs: []string{"PYTHONNOUSERSITE=1 python -c 'import torch; print(torch.__file__, torch.__version__)'"}}, cap4(es)...)
			x := &v.l.Exceptions[i]
			c.ev = append(c.ev, v.evidence(x.Place, f.File))
			return true
		}
	}
	return false
}

// cudaSymbol matches symbols that one library of CUDA misses in another.
var cudaSymbol = lazyre.New(`undefined symbol: _ZN\d+(?:cudnn|cublas|cufft|cusparse|cusolver)`)

// moduleEv quotes the module load of the script that names one of the words.
func (v *view) moduleEv(c *cand, words ...string) {
	for _, s := range v.scripts {
		for i := range s.f.Commands {
			cmd := &s.f.Commands[i]
			if cmd.Name != "module" && cmd.Name != "ml" {
				continue
			}
			for _, arg := range cmd.Words {
				if l := strings.ToLower(arg.Text); slices.ContainsFunc(words, func(w string) bool { return strings.Contains(l, w) }) {
					c.ev = append(c.ev, s.ev(cmd.Pos))
					return
				}
			}
		}
	}
}
