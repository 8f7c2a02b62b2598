package explain

import (
	"slices"
	"strings"

	"github.com/ncclinic/ncclinic/internal/diag"
	"github.com/ncclinic/ncclinic/internal/fact"
)

// ignored finds a directive that sbatch does not read and that asks for one of
// the options, in a script whose live directives do not.
func (v *view) ignored(names ...string) (fact.Evidence, bool) {
	for _, s := range v.batch() {
		live := false
		for i := range s.f.Directives {
			live = live || slices.Contains(names, s.f.Directives[i].Name)
		}
		if live {
			continue
		}
		for i := range s.f.Stray {
			x := &s.f.Stray[i]
			if x.Kind == fact.StrayQuoted || x.Kind == fact.StrayDisabled {
				continue
			}
			for _, o := range x.Options {
				if slices.Contains(names, o.Name) {
					return s.ev(x.Pos), true
				}
			}
		}
	}
	return fact.Evidence{}, false
}

// ignoredRequest judges a job that ran into a limit which a directive that
// sbatch did not read was to raise.
func (v *view) ignoredRequest() {
	for _, k := range []struct {
		cause string
		names []string
	}{
		{"host-out-of-memory", []string{"mem", "mem-per-cpu", "mem-per-gpu"}},
		{"job-time-limit", []string{"time"}},
		{"rdzv-too-few-ranks", []string{"nodes", "ntasks", "ntasks-per-node"}},
		{"slurm-one-node-used", []string{"nodes"}},
		{"gpu-index-out-of-range", []string{"gres", "gpus", "gpus-per-node"}},
	} {
		i := slices.IndexFunc(v.cands, func(c cand) bool { return c.id == k.cause })
		if i < 0 || v.candidate("slurm-directive-ignored") {
			continue
		}
		if ev, ok := v.ignored(k.names...); ok {
			c := v.cands[i]
			v.cands = append(v.cands, cand{id: "slurm-directive-ignored", cert: diag.Likely, tier: c.tier, at: c.at, where: c.where,
				over: []string{k.cause, "run-exception"}, args: diag.Args{"directive": strings.TrimSpace(ev.Excerpt)}, ev: append(append([]fact.Evidence(nil), c.ev...), ev), forced: c.forced})
		}
	}
}

// endedAtOnce judges a job of which sacct shows the code that Slurm uses when a
// file for the output could not be opened.
func (v *view) endedAtOnce() {
	s, ok := v.sacctState("FAILED")
	if !ok || s.Aux != "0:53" || v.candidate("slurm-output-path") {
		return
	}
	c := v.add(cand{id: "slurm-output-path", cert: diag.Likely, over: []string{"run-exception"}, needs: []string{"scontrol show job JOBID | grep -e StdOut -e StdErr -e WorkDir", "ls -ld DIRECTORY"}})
	v.said(c, s)
	c.where = append(c.where, v.where(s.Place))
	for _, b := range v.batch() {
		for i := range b.f.Directives {
			if d := &b.f.Directives[i]; d.Name == "output" || d.Name == "error" {
				c.ev = append(c.ev, b.ev(d.Pos))
			}
		}
	}
}
