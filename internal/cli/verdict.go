package cli

import (
	"github.com/ncclinic/ncclinic/internal/diag"
	"github.com/ncclinic/ncclinic/internal/explain"
	"github.com/ncclinic/ncclinic/internal/fact"
	"github.com/ncclinic/ncclinic/rules"
)

// loadLogs reads what judging logs needs: the rules of some families, and those
// that know the lines of logs.
func (a *app) loadLogs(families ...string) (*rules.Base, *rules.LogBase, error) {
	base, err := a.load(families...)
	if err != nil {
		return nil, nil, err
	}
	lb, err := rules.LoadLog(rules.EmbeddedLog())
	return base, lb, err
}

// explained judges what was read of logs.
func (a *app) explained(l *fact.Logs, base *rules.Base, lb *rules.LogBase) diag.Report {
	return explain.Explain(l, base.Set(), explain.Options{MaxEvidence: a.out.maxEvidence, Rules: func(id string) (explain.RuleInfo, bool) {
		r := lb.ByID(id)
		if r == nil {
			return explain.RuleInfo{}, false
		}
		return explain.RuleInfo{Sig: r.Sig, Role: r.Role, Certainty: r.Certainty, Proves: r.Proves, Suggests: r.Suggests}, true
	}})
}
