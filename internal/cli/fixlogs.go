package cli

import (
	"slices"
	"strings"

	"github.com/ncclinic/ncclinic/internal/explain"
	"github.com/ncclinic/ncclinic/internal/fact"
	"github.com/ncclinic/ncclinic/internal/fact/kind"
	"github.com/ncclinic/ncclinic/internal/lazyre"
	"github.com/ncclinic/ncclinic/internal/plan"
	"github.com/ncclinic/ncclinic/internal/tables"
)

var sitePackages = lazyre.New(`^(/.*?)/lib(?:64)?/python(3\.[0-9]{1,2}t?)(?:/|$)`)

// placeOf tells the version of Python and the prefix of an environment from a
// path in it: /home/u/venv/lib/python3.11/site-packages/torch. Both are "" where
// the path does not tell.
func placeOf(path string) (python, prefix string) {
	if m := sitePackages.FindStringSubmatch(path); m != nil {
		python, prefix = m[2], m[1]
		// ~/.local is no environment: packages there belong to whoever finds them.
		if strings.HasSuffix(prefix, "/.local") {
			prefix = ""
		}
		return python, prefix
	}
	for _, bin := range []string{"/bin/python3", "/bin/python"} {
		if p, ok := strings.CutSuffix(path, bin); ok && strings.HasPrefix(path, "/") {
			return "", p
		}
		if i := strings.LastIndex(path, bin+"."); bin == "/bin/python3" && i > 0 {
			return tables.PythonMinor("3." + path[i+len(bin)+1:]), path[:i]
		}
	}
	return "", ""
}

// fromLogs fills in what a log and the listings beside it say of the
// environment and of the nodes, where the report did not.
func fromLogs(l *fact.Logs, in *plan.Input) {
	if l == nil {
		return
	}
	if dir := explain.TorchDir(l); dir != "" && in.Env.Python == "" && in.Env.Prefix == "" {
		py, prefix := placeOf(dir)
		if prefix == "/usr" || prefix == "/usr/local" {
			in.Env.Python, in.Env.Kind = "/usr/bin/python3", "system"
		} else if prefix != "" {
			in.Env.Python, in.Env.Prefix = prefix+"/bin/python", prefix
		}
		if in.Python == "" {
			in.Python = py
		}
	}
	said := func(k string) []string {
		var out []string
		for _, s := range l.Listing.All(k) {
			if s.V != "" && !slices.Contains(out, s.V) {
				out = append(out, s.V)
			}
		}
		return out
	}
	if v := said(kind.Python); in.Python == "" && len(v) == 1 {
		in.Python = tables.PythonMinor(v[0])
	}
	if v := said(kind.Machine); in.Machine == "" && len(v) == 1 && (v[0] == "x86_64" || v[0] == "aarch64") {
		in.Machine = v[0]
	}
	n := plan.Node{}
	if len(in.Nodes) > 0 {
		n = in.Nodes[0]
	}
	if n.Driver == "" {
		for _, d := range said(kind.Driver) {
			if driverForm.MatchString(d) && (n.Driver == "" || tables.Compare(d, n.Driver) < 0) {
				n.Driver = d
			}
		}
	}
	if names := said(kind.GPU); len(names) > len(n.GPUs) {
		was := n.GPUs
		n.GPUs = nil
		for _, name := range names {
			g := plan.GPU{Name: name}
			for _, w := range was {
				if w.Name == name {
					g.Cap = w.Cap
				}
			}
			n.GPUs = append(n.GPUs, g)
		}
	}
	if n.Driver != "" || len(n.GPUs) > 0 {
		in.Nodes = append([]plan.Node{n}, in.Nodes[min(1, len(in.Nodes)):]...)
	}
	if in.Env.Companions == nil {
		in.Env.Companions = map[string]string{}
	}
	for _, s := range l.Listing.All(kind.Pkg) {
		if s.Name == "torchvision" || s.Name == "torchaudio" {
			in.Env.Companions[s.Name] = s.V
		}
	}
}
