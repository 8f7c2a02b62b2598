package script

import (
	"sync"

	"github.com/ncclinic/ncclinic/internal/fact"
)

// lists are the lists of a script that grow with it, empty, for the next one to
// fill: memory that is touched for the first time costs most of a small script.
type lists struct {
	commands   []fact.ScriptCmd
	assigns    []fact.Assign
	reads      []fact.Read
	launches   []fact.Launch
	steps      []fact.Step
	holes      []fact.Hole
	top        []fact.TopStmt
	directives []fact.Directive
}

// maxSpare is how many elements a list may have to be kept: one large script
// must not hold its memory for ever.
const maxSpare = 4096

var spare sync.Pool

// Recycle takes the lists of a script that nobody looks at any more, also not
// at a part of them. Strings of the script stay what they are.
func Recycle(s *fact.Script) {
	if s == nil {
		return
	}
	spare.Put(&lists{emptied(&s.Commands), emptied(&s.Assigns), emptied(&s.Reads), emptied(&s.Launches), emptied(&s.Steps),
		emptied(&s.Holes), emptied(&s.Top), emptied(&s.Directives)})
}

// emptied takes the memory of a list, without what its elements point to.
func emptied[T any](list *[]T) []T {
	l := *list
	*list = nil
	if cap(l) > maxSpare {
		return nil
	}
	l = l[:cap(l)]
	clear(l)
	return l[:0]
}

// reuse gives a new script the lists of an old one, if there is one.
func reuse(s *fact.Script) {
	l, _ := spare.Get().(*lists)
	if l == nil {
		return
	}
	s.Commands, s.Assigns, s.Reads, s.Launches, s.Steps = l.commands, l.assigns, l.reads, l.launches, l.steps
	s.Holes, s.Top, s.Directives = l.holes, l.top, l.directives
}
