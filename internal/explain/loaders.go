package explain

import (
	"slices"

	"github.com/ncclinic/ncclinic/internal/diag"
	"github.com/ncclinic/ncclinic/internal/fact"
)

// unequalLoaders finds ranks whose data has fewer batches than that of others: they
// are through while the others still wait for them in a collective.
func (v *view) unequalLoaders() (cand, bool) {
	last := map[int]fact.Stream{}
	var ranks []int
	for _, s := range v.l.Streams {
		if s.Rank < 0 || s.Total == 0 {
			continue
		}
		if _, twice := last[s.Rank]; twice {
			return cand{}, false // several runs
		}
		last[s.Rank] = s
		ranks = append(ranks, s.Rank)
	}
	if len(ranks) < 2 {
		return cand{}, false
	}
	slices.Sort(ranks)
	least, most := last[ranks[0]].Total, 0
	for _, r := range ranks {
		least, most = min(least, last[r].Total), max(most, last[r].Total)
	}
	// Where the numbers are far apart, not all of them count the same.
	if least == most || most-least > least/4 {
		return cand{}, false
	}
	c := cand{id: "run-ranks-diverged", cert: diag.Likely, tier: 1, over: []string{"run-collective-hang"}, args: diag.Args{"variant": "batches"}}
	var others []fact.Evidence
	for _, r := range ranks {
		s := last[r]
		if s.Done < least-1 {
			return cand{}, false // not yet where it matters
		}
		if s.Total == most {
			others = append(others, v.evidence(s.Last, s.Text))
		} else if len(c.ev) < 4 {
			c.ev = append(c.ev, v.evidence(s.Last, s.Text))
			if c.args["rank"] == "" {
				c.args["rank"] = itoa(r)
			}
			c.where = append(c.where, diag.Where{File: v.path(s.Last.File), Line: s.Last.Line, Rank: &r})
		}
	}
	c.ev = append(c.ev, others[0])
	return c, true
}
