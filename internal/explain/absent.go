package explain

import (
	"strconv"
	"strings"

	"github.com/ncclinic/ncclinic/internal/fact"
	"github.com/ncclinic/ncclinic/internal/fact/kind"
)

// absentRank returns the one rank of which the others' watchdogs wait: it has
// no timeout of its own, and its task was killed instead of aborting.
func (v *view) absentRank() (int, fact.Place, bool) {
	for _, x := range v.l.Exits {
		if x.By == "srun" && x.Code == -9 && !v.tasksAreLaunchers() && !strings.ContainsAny(x.Tasks, ",-") {
			if r, err := strconv.Atoi(x.Tasks); err == nil && len(v.l.Works) > 0 && !v.timedOut(r) {
				return r, x.Place, true
			}
		}
	}
	if r, ok := v.missingWorkRank(); ok {
		return r, fact.Place{}, true
	}
	return -1, fact.Place{}, false
}

func (v *view) timedOut(rank int) bool {
	for _, w := range v.l.Works {
		if w.Rank == rank {
			return true
		}
	}
	return false
}

// missingWorkRank returns the single rank without a watchdog line when all others have one.
func (v *view) missingWorkRank() (int, bool) {
	have := map[int]bool{}
	top := -1
	for _, w := range v.l.Works {
		if w.Rank >= 0 {
			have[w.Rank] = true
			top = max(top, w.Rank)
		}
	}
	if len(have) < 2 {
		return -1, false
	}
	missing := -1
	n := v.worldSize()
	if n == 0 {
		n = top + 1
	}
	for r := 0; r < n; r++ {
		if !have[r] {
			if missing >= 0 {
				return -1, false
			}
			missing = r
		}
	}
	return missing, missing >= 0
}

// worldSize as far as the input tells; 0: not told.
func (v *view) worldSize() int {
	for _, s := range v.l.Listing.Facts {
		if s.Kind == kind.Init {
			if n, err := strconv.Atoi(s.Aux); err == nil {
				return n
			}
		}
	}
	return 0
}
