package explain

import (
	"testing"

	"github.com/ncclinic/ncclinic/internal/fact"
)

// TestTaskIsRank: srun's label names the rank, unless each task is a launcher
// that starts several.
func TestTaskIsRank(t *testing.T) {
	p := fact.Place{Rank: -1, Local: -1, Task: 3}
	if got := newView(&fact.Logs{}, nil, Options{}).rankOf(p); got != 3 {
		t.Errorf("plain tasks: rank %d", got)
	}
	l := &fact.Logs{Exits: []fact.Exit{{By: "torchrun", Code: 1}}}
	if got := newView(l, nil, Options{}).rankOf(p); got != -1 {
		t.Errorf("tasks that are launchers: rank %d", got)
	}
}
