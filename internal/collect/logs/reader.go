// Package logs turns job logs into events: which signature was met on which
// line, by which rank and node, and when. It reads in blocks, looks for the
// signatures' literals in raw bytes, and takes lines apart only around hits and
// at both ends of a file, so that a log of gigabytes costs little more than
// reading it. What repeats is counted, not kept.
package logs

import (
	"bufio"
	"bytes"
	"fmt"
	"sort"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/ncclinic/ncclinic/internal/collect/listing"
	"github.com/ncclinic/ncclinic/internal/fact"
	"github.com/ncclinic/ncclinic/internal/lazyre"
)

// Signature is what a rule file says about a line.
type Signature struct {
	Rule     string // id of the rule file
	Sig      string // S001
	Role     string // cause, consequence, either, context, noise
	Literals []string
	Regex    []*lazyre.Regexp // named groups become arguments
	Strict   bool             // one of Regex must match
}

// Options of Collect.
type Options struct {
	Signatures []Signature
	Limit      int64               // bytes per file after decompression; 0: DefaultLimit
	Since      time.Time           // events before are dropped; zero: none
	Mask       func(string) string // hides secrets in everything that is kept; nil: nothing is hidden
	Workers    int                 // scanning goroutines; 0: 2
}

// DefaultLimit bounds endless streams; a file of this size is read in minutes.
const DefaultLimit = 64 << 30

// engine is what all files share: the automaton and the signatures.
type engine struct {
	find   *finder
	owners [][]int // by literal: signatures
	sigs   []Signature
	wake   *finder // literals that make a part of a file worth reading
	cheap  []bool  // by literal of wake: many hits of it are not followed
}

// anchors are literals besides those of signatures that open a window: the
// frames of failures and of listings.
var anchors = []string{
	"Traceback (most recent call last)", "srun: error: ", "slurmstepd: error", "failed (exitcode: ", "Root Cause (first observed",
	"exits with return code", "-- Process ", "Fatal Python error", "WorkNCCL(", "last enqueued", "] error: ",
	"Driver Version:", "NVIDIA-SMI ", "AllocTRES=", "CUDA used to build", "packages in environment", "torch.__version__",
	"oom_kill", "oom-kill", "Xid (PCI", "command not found", "restart_count=", "will restart worker group", "Found existing installation",
	"Successfully installed ", "Initializing distributed: GLOBAL_RANK", "Detected mixed local Net", "invoked oom-killer",
	"NoDevFiles", "Assertion `", "Unable to open device", " test session starts ", " passed in ", " passed, ",
}

func newEngine(sigs []Signature) *engine {
	e := &engine{sigs: sigs}
	at := map[string]int{}
	var lits []string
	for i, s := range sigs {
		for _, l := range s.Literals {
			k, ok := at[l]
			if !ok {
				k = len(lits)
				at[l] = k
				lits = append(lits, l)
				e.owners = append(e.owners, nil)
			}
			e.owners[k] = append(e.owners[k], i)
		}
	}
	e.find = newFinder(lits)
	var wake []string
	for k, l := range lits {
		if len(l) < winLen {
			continue
		}
		cheap := true
		for _, s := range e.owners[k] {
			if r := sigs[s].Role; r != "context" && r != "noise" {
				cheap = false
			}
		}
		wake = append(wake, l)
		e.cheap = append(e.cheap, cheap)
	}
	for _, a := range anchors {
		wake = append(wake, a)
		e.cheap = append(e.cheap, false)
	}
	e.wake = newFinder(wake)
	return e
}

// reader reads one file after the other into one fact.Logs.
type reader struct {
	tests *mark // where a run of pytest began
	*engine
	opt  Options
	out  *fact.Logs
	mask func(string) string

	file     int
	fileRank int
	fileTask int  // -1: not told
	nodeTold bool // fileNode is more than a guess from the name
	fileNode string
	labeled  bool
	mailed   bool // its lines are quoted as in a mail
	barred   bool // its lines begin with a bar
	barQuote bool // in a traceback that is shown behind bars
	batch    bool // the file is the job's batch script
	nodes    map[string]bool

	now     stamp // last stamp of this file
	nowRank map[int]stamp
	last    stamp // last dated stamp, for times without a date

	traces         map[traceKey]*trace
	spawn, spawnAt int
	chainAt        int
	lastExc        int
	lastExcLine    int
	excSeen        map[excKey]int
	workSeen       map[workKey]bool
	table          fact.Exit
	tableOpen      bool
	tableFirst     bool
	evSeen         map[evKey]int
	evCount        map[int]int
	dropped        int
	quotedBlock    bool
	seam           string // two lines of an error that was wrapped, joined
	seamLine       int    // the second of them
	seamHits       []int  // literals in them
	prev           string // message of the previous line, for text that was wrapped
	prevPlace      fact.Place
	prevHits       []int
	pidRank        map[string]int
	prog           map[int]int // progress lines by rank of this file
	progAll        int
	went           map[int]int // by rank: lines that goesOn counts
	wentAll        int
	streams        map[streamKey]int
	shapes         map[uint64]int
	hits           []int
	list           *listing.Parser
	own            map[int][]int // by rank: its facts about work of its own
	lineBase       int
	said           int  // the last line that is not blank
	unended        bool // the last line has no line end
	lastHitLine    int
	inReport       reportState
	reportLines    int // lines of the report so far
	reports, plain int // reports in this file, and lines that are of none
	para, headline int // lines since the last empty one, and which of them may be a verdict
	prevLineNo     int
	failing        bool           // something was met in this file: new shapes of lines are not progress
	shown          int            // index+1 of the script that a command shows
	shownSrc       map[int][]byte // its source, by index
	scripts        int            // bytes of scripts so far
	buf            []byte
	in             *bufio.Reader // shared by the files
	stamped        bool
	text           string // the cleaned line with its prefixes
}

type evKey struct {
	sig, rank, task, file int
	node                  string
	args                  string
}

type streamKey struct{ file, rank int }

func newReader(e *engine, o Options, out *fact.Logs) *reader {
	r := &reader{engine: e, opt: o, out: out, mask: o.Mask, nodes: map[string]bool{}, evSeen: map[evKey]int{}, evCount: map[int]int{},
		excSeen: map[excKey]int{}, workSeen: map[workKey]bool{}, pidRank: map[string]int{}, streams: map[streamKey]int{}, shownSrc: map[int][]byte{}, fileRank: -1}
	if r.mask == nil {
		r.mask = func(s string) string { return s }
	}
	return r
}

// begin starts a file.
func (r *reader) begin(in Input) {
	path := in.Path
	r.out.Files = append(r.out.Files, fact.LogFile{Path: path, Kind: fact.KindLog})
	r.file = len(r.out.Files) - 1
	r.fileRank, r.fileNode = fromName(path)
	if r.nodeTold = in.Node != ""; r.nodeTold {
		r.fileNode = in.Node
	}
	r.fileTask = -1
	if in.Task != nil {
		r.fileTask = *in.Task
	}
	r.out.Files[r.file].Rank, r.out.Files[r.file].Node = r.fileRank, r.fileNode
	r.labeled, r.batch = false, in.Batch
	r.said, r.unended = 0, false
	r.now, r.last = stamp{}, stamp{}
	r.nowRank = map[int]stamp{}
	r.traces = map[traceKey]*trace{}
	r.spawnAt, r.chainAt, r.lastExcLine, r.lastExc = 0, 0, 0, -1
	r.tableOpen, r.quotedBlock, r.barQuote = false, false, false
	r.prev, r.prevHits = "", nil
	r.prog, r.progAll = map[int]int{}, 0
	r.went, r.wentAll = map[int]int{}, 0
	r.shapes = map[uint64]int{}
	r.own = map[int][]int{}
	r.inReport, r.reports, r.plain, r.para, r.headline = noReport, 0, 0, 0, 0
	r.failing, r.stamped, r.shown = false, false, 0
	r.list = listing.NewParser(path)
}

// labels decides from a sample whether lines carry srun --label prefixes.
func labels(sample string) bool {
	n, lab, num := 0, 0, map[string]bool{}
	for _, l := range strings.Split(sample, "\n") {
		l = strings.TrimSpace(l)
		if l == "" {
			continue
		}
		n++
		if i := strings.IndexByte(l, ':'); i > 0 && i < 6 && isDigits(l[:i]) && (len(l) == i+1 || l[i+1] == ' ') {
			lab++
			num[l[:i]] = true
		}
	}
	return lab >= 2 && lab*3 >= n || lab >= 8 && len(num) >= 2 && lab*6 >= n
}

var (
	successRe = lazyre.New(`(?i)(?:\bexit(?:ed)?(?:[ _]?(?:code|status))?[ =:]*(?:with )?(?:code )?0\b|` +
		`\b(?:training|run|job|experiment|fit|finetuning|evaluation|benchmark)s?(?: is| has| was)? (?:successfully )?(?:finished|complete[d]?|done|ended)\b|` +
		"`?Trainer\\.fit`? stopped: `max_|" + `finished (?:ok|successfully|training)|successfully (?:finished|completed)|exits successfully|WorkerState\.SUCCEEDED|` +
		`\ball (?:workers|ranks|processes|epochs|steps) (?:terminated normally|finished|done|completed)|exiting program at iteration|after training is done|` +
		`^done\b|\bfinished after \d+|(?:^|[\s,;(])0 failed\b|\bsaved final\b|^completed\b|\bfinal evaluation\b|training took|total training time)`)
	// what a launcher or the shell says about the end, not the program about itself
	strongRe  = lazyre.New(`(?i)(?:\bexit(?:ed)?(?:[ _]?(?:code|status))?[ =:]*(?:with )?(?:code )?0\b|successfully finished|exits successfully|WorkerState\.SUCCEEDED|terminated normally)`)
	badExitRe = lazyre.New(`(?i)\bexit(?:ed)?(?: with)?(?: code| status)?[ =:]+[1-9]\d*\b`)
	restartRe = lazyre.New(`(?i)will restart worker group|restart_count=[1-9]|SLURM_RESTART_COUNT=[1-9]|has been requeued|\brestarting (?:job|training|workers)|\b(?:resum(?:ed|ing)|restor(?:ed|ing)) (?:training |(?:all )?(?:\w+ )?states? )?from|\[submit\] retry|attempt [2-9]\b`)
	handledRe = lazyre.New(`(?i)\b(?:caught|ignor(?:ed|ing)|skip(?:ped|ping)?|retry(?:ing)?|fall(?:ing|s)? ?back|fallback|recover(?:ed|ing)|halving|halve|using .{1,40} instead|not available|optional|continuing|non-fatal|will retry|reduc(?:ed|ing) (?:the )?batch)\b`)
)

// rankLabel is at the beginning of what torch prints for a rank.
var rankLabel = lazyre.New(`^\[rank\d+\]: `)

// line takes one line apart, which may hold several in a wrapping. no counts from 1.
func (r *reader) line(no int, raw []byte) {
	if r.mailed {
		raw = mailQuoteBytes(raw)
	}
	l := bytes.TrimSpace(raw)
	if len(l) == 0 {
		r.take(no, raw)
		return
	}
	r.said = no
	done := false
	switch l[0] {
	case '{':
		done = r.record(no, l)
	case '"':
		done = r.faultMember(no, l)
	case '[', '#': // data, of which a traceback is a part
	default:
		done = r.escapedTrace(no, l)
	}
	if !done {
		r.take(no, raw)
	}
}

// take takes one line apart that stands for itself.
func (r *reader) take(no int, raw []byte) {
	text := clean(raw)
	h, msg := r.parseHead(text)
	pl := r.place(h, no)
	if text == "" {
		r.prev, r.para, r.headline = "", 0, 0
		return
	}
	if r.report(text) {
		r.prev = ""
		return
	}
	if r.bars(text) {
		defer func(was bool) { r.quotedBlock = was }(r.quotedBlock)
		r.quotedBlock = true
	}
	r.plainLine(text)
	if r.session(text, msg, pl) {
		return
	}
	if !r.stamped && pl.TK != 0 {
		r.stamped = true
		r.say("first-time", "", fact.Clip(text, 80), "", pl)
	}
	if r.shown > 0 && (h.nccl || rankLabel.MatchString(text)) {
		r.shown, r.quotedBlock = 0, false // what the script printed follows without a prompt
	}
	if r.shown > 0 {
		r.keepShown(no, raw)
	}
	if r.suite(msg, pl) {
		return
	}
	r.list.Feed(text, msg, pl, h.nccl, &r.out.Listing, r.mask)
	exc := r.readTrace(h, msg, pl)
	if text[0] != '"' { // a member of a JSON object, which quotes
		r.readExit(msg, pl)
	}
	if text[0] != '"' && strings.Contains(msg, "Work") || strings.Contains(msg, "last enqueued") {
		r.readWork(msg, pl)
	}
	r.match(h, msg, text, pl, exc)
	if h.nccl && strings.Contains(msg, " rank ") {
		r.ncclRank(h, msg)
	}
	r.progress(h, msg, pl)
	r.goesOn(h, msg, pl, exc)
	if len(msg) < 400 {
		r.ends(msg, pl)
		r.ownWork(msg, pl)
	}
	if r.lastExcLine > 0 && no-r.lastExcLine > 0 && no-r.lastExcLine <= 2 || exc >= 0 {
		r.handled(msg, no, exc)
	}
	r.prev, r.prevPlace, r.prevLineNo = msg, pl, no
}

// bars reports whether a line belongs to a traceback that a program shows behind
// bars, "| Traceback …", as text that it works on: of a model, of a test.
func (r *reader) bars(text string) bool {
	if r.barred || !strings.HasPrefix(text, "| ") {
		r.barQuote = false
		return false
	}
	r.barQuote = r.barQuote || strings.HasPrefix(text, "| Traceback (most recent call last)")
	return r.barQuote
}

// endWords are in every line that successRe, badExitRe or restartRe can match.
var endWords = []string{"exit", "finish", "complete", "done", "stopped: ", "succe", "terminated", "after training", "0 failed", "saved final", "final eval", "training t", "ended", "restart", "requeue", "resum", "restor", "retry", "attempt"}

// ends notes what a line says about the end of the run or about another attempt.
func (r *reader) ends(msg string, pl fact.Place) {
	low := strings.ToLower(msg)
	some := false
	for _, w := range endWords {
		if strings.Contains(low, w) {
			some = true
			break
		}
	}
	if !some {
		return
	}
	if len(msg) < 300 && !r.quotedBlock && !strings.Contains(msg, "ExitCode=") && successRe.MatchString(msg) {
		name := ""
		if strongRe.MatchString(msg) {
			name = "strong"
		}
		r.say("success", name, fact.Clip(msg, 160), "", pl)
	}
	if len(msg) < 200 && !r.quotedBlock && !strings.HasPrefix(msg, "srun: ") && badExitRe.MatchString(msg) {
		r.say("bad-exit", "", fact.Clip(msg, 160), "", pl)
	}
	if restartRe.MatchString(msg) {
		r.say("restart", "", fact.Clip(msg, 160), "", pl)
	}
}

// handled notes that the program went on after an exception: it says so in the
// line before the traceback or behind it.
func (r *reader) handled(msg string, no, exc int) {
	if exc >= 0 {
		return
	}
	if r.lastExc < 0 || r.lastExc >= len(r.out.Exceptions) {
		return
	}
	x := &r.out.Exceptions[r.lastExc]
	if x.File == r.file && x.Handled == "" && len(msg) < 240 && handledRe.MatchString(msg) && !strings.HasPrefix(msg, "The above exception") && !strings.Contains(r.text, ".cpp:") && !strings.Contains(msg, "Failed to") {
		x.Handled = fact.Clip(msg, 160)
	}
}

func (r *reader) say(kind, name, v, aux string, pl fact.Place) {
	if len(r.out.Listing.Facts) >= listing.MaxFacts {
		return
	}
	r.out.Listing.Facts = append(r.out.Listing.Facts, fact.Said{Place: pl, Kind: kind, Name: name, V: r.mask(v), Aux: aux})
}

func (r *reader) place(h head, no int) fact.Place {
	pl := fact.Place{File: r.file, Line: no, Rank: h.rank, Local: h.local, Task: h.task, Node: h.node, PID: h.pid}
	if pl.Rank < 0 {
		pl.Rank = r.fileRank
	}
	if pl.Task < 0 {
		pl.Task = r.fileTask
	}
	if pl.Node == "" {
		pl.Node = r.fileNode
	}
	if h.nccl && pl.Local < 0 {
		pl.Local = h.dev
	}
	switch {
	case h.st.kind != 0:
		st := h.st
		if st.kind == fact.TimeDayless && r.last.kind != 0 {
			const day = 24 * 3600 * 1000
			st.ms += r.last.ms / day * day
			if st.ms < r.last.ms-day/2 {
				st.ms += day
			}
			st.kind = r.last.kind
		}
		if st.kind == fact.TimeFull || st.kind == fact.TimeYearless {
			r.last = st
		}
		r.now = st
		if h.rank >= 0 {
			r.nowRank[h.rank] = st
		}
		pl.Time, pl.TK = st.ms, st.kind
	case r.now.kind != 0:
		st := r.now
		if s, ok := r.nowRank[pl.Rank]; ok && pl.Rank >= 0 {
			st = s
		}
		pl.Time, pl.TK = st.ms, st.kind
	}
	return pl
}

// match finds signatures on a line, and on the seam to the line before when
// that looks wrapped.
func (r *reader) match(h head, msg, text string, pl fact.Place, exc int) {
	r.text = text
	r.hits = r.find.fits(msg, r.hits)
	own := append([]int(nil), r.hits...)
	for _, lit := range own {
		r.hit(lit, msg, pl, exc)
	}
	if joined := r.seamOf(msg, pl); joined != "" {
		hits := r.find.fits(joined, nil)
		for _, lit := range hits {
			if !contains(own, lit) && !contains(r.prevHits, lit) && !contains(r.seamHits, lit) {
				r.hit(lit, joined, r.prevPlace, r.lastExc)
			}
		}
		r.seamHits = hits
	} else {
		r.seamHits = nil
	}
	if strings.Contains(msg, "  ") {
		// programs differ in blanks between words
		one := strings.Join(strings.Fields(msg), " ")
		for _, lit := range r.find.fits(one, nil) {
			if !contains(own, lit) {
				r.hit(lit, one, pl, exc)
			}
		}
	}
	r.prevHits = own
}

// seamOf joins a line to the one before, or to the two before, when that looks
// like an error that was wrapped; "" when it does not.
func (r *reader) seamOf(msg string, pl fact.Place) string {
	before, line := r.seam, r.seamLine
	r.seam = ""
	if len(r.prev) < 40 || r.prevLineNo != pl.Line-1 || r.prevPlace.Rank != pl.Rank || msg == "" || len(msg) >= 200 {
		return ""
	}
	for _, w := range [...]string{"Error", "NCCL WARN", "xception", "Warning"} {
		if strings.Contains(r.prev, w) {
			r.seam, r.seamLine = r.prev+" "+strings.TrimSpace(msg), pl.Line
			return r.seam
		}
	}
	if before != "" && line == pl.Line-1 {
		return before + " " + strings.TrimSpace(msg)
	}
	return ""
}

func contains(s []int, v int) bool {
	i := sort.SearchInts(s, v)
	return i < len(s) && s[i] == v
}

// perSig bounds the events that are kept of one signature; more are counted.
const perSig = 2048

func (r *reader) hit(lit int, msg string, pl fact.Place, exc int) {
	l := r.find.lits[lit]
	pos := strings.Index(msg, l)
	for _, si := range r.owners[lit] {
		s := &r.sigs[si]
		var args map[string]string
		if len(s.Regex) > 0 {
			ok := false
			for _, re := range s.Regex {
				m := re.FindStringSubmatch(msg)
				if m == nil && r.text != msg {
					m = re.FindStringSubmatch(r.text) // some look at what stands before the message
				}
				if m != nil {
					ok = true
					for i, n := range re.SubexpNames() {
						if n != "" && m[i] != "" {
							if args == nil {
								args = map[string]string{}
							}
							args[n] = fact.Clip(r.mask(m[i]), 300)
						}
					}
					break
				}
			}
			if !ok && s.Strict {
				continue
			}
		}
		if pl.Rank < 0 && exc >= 0 && exc < len(r.out.Exceptions) && r.out.Exceptions[exc].Line == pl.Line {
			pl.Rank, pl.Local = r.out.Exceptions[exc].Rank, r.out.Exceptions[exc].Local
		}
		if s.Role != "noise" && s.Role != "context" {
			r.failing = true
		}
		e := fact.Event{Sig: s.Sig, Rule: s.Rule, Role: s.Role, Args: args, Place: pl, Quoted: r.quotedBlock || quoted(msg, pos), Count: 1}
		key := evKey{sig: si, rank: pl.Rank, task: pl.Task, file: r.file, node: pl.Node, args: argKey(args)}
		if e.Quoted {
			key.args += "\x00q"
		}
		if i, ok := r.evSeen[key]; ok {
			x := &r.out.Events[i]
			x.Count++
			if pl.TK != 0 && x.TK == pl.TK && pl.Time < x.Time {
				n := x.Count
				*x = e
				x.Count, x.After, x.Text = n, r.progressMark(pl.Rank), r.excerpt(msg, pos, len(l))
			}
			continue
		}
		if r.evCount[si] >= perSig {
			r.dropped++
			continue
		}
		r.evCount[si]++
		e.Text = r.excerpt(msg, pos, len(l))
		e.After = r.progressMark(pl.Rank)
		if exc >= 0 && exc < len(r.out.Exceptions) {
			e.Exc = r.out.Exceptions[exc].Type
			r.out.Exceptions[exc].Sigs = append(r.out.Exceptions[exc].Sigs, len(r.out.Events))
		}
		r.evSeen[key] = len(r.out.Events)
		r.out.Events = append(r.out.Events, e)
	}
}

// excerpt is what is quoted of a line: its beginning, or what stands around the
// literal where that comes later.
func (r *reader) excerpt(msg string, pos, n int) string {
	const max, lead = 400, 80
	msg = r.mask(msg)
	if pos+n <= max || pos > len(msg) {
		return fact.Clip(msg, max)
	}
	from := pos - lead
	for from < len(msg) && !utf8.RuneStart(msg[from]) {
		from++
	}
	return "…" + fact.Clip(msg[from:], max)
}

func argKey(a map[string]string) string {
	if len(a) == 0 {
		return ""
	}
	ks := make([]string, 0, len(a))
	for k := range a {
		ks = append(ks, k)
	}
	sort.Strings(ks)
	var b strings.Builder
	for _, k := range ks {
		if k == "rank" || k == "time" || k == "pid" {
			continue
		}
		b.WriteString(k + "=" + fact.Clip(a[k], 60) + ";")
	}
	return b.String()
}

// modelText are the labels of what a language model was asked and answered.
var modelText = map[string]bool{"prompt": true, "completion": true, "question": true, "answer": true, "user": true, "assistant": true, "human": true}

// quoted reports whether what stands at pos is quoted text of a program, a
// help text or a report and not a message of this run.
func quoted(msg string, pos int) bool {
	t := strings.TrimLeft(msg, " ")
	if strings.HasPrefix(t, "# Out of bounds values") {
		return false // nccl-tests puts a hash before its summary
	}
	if i := strings.Index(t, ": "); i > 0 && i < 12 && modelText[strings.ToLower(t[:i])] {
		return true
	}
	for _, p := range [...]string{"raise ", "print(", "logger.", "logging.", "log.", "assert ", "# ", "#:", "//", "return ", "except ", "elif ", "if ", "warnings.warn(", "self.", "> "} {
		if strings.HasPrefix(t, p) {
			return true
		}
	}
	if i := strings.IndexByte(strings.TrimPrefix(t, "'"), '\''); t != "" && t[0] == '\'' && i > 0 && i < 40 && !strings.Contains(t[1:i+1], " ") && strings.HasPrefix(t[i+2:], " is ") {
		return false // 'mamba' is running as a subprocess …
	}
	if t != "" && (t[0] == '"' || t[0] == '\'' || t[0] == '`' || t[0] == '{' && strings.Contains(t, "\": ")) {
		return true
	}
	if pos < 0 || pos > len(msg) {
		return false
	}
	before := msg[:pos]
	if strings.Count(before, "\"")%2 == 1 || strings.Count(before, "`")%2 == 1 {
		return true
	}
	// 'key': 'text of an error…
	if i := strings.LastIndexByte(before, '\''); i > 1 && strings.Contains(before[:i], "':") && before[i-1] == ' ' {
		return true
	}
	return false
}

// progressMark returns the number of progress lines so far; the difference to
// the final number is what follows. See finish.
func (r *reader) progressMark(rank int) int {
	if rank >= 0 {
		if n, ok := r.prog[rank]; ok {
			return n
		}
	}
	return r.progAll
}

func (r *reader) progress(h head, msg string, pl fact.Place) {
	if !isProgress(msg) {
		k := shape(msg)
		digit := strings.ContainsAny(msg, "0123456789")
		if len(r.shapes) < 4096 && !r.failing {
			r.shapes[k]++
		}
		if !digit || r.shapes[k] < 5 || len(msg) > 200 || r.lastHitLine == pl.Line || h.nccl || strings.HasPrefix(msg, "frame #") || strings.HasPrefix(msg, "  ") && strings.Contains(msg, "File \"") {
			return
		}
		if strings.Contains(msg, "rror") || strings.Contains(msg, "NCCL") || strings.Contains(msg, "arning") || strings.Contains(msg, "exit") || strings.Contains(msg, "Assertion") || h.level == 'E' || h.level == 'W' || strings.Contains(msg, "srun:") {
			return
		}
	}
	rank := lineRank(pl)
	r.prog[rank]++
	r.progAll++
	k := streamKey{r.file, rank}
	i, ok := r.streams[k]
	if !ok {
		if len(r.out.Streams) >= 1<<14 {
			return
		}
		i = len(r.out.Streams)
		r.streams[k] = i
		r.out.Streams = append(r.out.Streams, fact.Stream{File: r.file, Rank: rank, First: pl})
	}
	s := &r.out.Streams[i]
	s.Lines++
	s.Last = pl
	s.Text = fact.Clip(msg, 160)
	if done, total, ok := batches(msg); ok {
		s.Done, s.Total = done, total
	}
}

// batches reads "311/312" out of a progress line: the last such pair before the
// words, which counts batches where an epoch is counted too.
func batches(msg string) (done, total int, ok bool) {
	for i := 0; i < len(msg) && i < 160; i++ {
		a, n, good := num(msg[i:], 1, 9)
		if !good {
			continue
		}
		start := i
		if i += n; i >= len(msg) || msg[i] != '/' || start > 0 && (msg[start-1] == '/' || msg[start-1] == '.' || msg[start-1] == '-') {
			continue
		}
		b, n, good := num(msg[i+1:], 1, 9)
		if end := i + 1 + n; good && b > 1 && a <= b && (end == len(msg) || msg[end] != '/' && msg[end] != '.' && msg[end] != '-') {
			done, total, ok = a, b, true
		}
		i += n
	}
	return done, total, ok
}

var ncclRankRe = lazyre.New(`\brank (\d+) nranks (\d+)`)

// ncclRank learns which process is which rank.
func (r *reader) ncclRank(h head, msg string) {
	if m := ncclRankRe.FindStringSubmatch(msg); m != nil && len(r.pidRank) < 1<<17 {
		k := fmt.Sprintf("%s:%d", h.node, h.pid)
		if _, ok := r.pidRank[k]; !ok {
			r.pidRank[k] = atoi(m[1])
		}
	}
}

// end closes a file: marks become the number of progress lines that follow.
func (r *reader) end() {
	r.markReport()
	fix := func(file, rank int, mark *int) {
		if file != r.file {
			return
		}
		if rank >= 0 {
			if n, ok := r.prog[rank]; ok && *mark <= n {
				*mark = n - *mark
				return
			}
		}
		*mark = max(0, r.progAll-*mark)
	}
	defer r.endRest()
	for i := len(r.out.Events) - 1; i >= 0 && r.out.Events[i].File == r.file; i-- {
		fix(r.out.Events[i].File, r.out.Events[i].Rank, &r.out.Events[i].After)
	}
	for i := len(r.out.Exceptions) - 1; i >= 0 && r.out.Exceptions[i].File == r.file; i-- {
		fix(r.out.Exceptions[i].File, r.out.Exceptions[i].Rank, &r.out.Exceptions[i].After)
	}
}
