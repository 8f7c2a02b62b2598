package plan

import (
	"sort"
	"strings"

	"github.com/ncclinic/ncclinic/internal/lazyre"
	"github.com/ncclinic/ncclinic/internal/tables"
)

var (
	moduleName = lazyre.New(`^[A-Za-z][A-Za-z0-9_+.-]*(/[A-Za-z0-9_+.:-]+)*$`)
	moduleTor  = lazyre.New(`(?i)^(py-)?(py)?torch(-(bundle|gpu|cuda))?$`)
	moduleVer  = lazyre.New(`[0-9]+\.[0-9]+(\.[0-9]+)?`)
	moduleCUDA = lazyre.New(`(?i)cu(?:da)?[-/_]?([0-9]{2}(?:\.[0-9]+)*|[0-9]{3})`)
)

// MaxModules bounds the names of a list of modules.
const MaxModules = 50000

// ParseModules reads what "module avail" printed, in columns or with -t, of Lmod
// or of Environment Modules.
func ParseModules(text string) []string {
	var out []string
	seen := map[string]bool{}
	for _, line := range strings.Split(text, "\n") {
		t := strings.TrimSpace(line)
		if t == "" || strings.HasPrefix(t, "-") || strings.HasSuffix(t, ":") || strings.Contains(t, "module spider") || strings.HasPrefix(t, "Where:") || strings.HasPrefix(t, "Use ") {
			continue
		}
		for _, w := range strings.Fields(t) {
			// Flags such as (default), (D), (L,D) stand behind a name, with or without a blank.
			if i := strings.IndexByte(w, '('); i >= 0 {
				w = w[:i]
			}
			w = strings.TrimSuffix(w, "<")
			if w == "" || seen[w] || len(out) >= MaxModules || !moduleName.MatchString(w) {
				continue
			}
			seen[w] = true
			out = append(out, w)
		}
	}
	return out
}

// torchModule is a module that brings torch.
type torchModule struct {
	name, version, cuda string
	cpu                 bool
}

// torchModules finds the modules that bring torch. EasyBuild and Spack name the
// CUDA build; a name without CUDA is not known to be one.
func torchModules(names []string) []torchModule {
	var out []torchModule
	for _, n := range names {
		first, rest, ok := strings.Cut(n, "/")
		if !ok || !moduleTor.MatchString(first) {
			if !ok {
				continue
			}
			// hierarchies: python/3.11/pytorch/2.6.0-cuda-12.4
			i := strings.LastIndex(strings.ToLower(n), "pytorch/")
			if i < 0 {
				continue
			}
			rest = n[i+len("pytorch/"):]
		}
		m := torchModule{name: n, version: moduleVer.FindString(rest)}
		if c := moduleCUDA.FindStringSubmatch(rest); c != nil {
			m.cuda = c[1]
			if !strings.Contains(m.cuda, ".") && len(m.cuda) == 3 {
				m.cuda = m.cuda[:2] + "." + m.cuda[2:]
			}
		}
		m.cpu = strings.Contains(strings.ToLower(rest), "cpu")
		out = append(out, m)
	}
	return out
}

// module names the module to load, and the one to leave.
func (in *Input) module(o *Option) {
	var fit []torchModule
	for _, m := range torchModules(in.Env.Modules) {
		if m.cpu || m.cuda == "" {
			continue
		}
		ok := true
		for _, n := range in.Nodes {
			if n.Driver != "" && tables.DriverRuns(n.Driver, m.cuda) != tables.Yes {
				ok = false
			}
			for _, g := range n.GPUs {
				if first, dropped := tables.CapCUDA(g.Cap); first != "" && (tables.Compare(m.cuda, first) < 0 || dropped != "" && tables.Compare(m.cuda, dropped) >= 0) {
					ok = false
				}
			}
		}
		if ok {
			fit = append(fit, m)
		}
	}
	sort.SliceStable(fit, func(i, j int) bool {
		same := func(m torchModule) int { return tables.Compare(m.version, o.Torch) }
		if a, b := same(fit[i]) == 0, same(fit[j]) == 0; a != b {
			return a
		}
		// PyTorch itself before a bundle that has it too.
		if a, b := plainTorch(fit[i].name), plainTorch(fit[j].name); a != b && same(fit[i]) == same(fit[j]) {
			return a
		}
		if c := tables.Compare(fit[i].version, fit[j].version); c != 0 {
			return c > 0
		}
		return tables.Compare(fit[i].cuda, fit[j].cuda) > 0
	})
	if len(fit) == 0 {
		o.Steps = append(o.Steps, step(StepModule, "module-none").arg("torch", o.Requirement(), "seen", moduleList(in.Env.Modules)))
		return
	}
	o.Module = fit[0].name
	s := step(StepModule, "module").arg("module", fit[0].name)
	for _, l := range torchModules(in.Env.Loaded) {
		if l.name != fit[0].name {
			s.Commands = append(s.Commands, "module unload "+quote(l.name))
			s.Why = why("step-module-instead", "module", fit[0].name, "old", l.name)
		}
	}
	s.Commands = append(s.Commands, "module load "+quote(fit[0].name))
	o.Steps = append(o.Steps, s)
	o.Steps = append(o.Steps, step(StepCheck, "check-module", "python -c '"+strings.SplitN(proof(o), "; assert", 2)[0]+"; assert torch.version.cuda and d.is_nccl_available()'", "ncclinic check").arg("cuda", fit[0].cuda))
}

func plainTorch(name string) bool {
	first, _, _ := strings.Cut(strings.ToLower(name), "/")
	return !strings.HasSuffix(first, "-bundle")
}

func moduleList(names []string) string {
	var out []string
	for _, m := range torchModules(names) {
		if len(out) == 6 {
			out = append(out, "…")
			break
		}
		out = append(out, m.name)
	}
	return strings.Join(out, ", ")
}
