package diag

import (
	"fmt"
	"sort"

	"github.com/ncclinic/ncclinic/internal/fact"
)

// Run runs every rule that has a check over the bundle and names the cause.
// A check that panics is a failed rule, not a crash: the rest still reports.
func Run(set *Set, b *fact.Bundle) Report {
	rep := Report{Schema: ReportSchema, Rules: set.Version, Subject: b.Subject, Problems: b.Problems}
	for _, r := range set.Rules {
		if r.Check == nil {
			continue
		}
		found, ran := runOne(set, r, b)
		rep.Ran = append(rep.Ran, ran)
		rep.Findings = append(rep.Findings, found...)
	}
	decide(set, &rep)
	return rep.Normal()
}

// Decide orders findings that were put together from several runs, and sets
// verdict and cause as Run does.
func Decide(set *Set, rep Report) Report {
	rep.Cause = nil
	decide(set, &rep)
	return rep.Normal()
}

func runOne(set *Set, r *Rule, b *fact.Bundle) (found []Finding, ran Ran) {
	ran = Ran{Rule: r.ID, Status: Clean}
	if why := unmet(r.Needs, b); why != "" {
		ran.Status, ran.Reason = Skipped, why
		return nil, ran
	}
	defer func() {
		if p := recover(); p != nil {
			found, ran.Status, ran.Reason = nil, RFailed, fmt.Sprint(p)
		}
	}()
	rp := Reporter{rule: r, set: set}
	r.Check(b, &rp)
	switch {
	case rp.denied != nil:
		return nil, Ran{Rule: r.ID, Status: RFailed, Reason: rp.denied.Error()}
	case len(rp.out) > 0:
		ran.Status = Hit
	case rp.skip != "":
		ran.Status, ran.Reason = Skipped, rp.skip
	}
	return rp.out, ran
}

// decide orders findings and sets verdict and cause. The order is explainable:
// what another cause explains is folded under it; of the rest, what fails first
// in a job's life comes first (stage), errors before warnings, proven before likely.
func decide(set *Set, rep *Report) {
	fs := rep.Findings
	for i := range fs {
		fs[i].order = i
	}
	fs = mergeSame(fs)
	// In order of life before anything is explained: of two causes that explain
	// each other, the earlier one does.
	sort.SliceStable(fs, func(i, j int) bool { return before(fs[i], fs[j]) })
	explained := map[int]bool{}
	for i := range fs {
		if fs[i].Role != Cause {
			continue
		}
		for _, id := range explains(set, fs[i]) {
			for j := range fs {
				if j != i && fs[j].ID == id && !explained[i] && severityRank(fs[i].Severity) <= severityRank(fs[j].Severity) {
					explained[j] = true
					fs[i].Explains = append(fs[i].Explains, id)
				}
			}
		}
	}
	for j := range fs {
		if explained[j] && fs[j].Role == Cause {
			fs[j].Role = Symptom
		}
	}
	sort.SliceStable(fs, func(i, j int) bool { return before(fs[i], fs[j]) })
	rep.Findings = fs
	rep.Verdict = OK
	for i := range fs {
		f := &fs[i]
		if f.Role != Cause {
			continue
		}
		if rep.Cause == nil && f.Severity != Note {
			id := f.ID
			rep.Cause = &id
			if f.Severity == Error {
				rep.Verdict = Broken
			} else {
				rep.Verdict = Warned
			}
			continue
		}
		f.Role = Contributing
	}
	if rep.Cause == nil {
		for i := range fs {
			// A note that names a command which would decide: nothing is proven wrong, and
			// not everything that matters could be seen.
			if len(fs[i].Needs) > 0 && fs[i].Role == Context {
				rep.Verdict = Unknown
			}
		}
	}
}

// mergeSame folds findings of one cause from several rules: the surest one
// stays in front and takes over the others' evidence.
func mergeSame(fs []Finding) []Finding {
	var out []Finding
	at := map[string]int{}
	for _, f := range fs {
		k, dup := at[f.ID]
		if !dup || f.Role != out[k].Role {
			if !dup {
				at[f.ID] = len(out)
			}
			out = append(out, f)
			continue
		}
		keep, add := &out[k], f
		if certaintyRank(f.Certainty) < certaintyRank(keep.Certainty) ||
			certaintyRank(f.Certainty) == certaintyRank(keep.Certainty) && severityRank(f.Severity) < severityRank(keep.Severity) {
			add, *keep = *keep, f
		}
		for _, e := range add.Evidence {
			if !hasEvidence(keep.Evidence, e) {
				keep.Evidence = append(keep.Evidence, e)
			}
		}
		keep.Where = append(keep.Where, add.Where...)
		keep.Count += add.Count
	}
	return out
}

func hasEvidence(es []fact.Evidence, e fact.Evidence) bool {
	for _, x := range es {
		if x.Path == e.Path && x.Line == e.Line && x.Excerpt == e.Excerpt {
			return true
		}
	}
	return false
}

func explains(set *Set, f Finding) []string {
	var ids []string
	if r := set.ByID(f.ID); r != nil {
		ids = append(ids, r.Explains...)
	}
	if r := set.ByID(f.Rule); r != nil && f.Rule != f.ID {
		ids = append(ids, r.Explains...)
	}
	return ids
}

func before(a, b Finding) bool {
	ka := [...]int{roleRank(a.Role), severityRank(a.Severity), a.stage, certaintyRank(a.Certainty), a.order}
	kb := [...]int{roleRank(b.Role), severityRank(b.Severity), b.stage, certaintyRank(b.Certainty), b.order}
	for i := range ka {
		if ka[i] != kb[i] {
			return ka[i] < kb[i]
		}
	}
	return false
}

func roleRank(r Role) int {
	switch r {
	case Cause:
		return 0
	case Contributing:
		return 1
	case Symptom:
		return 2
	}
	return 3
}

func severityRank(s Severity) int {
	switch s {
	case Error:
		return 0
	case Warning:
		return 1
	}
	return 2
}

func certaintyRank(c Certainty) int {
	switch c {
	case Proven:
		return 0
	case Likely:
		return 1
	}
	return 2
}

// Normal replaces nil lists by empty ones: the report never shows null for a list.
func (r Report) Normal() Report {
	if r.Findings == nil {
		r.Findings = []Finding{}
	}
	if r.Ran == nil {
		r.Ran = []Ran{}
	}
	if r.Problems == nil {
		r.Problems = []fact.Problem{}
	}
	for i := range r.Findings {
		f := &r.Findings[i]
		if f.Args == nil {
			f.Args = Args{}
		}
		if f.Where == nil {
			f.Where = []Where{}
		}
		if f.Evidence == nil {
			f.Evidence = []fact.Evidence{}
		}
		if f.Explains == nil {
			f.Explains = []string{}
		}
		if f.Needs == nil {
			f.Needs = []string{}
		}
		if f.Fixes == nil {
			f.Fixes = []Fix{}
		}
	}
	return r
}
