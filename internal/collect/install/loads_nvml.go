package install

import (
	"strings"

	"github.com/ncclinic/ncclinic/internal/fact"
	"github.com/ncclinic/ncclinic/internal/ldso"
)

// nvml says which libnvidia-ml the process would load: NCCL and torch open it
// by its name at run time, so that it is not among the libraries that an
// import needs. One that is not there is the driver's absence, told elsewhere.
func (s *loads) nvml(p *ldso.Process) {
	const name = "libnvidia-ml.so.1"
	if s.b.LoadOf(name) != nil || s.t.Accel() == fact.AccelCPU || s.t.Accel() == fact.AccelROCm {
		return
	}
	caller := p.Main
	for _, o := range p.Objects {
		if strings.Contains(o.Path, "/libnccl.so") {
			caller = o
		}
	}
	o, _, err := p.Resolve(name, caller)
	if err != nil || o == nil {
		return
	}
	by := s.ext
	if caller != nil {
		by = caller.Path
	}
	l := fact.Load{Soname: name, For: by, Path: fact.Of(o.Path, fact.FileExcerpt(by, "dlopen "+name)), Via: o.Via, ViaDir: o.ViaDir, Tried: o.Tried}
	if o.Real != o.Path {
		l.Real = o.Real
	}
	if m := soVersion.FindStringSubmatch(o.Real); m != nil {
		l.Version = fact.Of(m[1], fact.File(o.Real))
	}
	s.b.Loads = append(s.b.Loads, l)
}
