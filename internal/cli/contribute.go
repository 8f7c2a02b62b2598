package cli

import (
	"slices"

	"github.com/ncclinic/ncclinic/internal/diag"
	"github.com/ncclinic/ncclinic/internal/fact"
	"github.com/ncclinic/ncclinic/internal/fact/kind"
	"github.com/ncclinic/ncclinic/internal/lint"
	"github.com/ncclinic/ncclinic/internal/mask"
	"github.com/ncclinic/ncclinic/rules"
	rule "github.com/ncclinic/ncclinic/rules/lint"
)

// contribute adds errors that lint finds in the batch scripts of the input,
// where they explain what the logs show: they lead to the cause that was named,
// to one that explains it, or to one of those among which the logs do not
// decide. They never change the cause or the verdict: the logs say what
// happened, a script only what was asked for. The rules that ran are returned.
func contribute(rep *diag.Report, l *fact.Logs, base *rules.Base) []diag.Ran {
	open := rep.Top()
	causes := []string{}
	switch {
	case open != nil:
		causes = []string{open.ID}
	case rep.Verdict == diag.Unknown:
		if i := slices.IndexFunc(rep.Findings, func(f diag.Finding) bool { return f.ID == "unknown" }); i >= 0 {
			open = &rep.Findings[i]
			causes = open.Suggests
		}
	}
	if open == nil {
		return nil
	}
	o := lint.Options{Set: base.Set()}
	if s, ok := l.Listing.First(kind.SlurmVer, ""); ok {
		o.Slurm, _ = rule.ParseVersion(s.V)
	}
	hit, ran := map[string]bool{}, false
	var add []diag.Finding
	for i := range l.Texts {
		t := &l.Texts[i]
		if t.Script == nil || !t.Script.Live() {
			continue
		}
		ran = true
		r := lint.Script(t.Script, o)
		for k := range r.Findings {
			f := &r.Findings[k].Finding
			hit[f.ID] = true
			if f.Severity == diag.Error && leadsTo(base.Set(), f.Cause, causes) || f.Severity == diag.Warning && slices.Contains(causes, f.Cause) {
				add = append(add, contribution(f, t, l.Files[t.File].Path))
			}
		}
		if path := l.Files[t.File].Path; open.ID == "unknown" && r.Count(diag.Error) > 0 && l.Files[t.File].Kind == fact.KindScript && path != "-" {
			open.Needs = append(open.Needs, "ncclinic lint "+shellWord(path))
		}
	}
	rep.Findings = append(rep.Findings, add...)
	*rep = rep.Normal()
	if !ran {
		return nil
	}
	var out []diag.Ran
	for _, r := range base.Set().Rules {
		switch {
		case r.Family != "lint":
		case hit[r.ID]:
			out = append(out, diag.Ran{Rule: r.ID, Status: diag.Hit})
		case !r.OptIn && (r.Slurm == "" || o.Slurm.In(r.Slurm)):
			out = append(out, diag.Ran{Rule: r.ID, Status: diag.Clean})
		}
	}
	return out
}

// leadsTo reports whether a cause is one of others, or explains one.
func leadsTo(set *diag.Set, id string, causes []string) bool {
	if id == "" {
		return false
	}
	if slices.Contains(causes, id) {
		return true
	}
	r := set.ByID(id)
	return r != nil && slices.ContainsFunc(causes, func(c string) bool { return slices.Contains(r.Explains, c) })
}

// contribution is a finding of lint as a part of another report: without
// secrets, and with the lines of the file in which the script stands.
func contribution(f *diag.Finding, t *fact.SourceText, path string) diag.Finding {
	x := *f
	x.Role = diag.Contributing
	x.Where, x.Evidence = slices.Clone(f.Where), slices.Clone(f.Evidence)
	for i := range x.Where {
		x.Where[i].File, x.Where[i].Line = path, x.Where[i].Line+t.From-1
	}
	for i := range x.Evidence {
		x.Evidence[i].Path, x.Evidence[i].Line = path, x.Evidence[i].Line+t.From-1
	}
	mask.Deep(&x)
	return x
}

// mergeRan keeps one row for each rule that several bundles were given to: what
// was found in one of them counts.
func mergeRan(rs []diag.Ran) []diag.Ran {
	rank := map[string]int{diag.Hit: 3, diag.RFailed: 2, diag.Clean: 1}
	at := map[string]int{}
	out := rs[:0]
	for _, r := range rs {
		i, dup := at[r.Rule]
		switch {
		case !dup:
			at[r.Rule] = len(out)
			out = append(out, r)
		case rank[r.Status] > rank[out[i].Status]:
			out[i] = r
		}
	}
	return out
}
