package diag

import "github.com/ncclinic/ncclinic/internal/fact"

// Finding builds a finding of a cause outside of Run, with severity, actor and
// fixes from the cause's file. An unknown cause yields an error-level finding
// without fixes.
func (s *Set) Finding(rule, cause string, c Certainty, a Args, ev ...fact.Evidence) Finding {
	if a == nil {
		a = Args{}
	}
	f := Finding{ID: cause, Rule: rule, Role: Cause, Severity: Error, Certainty: c, Args: a, Count: 1}
	if cr := s.ByID(cause); cr != nil {
		if cr.Severity != "" {
			f.Severity = cr.Severity
		}
		f.Actor, f.stage = cr.Actor, cr.Stage
		f.Fixes = expandFixes(cr.Fixes, a)
	}
	for _, e := range ev {
		if !e.IsZero() {
			f.Evidence = append(f.Evidence, e)
		}
	}
	return f
}

// Stage of the cause in a job's life, as Rule.Stage.
func (f *Finding) Stage() int { return f.stage }
