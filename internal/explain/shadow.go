package explain

import (
	"strings"

	"github.com/ncclinic/ncclinic/internal/diag"
	"github.com/ncclinic/ncclinic/internal/fact"
	"github.com/ncclinic/ncclinic/internal/fact/kind"
	"github.com/ncclinic/ncclinic/internal/lazyre"
	"github.com/ncclinic/ncclinic/internal/mask"
)

// decideShadow judges a program that runs another torch than the one that its
// environment's listing holds, when PYTHONPATH or ~/.local can put that first.
func (v *view) decideShadow() {
	if !v.dead && len(v.exc) == 0 || v.candidate("env-pythonpath-shadows") || v.candidate("env-user-site-shadows") {
		return
	}
	ran, listed := v.ranAndListed()
	var x *fact.Exception
	for _, y := range v.exc {
		if torchPart.MatchString(y.Message) || v.inTorch(y) {
			x = y
			break
		}
	}
	if x == nil {
		return
	}
	over := []string{"run-exception", "torch-install-damaged", "torch-not-installed"}
	if v.ownTorch(x) {
		return
	}
	dirs := v.pythonPath()
	if tdir, p := v.torchDir(); tdir != "" {
		for _, d := range dirs {
			if d.V == tdir || strings.HasPrefix(tdir, d.V+"/") {
				c := v.addExc(cand{id: "env-pythonpath-shadows", cert: diag.Proven, over: over, args: diag.Args{"dir": d.V}}, x)
				v.said(c, d, fact.Said{Place: p, Text: tdir + "/torch"})
				return
			}
		}
	}
	for _, d := range dirs {
		for _, s := range v.facts(kind.TorchDist) {
			if s.Name == d.V && (listed.V == "" || public(s.V) != public(listed.V)) {
				c := v.addExc(cand{id: "env-pythonpath-shadows", cert: diag.Proven, over: over, args: diag.Args{"dir": d.V, "version": s.V}}, x)
				v.said(c, d, s)
				return
			}
		}
	}
	if ran.V == "" {
		return
	}
	for _, d := range dirs {
		if !packageDir.MatchString(d.V) {
			continue
		}
		c := v.addExc(cand{id: "env-pythonpath-shadows", cert: diag.Likely, over: over, args: diag.Args{"dir": d.V, "version": ran.V}}, x)
		if torchish(d.V + "/") {
			c.cert = diag.Proven
		}
		v.said(c, d, ran, listed)
		return
	}
}

// packageDir matches folders that can hold Python packages, unlike those of a
// program's own sources.
var packageDir = lazyre.New(`(?i)/(?:site|dist)-packages(?:/|$)|/pytorch|/torch|/lib/python\d`)

// ranAndListed returns the version of torch that the program prints and the one
// that the listing of its environment holds, when they are different releases.
func (v *view) ranAndListed() (ran, listed fact.Said) {
	for _, l := range v.facts(kind.Pkg) {
		if l.Name != "torch" && l.Name != "pytorch" || l.V == "" {
			continue
		}
		for _, r := range v.facts(kind.TorchVer) {
			if r.File != l.File && public(r.V) != public(l.V) {
				return r, l
			}
		}
	}
	return fact.Said{}, fact.Said{}
}

func public(ver string) string {
	ver, _, _ = strings.Cut(ver, "+")
	return ver
}

// inTorch reports that an exception was raised while torch itself was imported.
func (v *view) inTorch(x *fact.Exception) bool {
	n := len(x.Frames)
	return n > 0 && (strings.HasSuffix(x.Frames[n-1].File, "/torch/__init__.py") || strings.HasSuffix(x.Type, "ImportError") && strings.Contains(x.Frames[n-1].File, "/torch/"))
}

var setsPath = lazyre.New(`\bPYTHONPATH=["']?([^\s"';]+)`)

// pythonPath returns the folders of PYTHONPATH that are not of the environment
// itself, from dumps of variables, the script and typed commands.
func (v *view) pythonPath() []fact.Said {
	var all []fact.Said
	for _, s := range v.facts(kind.Env) {
		if s.Name == "PYTHONPATH" {
			all = append(all, s)
		}
	}
	for _, s := range v.scripts {
		for _, a := range s.assigns("PYTHONPATH") {
			all = append(all, s.said(a.Pos, a.Name, mask.Text(a.Value.Text)))
		}
	}
	for _, c := range v.l.Commands {
		if m := setsPath.FindStringSubmatch(c.Text); m != nil {
			all = append(all, fact.Said{Place: c.Place, V: m[1], Text: c.Text})
		}
	}
	venv, _, _ := v.env("VIRTUAL_ENV")
	conda, _, _ := v.env("CONDA_PREFIX")
	var out []fact.Said
	for _, s := range all {
		for _, d := range strings.Split(s.V, ":") {
			d = strings.TrimRight(d, "/")
			if !strings.HasPrefix(d, "/") || venv != "" && strings.HasPrefix(d, venv) || conda != "" && strings.HasPrefix(d, conda) {
				continue
			}
			t := s
			t.V = d
			out = append(out, t)
		}
	}
	return out
}

// ownTorch judges a torch of ~/.local that a session shows where the program
// runs, while another one answers when the user's own packages are left out.
func (v *view) ownTorch(x *fact.Exception) bool {
	for _, s := range v.facts(kind.TorchPath) {
		if !strings.Contains(s.V, "/.local/lib/python") {
			continue
		}
		for _, o := range v.torchOutside() {
			c := v.addExc(cand{id: "env-user-site-shadows", cert: diag.Proven, args: diag.Args{"dir": strings.TrimSuffix(s.V, "/torch"), "torch_dir": s.V},
				over: []string{"run-exception", "torch-install-damaged", "torch-extension-built-for-other-torch", "nccl-library-too-old", "cuda-library-shadowed", "torch-needs-newer-driver"}}, x)
			v.said(c, s, o)
			return true
		}
	}
	return false
}
