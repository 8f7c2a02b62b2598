package explain

import (
	"slices"
	"sort"

	"github.com/ncclinic/ncclinic/internal/diag"
	"github.com/ncclinic/ncclinic/internal/fact"
	"github.com/ncclinic/ncclinic/internal/fact/kind"
)

// Why the check of a cause was skipped. Their Chinese words are in diag.
const (
	noLog     = "no log was given"
	noScript  = "no batch script was given"
	noPkgs    = "no list of packages was given"
	noNodes   = "what was given does not tell two nodes apart"
	undecided = diag.Undecided
)

// wants says which input a cause cannot be seen without. What is not here shows
// in the messages of the job itself.
var wants = map[string]string{
	"env-activated-after-launch":         noScript,
	"env-modules-reset-after-activation": noScript,
	"slurm-cpus-not-forwarded":           noScript,
	"slurm-directive-ignored":            noScript,
	"slurm-one-node-used":                noScript,
	"nccl-wheels-collide":                noPkgs,
	"env-differs-between-nodes":          noNodes,
	"nccl-version-differs-between-nodes": noNodes,
	"net-differs-between-nodes":          noNodes,
}

// Ran says what became of the check of each cause: it was found, what was given
// shows no sign of it, or what would show it was not given. Log rules are there
// when they met their line; those that met nothing are not listed.
func Ran(rep *diag.Report, l *fact.Logs, set *diag.Set) []diag.Ran {
	hit, open := map[string]bool{}, map[string]bool{}
	for i := range rep.Findings {
		f := &rep.Findings[i]
		if f.ID != "unknown" {
			hit[f.ID] = true
			continue
		}
		for _, id := range f.Suggests {
			open[id] = true
		}
	}
	missing := missingInput(l)
	var out []diag.Ran
	for _, r := range set.Rules {
		if r.Family != "cause" {
			continue
		}
		x := diag.Ran{Rule: r.ID, Status: diag.Clean}
		switch why := wants[r.ID]; {
		case hit[r.ID]:
			x.Status = diag.Hit
		case open[r.ID]:
			x.Status, x.Reason = diag.Skipped, undecided
		case missing[noLog]:
			x.Status, x.Reason = diag.Skipped, noLog
		case missing[why]:
			x.Status, x.Reason = diag.Skipped, why
		}
		out = append(out, x)
	}
	sort.Slice(out, func(i, j int) bool { return out[i].Rule < out[j].Rule })
	seen := map[string]bool{}
	for i := range l.Events {
		if e := &l.Events[i]; !e.Quoted {
			seen[e.Rule] = true
		}
	}
	var met []string
	for id := range seen {
		met = append(met, id)
	}
	slices.Sort(met)
	for _, id := range met {
		out = append(out, diag.Ran{Rule: id, Status: diag.Hit})
	}
	return out
}

// missingInput says which kinds of input were not given.
func missingInput(l *fact.Logs) map[string]bool {
	lines, scripts := 0, 0
	for i := range l.Files {
		switch l.Files[i].Kind {
		case fact.KindScript, fact.KindSource, fact.KindBinary, fact.KindReport:
		default:
			lines += l.Files[i].Lines
		}
	}
	for i := range l.Texts {
		if s := l.Texts[i].Script; s != nil && s.Live() {
			scripts++
		}
	}
	nodes := map[string]bool{}
	see := func(p fact.Place) {
		if p.Node != "" {
			nodes[p.Node] = true
		}
	}
	for i := range l.Events {
		see(l.Events[i].Place)
	}
	for i := range l.Listing.Facts {
		see(l.Listing.Facts[i].Place)
	}
	for i := range l.Exits {
		see(l.Exits[i].Place)
	}
	_, pkgs := l.Listing.First(kind.Pkg, "")
	return map[string]bool{noLog: lines == 0, noScript: scripts == 0, noPkgs: !pkgs, noNodes: len(nodes) < 2}
}
