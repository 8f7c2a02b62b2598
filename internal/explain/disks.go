package explain

import (
	"github.com/ncclinic/ncclinic/internal/diag"
	"github.com/ncclinic/ncclinic/internal/fact/kind"
)

// diskShown takes a table that shows a file system as full, or a quota as exceeded,
// for a cause where nothing else tells one: the table was given for a reason.
func (v *view) diskShown() {
	df := v.facts(kind.FullDisk)
	if len(df) == 0 || len(v.cands) > 0 || !v.dead && len(v.l.Streams)+len(v.facts("success")) > 0 {
		return
	}
	c := cand{id: "host-disk-full", cert: diag.Possible, tier: 2, args: diag.Args{"variant": "full", "path": df[0].Name}}
	if df[0].V == kind.OverQuota {
		c.args["variant"] = "quota"
	}
	for _, s := range df {
		if s.V == kind.OverQuota && !v.dead {
			c.cert = diag.Likely
		}
		if len(c.where) < 4 {
			c.where = append(c.where, v.where(s.Place))
		}
	}
	c.needs = []string{"the standard error of every rank", "df -h . $HOME /tmp", "quota -s"}
	v.said(v.add(c), first(df, 4)...)
}
