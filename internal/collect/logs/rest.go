package logs

import (
	"strings"

	"github.com/ncclinic/ncclinic/internal/fact"
)

// goesOn counts the lines that a program writes when it goes on: what follows an
// exception that was printed and not one that ended the program.
func (r *reader) goesOn(h head, msg string, pl fact.Place, exc int) {
	if exc >= 0 || r.lastHitLine == pl.Line || h.nccl || msg == "" || msg[0] == ' ' || msg[0] == '\t' || msg[0] == '[' || msg[0] == '^' {
		return
	}
	for _, own := range []string{"Traceback (", "srun: ", "slurmstepd", "During handling of", "The above exception", "Exception ignored", "Exception in thread", "terminate called"} {
		if strings.HasPrefix(msg, own) {
			return
		}
	}
	if rank := lineRank(pl); rank >= 0 {
		r.went[rank]++
	}
	r.wentAll++
}

// lineRank is the rank, or else the task, of a line; -1: not known.
func lineRank(pl fact.Place) int {
	if pl.Rank < 0 {
		return pl.Task
	}
	return pl.Rank
}

// wentMark returns the number of such lines so far, see progressMark.
func (r *reader) wentMark(pl fact.Place) int {
	if rank := lineRank(pl); rank >= 0 {
		return r.went[rank]
	}
	return r.wentAll
}

// endRest turns the marks of a file's exceptions into what follows them.
func (r *reader) endRest() {
	for i := len(r.out.Exceptions) - 1; i >= 0 && r.out.Exceptions[i].File == r.file; i-- {
		x := &r.out.Exceptions[i]
		x.Rest = max(0, r.wentMark(x.Place)-x.Rest)
	}
}
