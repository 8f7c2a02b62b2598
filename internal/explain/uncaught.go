package explain

import (
	"strings"

	"github.com/ncclinic/ncclinic/internal/fact"
)

// How many lines a program may still write after the traceback that ended it (of
// its exit handlers, of libraries), and how many where other ranks may have
// written them.
const (
	lastWords       = 5
	lastWordsOfMany = 20
)

// uncaught reports whether an exception ended its program, where Slurm says that
// the job ended well and only this says otherwise: its script may hide the status
// of a program that failed, but a program may also print an exception that it
// handles. Python's own traceback begins at the top of the program and is the last
// thing of it; one that is printed begins where it was caught, and the program
// goes on to write.
func (v *view) uncaught(x *fact.Exception) bool {
	j := v.l.Job
	if j == nil || j.State.Or("") != "COMPLETED" || x.Rest == 0 {
		return true
	}
	if len(x.Frames) > 0 && len(x.Frames) < fact.MaxFrames && !topOf(x.Frames[0]) {
		return false
	}
	limit := lastWords
	if lineRank := max(x.Rank, x.Task); lineRank < 0 && v.manyTasks() {
		limit = lastWordsOfMany
	}
	return x.Rest < limit || v.programs() > 1
}

// topOf reports that a frame is where a process begins.
func topOf(f fact.Frame) bool {
	return strings.HasPrefix(f.Func, "<module>") || f.Func == "_run_module_as_main" || f.Func == "_wrap" || f.Func == "_bootstrap"
}

// manyTasks reports that several tasks may write to one file.
func (v *view) manyTasks() bool {
	j := v.l.Job
	if j.Tasks.Or(1) > 1 || j.NodeCount.Or(1) > 1 {
		return true
	}
	for _, s := range j.Steps {
		if s.Tasks > 1 {
			return true
		}
	}
	return v.launchers
}

// programs counts the programs that the script runs one after the other.
func (v *view) programs() int {
	s := v.batchScript()
	if s == nil {
		return 0
	}
	n := 0
	for i := range s.f.Launches {
		if l := &s.f.Launches[i]; !l.Dead && l.Kind != fact.LaunchWrapper {
			n++
			if s.f.Commands[l.Cmd].Loop > 0 {
				n++
			}
		}
	}
	return n
}
