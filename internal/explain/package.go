package explain

import (
	"strings"

	"github.com/ncclinic/ncclinic/internal/diag"
	"github.com/ncclinic/ncclinic/internal/fact"
	"github.com/ncclinic/ncclinic/internal/fact/kind"
	"github.com/ncclinic/ncclinic/internal/lazyre"
)

// pythonPathShadows reports a torch that PYTHONPATH puts before the environment's.
func (v *view) pythonPathShadows() (ss []fact.Said, dir string, ok bool) {
	tdir, _ := v.torchDir()
	for _, d := range v.pythonPath() {
		if x := v.torchFrame(d.V); x != nil {
			return []fact.Said{d, {Place: x.Place, Text: d.V + "/torch"}}, d.V, true
		}
		if tdir != "" && (tdir == d.V || strings.HasPrefix(tdir, d.V+"/")) || tdir == "" && torchish(d.V+"/") {
			return []fact.Said{d}, d.V, true
		}
	}
	return nil, "", false
}

// torchFrame returns an exception that was raised in the torch of a folder.
func (v *view) torchFrame(dir string) *fact.Exception {
	for _, x := range v.exc {
		for _, f := range x.Frames {
			if strings.HasPrefix(f.File, dir+"/torch/") {
				return x
			}
		}
	}
	return nil
}

func torchish(d string) bool {
	l := strings.ToLower(d)
	return strings.Contains(l, "/pytorch/") || strings.Contains(l, "/torch/") || strings.Contains(l, "/pytorch-")
}

var attrTorch = lazyre.New(`^(?:partially initialized )?module 'torch(?:\.[\w.]+)?' has no attribute '(\w+)'`)

// decideTorchPackage judges what a torch package that is not whole, or not the
// one that was meant, says.
func (v *view) decideTorchPackage() {
	var attr *fact.Exception
	for _, x := range v.exc {
		if attrTorch.MatchString(x.Message) {
			attr = x
			break
		}
	}
	noDist := v.excWith("No module named 'torch.distributed'", "No module named 'torch._C'", "No module named 'torch.cuda'", "cannot import name '_C' from 'torch'")
	broken := v.facts(kind.PipBroken)
	var torchBroken []fact.Said
	for _, s := range broken {
		if strings.Contains(s.V, "-orch") {
			torchBroken = append(torchBroken, s)
		}
	}
	if v.localTorch() || v.noDistributed() {
		return
	}
	failing := attr
	if failing == nil && len(noDist) > 0 {
		failing = noDist[0]
	}
	inTorch := v.tornTorch()
	b := v.build()
	if x := v.cutLibrary(); x != nil {
		c := v.addExc(cand{id: "torch-install-damaged", cert: diag.Proven, over: []string{"run-exception", "torch-not-installed"}}, x)
		v.cutFile(c)
		return
	}
	twice := len(b.pip) > 0 && len(b.conda) > 0 && v.sameListing(b.pip, b.conda)
	if len(torchBroken) > 0 && (failing != nil || inTorch != nil || v.importOfTorchFails()) {
		c := v.addExc(cand{id: "torch-install-damaged", cert: diag.Proven, over: []string{"host-disk-full", "torch-not-installed", "run-exception"}}, failing, inTorch)
		v.said(c, first(torchBroken, 2)...)
		v.used["S356"], v.used["S317"] = true, true
		return
	}
	if inTorch != nil {
		cert := diag.Likely
		if twice {
			cert = diag.Proven
		}
		v.used["S237"] = true
		c := v.add(cand{id: "torch-install-damaged", cert: cert}, inTorch)
		if twice {
			v.said(c, b.pip[0], b.conda[0])
		}
		return
	}
	if attr != nil {
		m := attrTorch.FindStringSubmatch(attr.Message)
		if ss, dir, ok := v.pythonPathShadows(); ok {
			c := v.addExc(cand{id: "env-pythonpath-shadows", cert: diag.Proven, args: diag.Args{"dir": dir}}, attr)
			v.said(c, ss...)
			return
		}
		if ss, dir, ok := v.userSiteShadows(b); ok {
			c := v.addExc(cand{id: "env-user-site-shadows", cert: diag.Likely, args: diag.Args{"dir": dir}}, attr)
			v.said(c, ss...)
			return
		}
		switch m[1] {
		case "__version__", "tensor", "Tensor", "nn", "cuda", "float32", "float16", "device", "no_grad", "manual_seed", "load", "save", "zeros", "ones", "utils", "optim", "backends", "long", "set_num_threads":
			v.addExc(cand{id: "torch-install-damaged", cert: diag.Likely}, attr)
		case "init_process_group":
			v.used["S007"] = true
			v.addExc(cand{id: "torch-built-without-distributed", cert: diag.Likely}, attr)
		}
		return
	}
	if len(noDist) > 0 {
		v.addExc(cand{id: "torch-install-damaged", cert: diag.Likely}, noDist[0])
	}
}

func (v *view) sameListing(a, b []fact.Said) bool {
	for _, x := range a {
		for _, y := range b {
			if x.File == y.File && x.V != y.V {
				return true
			}
		}
	}
	return false
}

// cutLib matches the loader's words for a library that was not written wholly.
var cutLib = lazyre.New(`(/\S*/(?:torch|nvidia)/\S*\.so[\d.]*): (?:file too short|invalid ELF header|cannot read file data|ELF load command past end of file|ELF file's phentsize)`)

// cutLibrary returns the exception of a library of torch's own that was cut.
func (v *view) cutLibrary() *fact.Exception {
	for _, x := range v.exc {
		if cutLib.MatchString(x.Message) {
			return x
		}
	}
	return nil
}

// cutFile adds a listing that shows a library of torch with no bytes.
func (v *view) cutFile(c *cand) {
	for _, s := range v.facts(kind.EmptyLib) {
		v.said(c, s)
	}
}

func (v *view) importOfTorchFails() bool {
	for _, x := range v.exc {
		if n := len(x.Frames); n > 0 && strings.HasSuffix(x.Frames[n-1].File, "/torch/__init__.py") {
			return true
		}
	}
	return false
}

// tornTorch returns an undefined torch symbol inside torch's own libraries.
func (v *view) tornTorch() *fact.Event {
	for _, e := range v.peek("S237") {
		if strings.Contains(e.Text, "/torch/lib/lib") || strings.Contains(e.Text, "/torch/_C") {
			return e
		}
	}
	return nil
}
