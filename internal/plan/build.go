package plan

import (
	"slices"
	"strings"

	"github.com/ncclinic/ncclinic/internal/tables"
)

// build is one wheel that could be installed.
type build struct {
	torch string // 2.6.0
	tag   string // cu124
	local bool   // the version carries the tag
	// listed: the site's index says that it is there for this Python and machine.
	listed bool
	glibc  string // of a listed wheel
}

// fit says how a build does on all nodes.
type fit struct {
	build
	how   string
	why   *Reason // why it does not do
	soft  bool    // nothing speaks against it, but a table does not hold what it takes
	needs []Reason
	gives []Reason
}

func (f *fit) ok() bool { return f.why == nil }

// judge tries a build against everything that is known.
func (in *Input) judge(b build) fit {
	f := fit{build: b, how: Direct}
	no := func(soft bool, id string, kv ...string) fit {
		r := why(id, append([]string{"torch", b.torch, "tag", b.tag}, kv...)...)
		f.why, f.soft = &r, soft
		return f
	}
	if in.amd {
		return in.judgeROCm(f, no)
	}
	cuda := tables.TagCUDA(b.tag)
	if cuda == "" {
		return no(true, "not-cuda")
	}
	if r, soft, ok := in.wheel(&f, tables.WheelTags(b.torch)); !ok {
		return no(soft, r.ID, pairs(r.Args)...)
	}
	for i := range in.real {
		if r, ok := in.driver(&f, &in.real[i], cuda); !ok {
			return no(false, r.ID, pairs(r.Args)...)
		}
	}
	archs := tables.WheelArchs(b.torch, b.tag, in.Machine)
	if archs == nil {
		return no(true, "archs-unknown", "machine", in.Machine)
	}
	for i := range in.real {
		n := &in.real[i]
		if len(n.GPUs) == 0 {
			f.needs = append(f.needs, why("need-gpu", "archs", strings.Join(archs, " ")))
		}
		for _, g := range n.GPUs {
			switch {
			case g.Cap == "":
				f.needs = append(f.needs, why("need-cap", "gpu", g.Label(), "archs", strings.Join(archs, " ")))
				continue
			case tables.Runs(archs, g.Cap) == tables.No:
				return no(false, "arch", "gpu", g.Label(), "archs", strings.Join(archs, " "))
			case tables.Runs(archs, g.Cap) == tables.Unknown:
				return no(true, "arch-unknown", "gpu", g.Label(), "archs", strings.Join(archs, " "))
			case f.how == Minor && tables.Runs(withoutPTX(archs), g.Cap) != tables.Yes:
				// The driver would have to compile PTX that is newer than itself.
				return no(false, "ptx-minor", "gpu", g.Label(), "cuda", cuda, "need", tables.ToolkitDriver(cuda), "driver", n.Driver)
			}
		}
	}
	if f.how == Minor {
		f.gives = append(f.gives, why("minor", "cuda", cuda, "driver", in.oldest(), "need", tables.ToolkitDriver(cuda)))
	}
	return f
}

// wheel says whether a build was published and is for this Python and glibc.
func (in *Input) wheel(f *fit, tags []string) (r Reason, soft, ok bool) {
	b := &f.build
	if !b.listed {
		if tables.HasRelease(b.torch) == tables.No {
			return why("no-release"), false, false
		}
		if tags == nil {
			return why("beyond-table", "end", tables.NewestRelease(), "read", tables.Read), true, false
		}
		if !slices.Contains(tags, b.tag) {
			return why("no-build", "tags", strings.Join(tags, ", ")), false, false
		}
		if in.Python != "" && tables.HasPython(b.torch, in.Python) == tables.No {
			return why("python", "python", in.Python, "pythons", strings.Join(tables.Pythons(b.torch), ", ")), false, false
		}
		if g := tables.WheelGlibc(b.torch, b.tag, in.Machine); g != "" && in.Glibc != "" && tables.Compare(in.Glibc, g) < 0 {
			return why("glibc", "need", g, "glibc", in.Glibc), false, false
		}
	}
	if b.glibc != "" && in.Glibc != "" && tables.Compare(in.Glibc, b.glibc) < 0 {
		return why("glibc", "need", b.glibc, "glibc", in.Glibc), false, false
	}
	if in.Python == "" {
		f.needs = append(f.needs, why("need-python", "pythons", strings.Join(tables.Pythons(b.torch), ", ")))
	}
	return Reason{}, false, true
}

// driver tries one node's driver.
func (in *Input) driver(f *fit, n *Node, cuda string) (Reason, bool) {
	need := tables.FamilyDriver(cuda)
	driver := n.Driver
	if n.Compat != "" && tables.Compare(n.Compat, driver) > 0 {
		driver = n.Compat
	}
	if driver == "" {
		f.how = Unsaid
		f.needs = append(f.needs, why("need-driver", "need", need, "family", family(cuda)))
		return Reason{}, true
	}
	switch tables.DriverRuns(driver, cuda) {
	case tables.Unknown:
		return why("driver-unknown", "driver", driver, "cuda", cuda), false
	case tables.No:
		if in.Forward && in.allDataCenter(n) == tables.Yes {
			f.how = Forward
			f.needs = append(f.needs, why("need-compat", "package", "cuda-compat-"+strings.ReplaceAll(cuda, ".", "-")))
			return Reason{}, true
		}
		id := "driver"
		switch in.allDataCenter(n) {
		case tables.Yes:
			id = "driver-compat"
		case tables.No:
			id = "driver-consumer"
		}
		return why(id, "family", family(cuda), "need", need, "driver", driver, "node", n.Name, "package", "cuda-compat-"+strings.ReplaceAll(cuda, ".", "-")), false
	}
	if d := tables.ToolkitDriver(cuda); (d == "" || tables.Compare(driver, d) < 0) && f.how == Direct {
		f.how = Minor
	}
	return Reason{}, true
}

func (in *Input) allDataCenter(n *Node) tables.Answer {
	out := tables.Unknown
	for _, g := range n.GPUs {
		switch tables.DataCenter(g.Name) {
		case tables.No:
			return tables.No
		case tables.Yes:
			out = tables.Yes
		default:
			return tables.Unknown
		}
	}
	return out
}

// oldest returns the oldest driver of the nodes, "" when none is known.
func (in *Input) oldest() string {
	d := ""
	for _, n := range in.real {
		if n.Driver != "" && (d == "" || tables.Compare(n.Driver, d) < 0) {
			d = n.Driver
		}
	}
	return d
}

func withoutPTX(archs []string) []string {
	var out []string
	for _, a := range archs {
		if !strings.HasPrefix(a, "compute_") {
			out = append(out, a)
		}
	}
	return out
}

func family(cuda string) string {
	major, _, _ := strings.Cut(cuda, ".")
	return major
}

// builds lists the builds of a release: those that the site's index has, else
// those that were published.
func (in *Input) builds(version string) []build {
	if in.Index != nil {
		return in.Index.builds(version, in.Python, in.Machine, in.amd)
	}
	var out []build
	if in.amd {
		for _, t := range tables.ROCmTags(version) {
			out = append(out, build{torch: version, tag: t, local: true})
		}
		if out == nil {
			out = []build{{torch: version}} // to be rejected with a reason
		}
		return out
	}
	for _, t := range tables.WheelTags(version) {
		out = append(out, build{torch: version, tag: t, local: true})
	}
	return out
}

// versions lists the releases that could be installed, newest first.
func (in *Input) versions() []string {
	if in.Index != nil {
		return in.Index.versions()
	}
	return tables.Versions()
}

// best picks one of the builds of a release that fit: the newest CUDA family,
// in it the newest build whose own driver is not newer than the node's, else the
// oldest of the family, which asks least of minor-version compatibility. A build
// that needs no further package goes before one that does, and the one that is
// installed before all.
func best(fits []fit, installed string) *fit {
	rank := func(f *fit) (int, int) {
		r := map[string]int{Direct: 3, Minor: 2, Unsaid: 1, Forward: 0}[f.how]
		if f.how == Minor {
			return r, -num(f.tag)
		}
		if f.how == Unsaid {
			return r, -num(f.tag)
		}
		return r, num(f.tag)
	}
	var out *fit
	for i := range fits {
		f := &fits[i]
		if !f.ok() {
			continue
		}
		if f.tag == installed {
			return f
		}
		if out == nil {
			out = f
			continue
		}
		of, ff := family(tables.TagCUDA(out.tag)), family(tables.TagCUDA(f.tag))
		plain := func(f *fit) bool { return f.how == Direct || f.how == Minor }
		a1, a2 := rank(f)
		b1, b2 := rank(out)
		switch {
		case plain(f) != plain(out):
			if plain(f) {
				out = f
			}
		case of != ff:
			if ff > of && f.how != Unsaid {
				out = f
			} else if f.how == Unsaid && ff < of {
				out = f
			}
		case a1 > b1 || a1 == b1 && a2 > b2:
			out = f
		}
	}
	return out
}

func num(tag string) int {
	n := 0
	for _, c := range strings.TrimPrefix(tag, "cu") {
		n = n*10 + int(c-'0')
	}
	return n
}
