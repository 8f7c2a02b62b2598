package explain

import (
	"sort"
	"strings"

	"github.com/ncclinic/ncclinic/internal/diag"
	"github.com/ncclinic/ncclinic/internal/fact"
	"github.com/ncclinic/ncclinic/internal/fact/kind"
	"github.com/ncclinic/ncclinic/internal/lazyre"
)

// torchPart matches messages about a part that torch lacks: an older or another
// release than the program was written for.
var torchPart = lazyre.New(`No module named ['"]?torch(?:\.|['"]|$)|cannot import name '\w+' from (?:partially initialized module )?'torch\b|module 'torch(?:\.[\w.]+)?' has no attribute|undefined symbol|type object '[\w.]+' has no attribute|got an unexpected keyword argument|no longer supports|requires PyTorch|Unrecognized tensor type|has no attribute '_register_pytree_node'`)

// decideNodes judges a failure of one node whose torch differs from that of the
// others, as listings or prints of each node show it.
func (v *view) decideNodes() {
	v.oddAnswer()
	by := v.torchByNode()
	var names []string
	for n := range by {
		names = append(names, n)
	}
	sort.Strings(names)
	var a, b fact.Said
	for _, n := range names {
		switch {
		case a.V == "":
			a = by[n]
		case by[n].V != a.V && b.V == "":
			b = by[n]
		}
	}
	for _, x := range v.exc {
		if !torchPart.MatchString(x.Message) {
			continue
		}
		c := cand{id: "env-differs-between-nodes", cert: diag.Likely, over: []string{"run-exception", "torch-install-damaged", "torch-not-installed", "env-not-activated"}}
		if b.V != "" {
			if _, ok := by[v.seat(x.Place)]; ok {
				c.cert = diag.Proven
			}
			v.said(v.addExc(c, x), a, b)
			return
		}
		if p, ok := v.torchElsewhere(x); ok {
			c.needs = append(c.needs, "srun --ntasks-per-node=1 bash -c 'hostname; which python; python -c \"import torch; print(torch.__file__, torch.__version__)\"'")
			y := v.addExc(c, x)
			y.ev = append(y.ev, p)
			return
		}
	}
}

// torchByNode returns one statement about torch's version for each node.
func (v *view) torchByNode() map[string]fact.Said {
	out := map[string]fact.Said{}
	for _, s := range v.l.Listing.Facts {
		seat := v.seat(s.Place)
		if seat == "" || s.V == "" || s.Kind != kind.TorchVer && !(s.Kind == kind.Pkg && (s.Name == "torch" || s.Name == "pytorch")) {
			continue
		}
		if _, ok := out[seat]; !ok {
			out[seat] = s
		}
	}
	return out
}

// seat names where a line comes from: its node, else the task that srun's label gives.
func (v *view) seat(p fact.Place) string {
	if p.Node != "" {
		return p.Node
	}
	if p.Task >= 0 {
		for _, x := range v.l.Exits {
			if x.By == "srun" && x.Tasks == itoa(p.Task) {
				return x.Node
			}
		}
		return "task " + itoa(p.Task)
	}
	return ""
}

// torchElsewhere reports that torch is missing as a whole on one node while the
// same program already runs it on another: there a rank logs through torch.
func (v *view) torchElsewhere(x *fact.Exception) (fact.Evidence, bool) {
	m := noModule.FindStringSubmatch(x.Message)
	if m == nil || m[1] != "torch" || x.Node == "" {
		return fact.Evidence{}, false
	}
	for _, y := range v.exc {
		if y != x && y.Node != x.Node && noModule.MatchString(y.Message) {
			return fact.Evidence{}, false // missing everywhere
		}
	}
	for i := range v.l.Events {
		e := &v.l.Events[i]
		if !e.Quoted && e.Node != "" && e.Node != x.Node && (e.Rank >= 0 || strings.Contains(e.Text, "c10d")) {
			return v.evidence(e.Place, e.Text), true
		}
	}
	for _, s := range v.l.Streams {
		if s.Last.Node != "" && s.Last.Node != x.Node && s.Lines >= 2 {
			return v.evidence(s.Last, s.Text), true
		}
	}
	return fact.Evidence{}, false
}

// oddAnswer judges an import that fails on one node alone, where a command that
// was put to several nodes is answered otherwise by that node.
func (v *view) oddAnswer() {
	var x *fact.Exception
	for _, y := range v.exc {
		if strings.HasSuffix(y.Type, "ImportError") || strings.HasSuffix(y.Type, "ModuleNotFoundError") || strings.HasSuffix(y.Type, "AttributeError") {
			x = y
			break
		}
	}
	failed := ""
	for _, e := range v.l.Exits {
		if e.By == "srun" && e.Code > 0 && e.Node != "" {
			if failed != "" && failed != e.Node {
				return // not one node alone
			}
			failed = e.Node
		}
	}
	if x == nil || failed == "" {
		return
	}
	var odd, usual fact.Said
	others := 0
	for _, s := range v.facts(kind.NodeSays) {
		switch {
		case s.Name == failed:
			odd = s
		case usual.V == "" || usual.V == s.V:
			usual = s
			others++
		default:
			return
		}
	}
	if odd.V == "" || others < 2 || odd.V == usual.V {
		return
	}
	c := v.addExc(cand{id: "env-differs-between-nodes", cert: diag.Likely, over: []string{"run-exception", "torch-install-damaged", "torch-not-installed", "env-not-activated"}}, x)
	v.said(c, odd, usual)
	c.where = append([]diag.Where{{Node: failed}}, c.where...)
}
