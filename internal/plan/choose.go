package plan

import (
	"slices"
	"strings"

	"github.com/ncclinic/ncclinic/internal/tables"
)

// Make plans: it tries every build against everything that is known and ranks
// what fits. An error is a wish that cannot be read.
func Make(in Input) (*Plan, error) {
	w, err := parseWish(in.Wish)
	if err != nil {
		return nil, err
	}
	in.fill()
	in.amd = slices.Equal(in.makers(), []string{tables.AMD})
	p := &Plan{Schema: Schema, Tables: ends(), Python: in.Python, Machine: in.Machine, Glibc: in.Glibc, Nodes: in.Nodes,
		Wish: in.Wish, Pins: in.Pins, Options: []Option{}, Rejected: []Reject{}, Impossible: []Reason{}, Unknown: []Reason{}, Notes: []Reason{}}
	if p.Pins == nil {
		p.Pins = []Pin{}
	}
	if in.Have.Version != "" {
		h := in.Have
		p.Have = &h
	}
	if r, stop := in.foreign(); stop {
		p.Impossible = append(p.Impossible, r)
		return p, nil
	}
	in.unknowns(p)
	in.contradictions(p)
	if r, stop := in.otherKind(&w); stop {
		p.Impossible = append(p.Impossible, r)
		w.tag = ""
	}
	if w.empty != "" {
		p.Impossible = append(p.Impossible, why("wish-empty", "wish", w.text))
		w = wish{text: w.text, any: true}
	}
	said := len(p.Impossible)
	t := in.try()
	in.options(p, &w, t)
	in.reject(p, &w, t)
	p.Impossible = slices.Insert(p.Impossible, said, in.dropped()...)
	in.tool(p)
	for i := range p.Options {
		in.steps(&p.Options[i])
	}
	return p, nil
}

// fill completes what follows from what was given.
func (in *Input) fill() {
	in.Python = tables.PythonMinor(in.Python)
	nodes := slices.Clone(in.Nodes)
	for i := range nodes {
		gpus := slices.Clone(nodes[i].GPUs)
		for k := range gpus {
			if gpus[k].Cap == "" {
				gpus[k].Cap = tables.GPUCap(gpus[k].Name)
			}
			if m := tables.Maker(gpus[k].Name); m != tables.NVIDIA && gpus[k].Cap == "" {
				gpus[k].Maker = m
			}
			if gpus[k].Maker == tables.AMD {
				gpus[k].GFX = tables.GFX(gpus[k].Name)
			}
		}
		nodes[i].GPUs = gpus
		if gpus == nil {
			nodes[i].GPUs = []GPU{}
		}
	}
	if len(nodes) == 0 {
		nodes = []Node{{GPUs: []GPU{}}}
	}
	in.Nodes = nodes
	in.real = in.supported()
	if in.Machine == "" { // a Grace GPU tells
		for _, n := range nodes {
			for _, g := range n.GPUs {
				if tables.GraceHost(g.Name) {
					in.Machine = "aarch64"
				}
			}
		}
	}
	if in.Machine == "" {
		in.Machine = "x86_64"
	}
}

// foreign says when the wheels of the PyTorch index are not for this machine at all.
func (in *Input) foreign() (Reason, bool) {
	switch {
	case in.OS != "" && in.OS != "linux":
		return why("os", "os", in.OS), true
	case in.Board != "":
		return why("board", "board", in.Board), true
	case in.Machine != "x86_64" && in.Machine != "aarch64":
		return why("machine", "machine", in.Machine), true
	}
	return in.otherMaker()
}

// unknowns says which facts are missing and how to get them.
func (in *Input) unknowns(p *Plan) {
	if in.Python == "" {
		p.Unknown = append(p.Unknown, why("ask-python"))
	}
	driver, gpu := false, false
	for _, n := range in.Nodes {
		driver = driver || n.Driver == ""
		gpu = gpu || len(n.GPUs) == 0
		for _, g := range n.GPUs {
			switch near := nearGPU(g.Name); {
			case g.Maker == tables.AMD && g.GFX == "":
				p.Unknown = append(p.Unknown, why("ask-gfx", "gpu", g.Name))
			case g.Cap != "" || g.Maker != "":
			case near != "" && !strings.EqualFold(near, g.Name):
				p.Unknown = append(p.Unknown, why("ask-gpu-near", "gpu", g.Name, "near", near))
			default:
				p.Unknown = append(p.Unknown, why("ask-gpu-name", "gpu", g.Name))
			}
		}
	}
	if in.amd {
		p.Unknown = append(p.Unknown, why("ask-amdgpu"))
	} else if driver {
		p.Unknown = append(p.Unknown, why("ask-driver"))
	}
	if gpu {
		p.Unknown = append(p.Unknown, why("ask-gpu"))
	}
}

// contradictions notes facts that cannot all be true.
func (in *Input) contradictions(p *Plan) {
	for _, n := range in.Nodes {
		for _, g := range n.GPUs {
			if c := tables.GPUCap(g.Name); c != "" && g.Cap != "" && c != g.Cap {
				p.Notes = append(p.Notes, why("cap-differs", "gpu", g.Name, "table", c, "cap", g.Cap))
			}
			if tables.GraceHost(g.Name) && in.Machine == "x86_64" {
				p.Notes = append(p.Notes, why("grace-x86", "gpu", g.Name))
			}
			if g.Maker == tables.AMD && n.Driver != "" {
				p.Notes = append(p.Notes, why("driver-not-amd", "gpu", g.Label(), "driver", n.Driver))
			}
		}
		if n.Compat != "" && n.Driver != "" {
			p.Notes = append(p.Notes, why("compat-there", "compat", n.Compat, "driver", n.Driver))
		}
		if n.Driver != "" && tables.FamilyDriver(tables.DriverCUDA(n.Driver)) == "" {
			p.Notes = append(p.Notes, why("driver-beyond", "driver", n.Driver))
		}
	}
	for _, r := range in.early() {
		p.Notes = append(p.Notes, why("driver-before-gpu", pairs(r.Args)...))
	}
	for _, b := range tables.KnownBadNCCL(in.Have.NCCL, in.Machine, in.gpuNames()) {
		p.Notes = append(p.Notes, why("nccl-"+b.ID, "nccl", in.Have.NCCL, "fixed", b.Fixed))
	}
}

func (in *Input) gpuNames() []string {
	var out []string
	for _, n := range in.Nodes {
		for _, g := range n.GPUs {
			out = append(out, g.Name)
		}
	}
	return out
}

// trial is a release with what became of each of its builds.
type trial struct {
	version string
	fits    []fit
	best    *fit // nil: none does
}

func (in *Input) try() []trial {
	var out []trial
	_, installed, _ := strings.Cut(in.Have.Version, "+")
	for _, v := range in.versions() {
		t := trial{version: v}
		for _, b := range in.builds(v) {
			t.fits = append(t.fits, in.judge(b))
		}
		if in.Have.public() == v && in.Have.Accel == "cuda" && installed == "" {
			installed = "cu" + strings.ReplaceAll(in.Have.CUDA, ".", "")
		}
		keep := ""
		if in.Have.public() == v && (in.Have.Accel == "cuda" || in.amd && in.Have.Accel == "rocm") && !in.Have.NoNCCL {
			keep = installed
		}
		if in.amd {
			t.best = bestROCm(t.fits, keep)
		} else {
			t.best = best(t.fits, keep)
		}
		out = append(out, t)
	}
	return out
}

func (h *Have) public() string { return tables.Public(h.Version) }

// options ranks what fits.
func (in *Input) options(p *Plan, w *wish, ts []trial) {
	tagOK := func(t *trial) *fit {
		if w.tag == "" {
			return t.best
		}
		for i := range t.fits {
			if f := &t.fits[i]; f.tag == w.tag && f.ok() {
				return f
			}
		}
		return nil
	}
	pinned := func(v string) bool {
		for i := range in.Pins {
			if !in.Pins[i].allows(v) {
				return false
			}
		}
		return true
	}
	// The release to keep: the one that was asked for, else the one that is there.
	want := w.exact
	if want == "" && w.any {
		want = in.Have.public()
	}
	var keep, newest *fit
	for i := range ts {
		t := &ts[i]
		f := tagOK(t)
		if f == nil || !w.takes(t.version) || !pinned(t.version) {
			continue
		}
		if newest == nil {
			newest = f
		}
		if t.version == want {
			keep = f
		}
	}
	impossible := false
	switch {
	case newest == nil && (!w.any || w.tag != "" || len(in.Pins) > 0 && anySpec(in.Pins)):
		impossible = true
		in.impossible(p, w, ts, pinned)
	case newest == nil:
		p.Impossible = append(p.Impossible, why("nothing"))
	}
	var opts []*fit
	ids := map[*fit]string{}
	add := func(f *fit, id string) {
		if f == nil {
			return
		}
		for _, o := range opts {
			if o.torch == f.torch && o.tag == f.tag {
				return
			}
		}
		opts = append(opts, f)
		ids[f] = id
	}
	add(keep, OptKeep)
	from := want
	if from == "" {
		from = in.Have.public()
	}
	if from == "" && w.exact != "" {
		from = w.exact
	}
	if keep == nil && from != "" {
		add(nearest(ts, from, func(t *trial) *fit {
			if impossible || w.takes(t.version) && pinned(t.version) {
				if f := tagOK(t); f != nil {
					return f
				}
			}
			return nil
		}), OptNearest)
		if len(opts) == 0 {
			add(nearest(ts, from, func(t *trial) *fit { return t.best }), OptNearest)
		}
	}
	if impossible && len(opts) == 0 {
		// A range or a build without a release: the newest that works at all.
		for i := range ts {
			if f := tagOK(&ts[i]); f != nil {
				add(f, OptNearest)
				break
			}
		}
		if len(opts) == 0 {
			for i := range ts {
				if ts[i].best != nil {
					add(ts[i].best, OptNearest)
					break
				}
			}
		}
	}
	if w.exact == "" {
		add(newest, OptNewest)
	}
	for _, f := range opts {
		p.Options = append(p.Options, in.option(f, ids[f]))
	}
	// The same build may be the newest that works as well.
	for i := range p.Options {
		o := &p.Options[i]
		if newest != nil && o.Torch == newest.torch && o.Tag == newest.tag && o.ID != OptNewest && w.exact == "" {
			o.Also = append(o.Also, OptNewest)
		}
	}
}

func anySpec(ps []Pin) bool {
	return slices.ContainsFunc(ps, func(p Pin) bool { return p.Spec != "" })
}

// impossible says why a wish or a pin cannot be met.
func (in *Input) impossible(p *Plan, w *wish, ts []trial, pinned func(string) bool) {
	if w.beyond() && in.Index == nil {
		p.Impossible = append(p.Impossible, why("wish-beyond", "wish", w.text, "end", tables.NewestRelease(), "read", tables.Read))
		return
	}
	any := false
	for i := range ts {
		t := &ts[i]
		if !w.takes(t.version) {
			continue
		}
		any = true
		if !pinned(t.version) {
			continue
		}
		for k := range t.fits {
			if f := &t.fits[k]; f.why != nil && (w.tag == "" || f.tag == w.tag) && len(p.Impossible) < 4 {
				p.Impossible = append(p.Impossible, *f.why)
			}
		}
		if w.tag != "" && len(p.Impossible) == 0 && !slices.ContainsFunc(t.fits, func(f fit) bool { return f.tag == w.tag }) {
			var tags []string
			for _, f := range t.fits {
				tags = append(tags, f.tag)
			}
			p.Impossible = append(p.Impossible, why("no-build", "torch", t.version, "tag", w.tag, "tags", strings.Join(tags, ", ")))
		}
		if len(t.fits) == 0 && len(p.Impossible) == 0 {
			p.Impossible = append(p.Impossible, why("none-listed", "torch", t.version))
		}
		if len(p.Impossible) > 0 && w.exact == "" {
			break // the newest of a range says enough
		}
	}
	if !any && len(p.Impossible) == 0 {
		switch {
		case in.Index != nil:
			p.Impossible = append(p.Impossible, why("not-in-index", "wish", w.text, "index", in.Index.Name))
		case w.exact != "" && tables.HasRelease(w.exact) == tables.No:
			p.Impossible = append(p.Impossible, why("no-release", "torch", w.exact))
		default:
			vs := tables.Versions()
			p.Impossible = append(p.Impossible, why("before-table", "wish", w.text, "first", vs[len(vs)-1]))
		}
	}
	if len(p.Impossible) == 0 {
		for i := range in.Pins {
			if pin := &in.Pins[i]; pin.Spec != "" {
				p.Impossible = append(p.Impossible, why("pin", "file", pin.File, "line", itoa(pin.Line), "text", pin.Text))
			}
		}
	}
}

// nearest picks the release that changes least: another patch of the same
// series, then the nearest series, the newer of two that are equally far.
func nearest(ts []trial, from string, take func(*trial) *fit) *fit {
	at := func(v string) (series, patch int) {
		f := strings.Split(v, ".")
		n := func(i int) int {
			x := 0
			if i < len(f) {
				for _, c := range f[i] {
					if c < '0' || c > '9' {
						break
					}
					x = x*10 + int(c-'0')
				}
			}
			return x
		}
		return n(0)*1000 + n(1), n(2)
	}
	s0, p0 := at(from)
	var out *fit
	bestS, bestP := 1<<30, 1<<30
	for i := range ts { // newest first: a tie keeps the newer
		f := take(&ts[i])
		if f == nil {
			continue
		}
		s, p := at(ts[i].version)
		ds, dp := abs(s-s0), abs(p-p0)
		if ds > 0 {
			dp = -p // of another series the last patch
		}
		if ds < bestS || ds == bestS && dp < bestP {
			out, bestS, bestP = f, ds, dp
		}
	}
	return out
}

func abs(n int) int {
	if n < 0 {
		return -n
	}
	return n
}

// option describes a build that does.
func (in *Input) option(f *fit, id string) Option {
	f.needs = append(f.needs, in.contradicted()...)
	o := Option{ID: id, Torch: f.torch, Tag: f.tag, Local: f.local, CUDA: tables.TagCUDA(f.tag), ROCm: tables.TagROCm(f.tag), How: f.how, Certainty: proven,
		NCCL: tables.TagNCCL(f.torch, f.tag), Needs: f.needs, GivesUp: f.gives, Steps: []Step{}}
	if len(f.needs) > 0 {
		o.Certainty = possible
	}
	if h := in.Have.public(); h != "" && h != f.torch {
		id := "older"
		if tables.Compare(f.torch, h) > 0 {
			id = "newer"
		}
		o.GivesUp = append(o.GivesUp, why(id, "from", in.Have.Version, "torch", f.torch))
	}
	for _, b := range tables.KnownBadNCCL(o.NCCL, in.Machine, in.gpuNames()) {
		o.GivesUp = append(o.GivesUp, why("nccl-"+b.ID, "nccl", o.NCCL, "fixed", b.Fixed))
	}
	if in.Have.public() == f.torch && in.Have.Accel == "cuda" && in.Have.CUDA == o.CUDA && !in.Have.NoNCCL ||
		in.amd && in.Have.Accel == "rocm" && in.Have.Version == o.Requirement() && !in.Have.NoNCCL {
		o.Installed = true
	}
	if o.Needs == nil {
		o.Needs = []Reason{}
	}
	if o.GivesUp == nil {
		o.GivesUp = []Reason{}
	}
	return o
}

// reject says why other builds were not taken: those of the releases of the
// options, of what was asked for, and of releases newer than the newest option.
func (in *Input) reject(p *Plan, w *wish, ts []trial) {
	shown := map[string]bool{in.Have.public(): true}
	newest := ""
	for _, o := range p.Options {
		shown[o.Torch] = true
		if newest == "" || tables.Compare(o.Torch, newest) > 0 {
			newest = o.Torch
		}
	}
	if w.exact != "" {
		shown[w.exact] = true
	}
	said := map[string]bool{}
	for i := range ts {
		t := &ts[i]
		later := newest != "" && tables.Compare(t.version, newest) > 0
		if !shown[t.version] && !later && len(p.Options) > 0 {
			continue
		}
		for k := range t.fits {
			f := &t.fits[k]
			if f.why == nil {
				continue
			}
			// A driver or a GPU that does not take a build takes it of no release.
			key := f.why.ID + f.tag + f.why.Args["node"] + f.why.Args["gpu"] + f.why.Args["archs"]
			if said[key] {
				continue
			}
			said[key] = true
			p.Rejected = append(p.Rejected, Reject{Torch: f.torch, Tag: f.tag, Why: *f.why})
		}
	}
	for i := range in.Pins {
		pin := &in.Pins[i]
		if pin.From != "" {
			p.Notes = append(p.Notes, why("pin-index", "file", pin.File, "line", itoa(pin.Line), "index", pin.From))
		}
		if pin.CPU {
			p.Notes = append(p.Notes, why("pin-cpu", "file", pin.File, "line", itoa(pin.Line), "text", pin.Text))
		}
		for _, o := range p.Options {
			switch {
			case !pin.allows(o.Torch):
				p.Notes = append(p.Notes, why("pin-change", "file", pin.File, "line", itoa(pin.Line), "text", pin.Text, "torch", o.Requirement()))
			case pin.Tag != "" && pin.Tag != o.Tag:
				p.Notes = append(p.Notes, why("pin-change", "file", pin.File, "line", itoa(pin.Line), "text", pin.Text, "torch", o.Requirement()))
			default:
				continue
			}
			break
		}
	}
}
