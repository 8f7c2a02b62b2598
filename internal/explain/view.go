// Package explain names the cause of a dead job from what its logs, script and
// pasted listings hold. It judges facts only: which line proves what, what is
// a consequence, and what is missing. The order in which causes are preferred
// is written down in choose.go.
package explain

import (
	"sort"
	"strconv"
	"strings"

	"github.com/ncclinic/ncclinic/internal/diag"
	"github.com/ncclinic/ncclinic/internal/fact"
	"github.com/ncclinic/ncclinic/internal/fact/kind"
)

// RuleInfo is what the knowledge base says about a signature.
type RuleInfo struct {
	Sig, Role, Certainty string
	Proves, Suggests     []string
}

// Options of Explain.
type Options struct {
	Rules       func(rule string) (RuleInfo, bool)
	MaxEvidence int // lines of evidence per finding; 0: 8
}

// view is the input with the indexes that deciders ask.
type view struct {
	l         *fact.Logs
	set       *diag.Set
	opt       Options
	sacct     []fact.Said // rows of accounting about the job that the input is about
	scripts   []*script
	sources   []fact.SourceText
	bySig     map[string][]*fact.Event
	byRule    map[string][]*fact.Event
	allSig    map[string][]*fact.Event // with those that were survived
	used      map[string]bool          // signatures that a decider has judged
	cands     []cand
	notes     []*diag.Finding // what is no fault
	exc       []*fact.Exception
	dead      bool
	looked    bool        // dead is known
	masked    bool        // the job's script hides how its commands ended
	launchers bool        // tasks start several ranks each
	lastExc   map[int]int // by file: line of the last exception that is no echo
	needs     []string    // of an unknown verdict
	unsure    []*fact.Event
}

// cand is a possible cause.
type cand struct {
	id     string
	rule   string // log rule whose text explains it
	cert   diag.Certainty
	tier   int // 0: says what broke; 1: may be an echo of something else; 2: what is left when nothing says more
	args   diag.Args
	ev     []fact.Evidence
	where  []diag.Where
	needs  []string
	at     fact.Place // of its first evidence
	over   []string   // causes that it makes consequences
	forced bool       // stands whatever came later, also in a job that ended well
}

func newView(l *fact.Logs, set *diag.Set, o Options) *view {
	v := &view{l: l, set: set, opt: o, bySig: map[string][]*fact.Event{}, byRule: map[string][]*fact.Event{}, used: map[string]bool{}, allSig: map[string][]*fact.Event{}}
	if v.opt.MaxEvidence <= 0 {
		v.opt.MaxEvidence = 8
	}
	for i := range l.Texts {
		t := l.Texts[i]
		if t.Kind == fact.KindScript {
			v.scripts = append(v.scripts, newScript(t, l.Files[t.File].Path))
		} else {
			v.sources = append(v.sources, t)
		}
	}
	v.sacct = ofOwnJob(l)
	v.jobFacts()
	v.launchers = v.tasksAreLaunchers()
	v.masked = l.Job != nil && v.hides()
	v.dead = v.deathSigns() || v.jobFailed() || v.sacctFailed() || v.notStarted()
	v.looked = true
	v.lastExc = map[int]int{}
	for i := range l.Exceptions {
		x := &l.Exceptions[i]
		if base := x.Type[strings.LastIndexByte(x.Type, '.')+1:]; !x.Quoted && x.Handled == "" && x.Start > 0 && !echoTypes[base] && !echoText.MatchString(x.Message) {
			v.lastExc[x.File] = max(v.lastExc[x.File], x.Line)
		}
	}
	for i := range l.Exceptions {
		x := &l.Exceptions[i]
		if x.Quoted || v.survived(x.Handled != "", x.After, x.Place) {
			continue
		}
		v.exc = append(v.exc, x)
	}
	alive := map[int]bool{} // events on the lines of exceptions that were survived
	for i := range l.Exceptions {
		x := &l.Exceptions[i]
		if v.survived(x.Handled != "", x.After, x.Place) {
			for _, e := range x.Sigs {
				alive[e] = true
			}
		}
	}
	for i := range l.Events {
		e := &l.Events[i]
		if e.Quoted {
			continue
		}
		v.allSig[e.Sig] = append(v.allSig[e.Sig], e)
		if alive[i] || v.survived(false, e.After, e.Place) {
			continue
		}
		v.bySig[e.Sig] = append(v.bySig[e.Sig], e)
		v.byRule[e.Rule] = append(v.byRule[e.Rule], e)
	}
	for _, es := range v.bySig {
		v.sortEvents(es)
	}
	return v
}

func (v *view) sortEvents(es []*fact.Event) {
	sort.SliceStable(es, func(i, j int) bool { return before(es[i].Place, es[j].Place) })
}

// survived reports whether the program went on after something: it says that
// it handled it, or training went on for long and nothing died.
func (v *view) survived(handled bool, after int, p fact.Place) bool {
	switch {
	case handled && (after >= 3 || !v.dead):
		return true
	case after >= 3 && !v.dead:
		return true
	case after >= 3 && v.restartedAfter(p):
		return true
	case after >= 20 && p.Line < v.lastExc[p.File]-20:
		return true // it trained on for long, and something else ended it
	}
	return false
}

// restartedAfter reports whether the job was started again after this place and trained on.
func (v *view) restartedAfter(p fact.Place) bool {
	for _, s := range v.l.Listing.Facts {
		if s.Kind == "restart" && s.File == p.File && s.Line > p.Line {
			return true
		}
	}
	return false
}

// skew is how much clocks of nodes may differ, in milliseconds.
const skew = 2000

// before orders places: by time when both are known and further apart than
// clocks may be, else by position in one file.
func before(a, b fact.Place) bool {
	if a.TK != 0 && a.TK == b.TK && a.TK != fact.TimeRelative {
		d := a.Time - b.Time
		if d < -skew || d > skew {
			return d < 0
		}
	}
	if a.File == b.File {
		return a.Line < b.Line
	}
	return false
}

// ev returns the live events of signatures (S001) or rules (log-…), first failure first.
func (v *view) ev(names ...string) []*fact.Event {
	var out []*fact.Event
	for _, n := range names {
		v.used[n] = true
		if n[0] == 'S' {
			out = append(out, v.bySig[n]...)
		} else {
			out = append(out, v.byRule[n]...)
		}
	}
	v.sortEvents(out)
	return out
}

// warned returns the events of signatures, also those that the job survived.
func (v *view) warned(sigs ...string) []*fact.Event {
	var out []*fact.Event
	for _, n := range sigs {
		v.used[n] = true
		out = append(out, v.allSig[n]...)
	}
	v.sortEvents(out)
	return out
}

// peek is ev without taking the signatures from the general rule.
func (v *view) peek(names ...string) []*fact.Event {
	var out []*fact.Event
	for _, n := range names {
		if n[0] == 'S' {
			out = append(out, v.bySig[n]...)
		} else {
			out = append(out, v.byRule[n]...)
		}
	}
	return out
}

func (v *view) has(names ...string) bool { return len(v.peek(names...)) > 0 }

// evidence quotes places.
func (v *view) evidence(p fact.Place, text string) fact.Evidence {
	e := fact.Evidence{Source: fact.SrcLog, Path: v.path(p.File), Line: p.Line, Node: p.Node, Excerpt: text}
	if k := v.l.Files; p.File < len(k) && k[p.File].Kind == fact.KindScript {
		e.Source = fact.SrcScript
	}
	if r := v.rankOf(p); r >= 0 {
		e.Rank = &r
	}
	return e
}

func (v *view) path(file int) string {
	if file >= 0 && file < len(v.l.Files) {
		return v.l.Files[file].Path
	}
	return ""
}

func (v *view) where(p fact.Place) diag.Where {
	w := diag.Where{File: v.path(p.File), Line: p.Line, Node: p.Node}
	if r := v.rankOf(p); r >= 0 {
		w.Rank = &r
	}
	return w
}

// rankOf returns the global rank of a place. An srun label is a rank only when
// each task is a rank, not a launcher that starts several.
func (v *view) rankOf(p fact.Place) int {
	if p.Rank >= 0 {
		return p.Rank
	}
	if p.Task >= 0 && !v.launchers {
		return p.Task
	}
	return -1
}

func (v *view) tasksAreLaunchers() bool {
	for _, x := range v.l.Exits {
		if x.By == "torchrun" || x.By == "table" {
			return true
		}
	}
	for _, s := range v.scripts {
		if len(s.launchers()) > 0 {
			return true
		}
	}
	return false
}

// add notes a candidate from events.
func (v *view) add(c cand, es ...*fact.Event) *cand {
	for i, e := range es {
		if i == 0 {
			if c.at.Line == 0 {
				c.at = e.Place
			}
			if c.rule == "" {
				c.rule = e.Rule
			}
		}
		if len(c.ev) < v.opt.MaxEvidence {
			c.ev = append(c.ev, v.evidence(e.Place, e.Text))
		}
		if i < 4 {
			c.where = append(c.where, v.where(e.Place))
		}
		if i == 0 {
			c.args = merge(c.args, e.Args)
		}
	}
	v.cands = append(v.cands, c)
	return &v.cands[len(v.cands)-1]
}

func merge(a diag.Args, b map[string]string) diag.Args {
	if len(b) == 0 {
		return a
	}
	if a == nil {
		a = diag.Args{}
	}
	for k, x := range b {
		if a[k] == "" {
			a[k] = x
		}
	}
	return a
}

// said adds facts of listings as evidence to a candidate.
func (v *view) said(c *cand, ss ...fact.Said) {
	for _, s := range ss {
		if s.Line == 0 || len(c.ev) >= v.opt.MaxEvidence+4 {
			continue
		}
		e := v.evidence(s.Place, s.Text)
		if k := v.l.Files; s.File < len(k) && k[s.File].Kind == fact.KindLog && s.Rank < 0 {
			e.Source = fact.SrcListing
		}
		c.ev = append(c.ev, e)
		if c.at.Line == 0 {
			c.at = s.Place
		}
	}
}

func (v *view) facts(k string) []fact.Said {
	switch k {
	case kind.Sacct:
		return v.sacct
	case kind.TRES:
		return v.aboutOwnJob(v.l.Listing.All(k))
	}
	return v.l.Listing.All(k)
}

func (v *view) env(name string) (string, fact.Said, bool) {
	for _, s := range v.l.Listing.Facts {
		if s.Kind == kind.Env && s.Name == name {
			return s.V, s, true
		}
	}
	return "", fact.Said{}, false
}

// deathSigns reports whether anything says that the job died.
func (v *view) deathSigns() bool {
	last := map[int]int{} // last sign of success by file
	for _, s := range v.l.Listing.Facts {
		if s.Kind == "success" && s.Name == "strong" && s.Line > last[s.File] {
			last[s.File] = s.Line
		}
	}
	done := v.sacctDone()
	for _, x := range v.l.Exits {
		if x.Code == 0 && x.Words == "" {
			continue
		}
		if done || last[x.File] > x.Line {
			continue
		}
		return true
	}
	for _, s := range v.facts("bad-exit") {
		if !done && last[s.File] < s.Line {
			return true
		}
	}
	deadly := map[string]bool{"S021": true, "S022": true, "S029": true, "S030": true, "S036": true, "S037": true, "S089": true, "S092": true, "S093": true, "S094": true, "S095": true,
		"S241": true, "S242": true, "S243": true, "S244": true, "S245": true, "S246": true, "S247": true, "S248": true, "S249": true, "S250": true, "S251": true, "S252": true, "S263": true,
		"S100": true, "S101": true, "S254": true, "S255": true, "S256": true, "S257": true, "S259": true, "S264": true, "S327": true, "S328": true, "S511": true}
	for _, e := range v.l.Events {
		if !e.Quoted && deadly[e.Sig] && !done && last[e.File] < e.Line {
			if (e.Sig == "S242" || e.Sig == "S244" || e.Sig == "S100" || e.Sig == "S101") && v.restartedAfter(e.Place) {
				continue // Slurm started the job again, and it went on
			}
			return true
		}
	}
	for _, x := range v.l.Exceptions {
		if !x.Quoted && x.Handled == "" && x.After == 0 && !done && last[x.File] < x.Line && v.uncaught(&x) {
			return true
		}
	}
	return false
}

// sacctDone reports whether sacct says that the job completed.
func (v *view) sacctDone() bool {
	ok := v.jobDone()
	for _, s := range v.facts(kind.Sacct) {
		switch {
		case strings.HasPrefix(s.V, "COMPLETED"):
			if !strings.Contains(s.Name, ".") {
				ok = true
			}
		case strings.HasPrefix(s.V, "RUNNING"), strings.HasPrefix(s.V, "PENDING"):
		default:
			return false
		}
	}
	return ok
}

func (v *view) sacctState(prefix string) (fact.Said, bool) {
	for _, s := range v.facts(kind.Sacct) {
		if strings.HasPrefix(s.V, prefix) {
			return s, true
		}
	}
	return fact.Said{}, false
}

// batch returns the batch scripts of the input.
func (v *view) batch() []*script {
	var out []*script
	for _, s := range v.scripts {
		if s.submitted() {
			out = append(out, s)
		}
	}
	return out
}

func itoa(n int) string { return strconv.Itoa(n) }
