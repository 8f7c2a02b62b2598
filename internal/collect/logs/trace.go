package logs

import (
	"strings"

	"github.com/ncclinic/ncclinic/internal/fact"
	"github.com/ncclinic/ncclinic/internal/fact/kind"
	"github.com/ncclinic/ncclinic/internal/lazyre"
)

var (
	excLine   = lazyre.New(`^((?:[A-Za-z_]\w*\.)*[A-Za-z_]\w*(?:Error|Exception|Interrupt|SystemExit|Timeout|Failure)\w*)(?::\s?(.*))?$`)
	excAny    = lazyre.New(`^((?:[A-Za-z_]\w*\.)*(?:[A-Z]\w*[a-z]\w*|gaierror|timeout|herror))(?:: (.*))?$`)
	pyFrame   = lazyre.New(`^\s*File "([^"]+)", line (\d+)(?:, in (.*))?$`)
	richFrame = lazyre.New(`^\s*(?:❱\s*)?(/\S+\.py|[A-Za-z]:\\\S+\.py):(\d+) in (.+)$`)
	// what "python -m torch.distributed.run" says without a traceback
	noModuleM = lazyre.New(`^(/\S*/(python[\d.]*)): (?:Error while finding module specification for '[\w.]+' \((?:ModuleNotFound|Import)Error: )?(No module named '?[\w.]+'?)\)?$`)
	spawnProc = lazyre.New(`^-- Process (\d+) terminated with the following error`)
)

// trace is a traceback that is being read. Several ranks that write to one
// file without prefixes share one.
type trace struct {
	start, last int
	open        int // how many "Traceback" lines wait for their exception
	frames      []fact.Frame
	code        bool // the next indented line is the code of the last frame
	chained     bool
	spawn       int // process that mp.spawn names, -1: none
	quoted      bool
	ignored     string // the line that says that Python went on: "Exception ignored in: …"
}

func (r *reader) traceKey(h head) traceKey {
	k := traceKey{task: h.task, rank: h.rank, node: h.node, tag: h.tag}
	if h.nccl {
		k.node = ""
	}
	return k
}

type traceKey struct {
	task, rank int
	node, tag  string
}

// readTrace feeds one line to the traceback parser. It returns the index of an
// exception that the line ends, or -1.
func (r *reader) readTrace(h head, msg string, pl fact.Place) int {
	k := r.traceKey(h)
	t := r.traces[k]
	if t == nil || t.open == 0 {
		t = r.unlabelled(k, msg, pl, t)
	}
	if strings.Contains(msg, "Traceback (most recent call last)") {
		if t == nil || pl.Line-t.last > 400 {
			t = &trace{start: pl.Line, spawn: -1}
			if len(r.traces) > 4096 {
				clear(r.traces)
			}
			r.traces[k] = t
		}
		if r.spawnAt > 0 && pl.Line-r.spawnAt < 4 {
			t.spawn = r.spawn
		}
		if t.open == 0 {
			t.start, t.frames = pl.Line, nil
			t.chained = pl.Line-r.chainAt < 6 && r.chainAt > 0
		}
		t.open++
		t.last = pl.Line
		t.quoted = r.quotedBlock
		t.ignored = ""
		if strings.HasPrefix(r.prev, "Exception ignored ") && pl.Line-r.prevLineNo <= 1 {
			t.ignored = r.prev
		}
		return -1
	}
	if m := spawnProc.FindStringSubmatch(msg); m != nil {
		r.spawn, r.spawnAt = atoi(m[1]), pl.Line
		return -1
	}
	if strings.HasPrefix(msg, "During handling of the above exception") || strings.HasPrefix(msg, "The above exception was the direct cause") {
		r.chainAt = pl.Line
		return -1
	}
	if (t == nil || t.open == 0) && strings.HasPrefix(msg, "  File \"") && pyFrame.MatchString(msg) {
		// the head was cut off, by grep or by whoever pasted this
		t = &trace{start: pl.Line, last: pl.Line, spawn: -1, open: 1, quoted: r.quotedBlock}
		if len(r.traces) > 4096 {
			clear(r.traces)
		}
		r.traces[k] = t
	}
	if t == nil || t.open == 0 || pl.Line-t.last > 200 {
		return r.bareException(h, msg, pl, t)
	}
	if strings.Contains(msg, "File \"") {
		if m := pyFrame.FindStringSubmatch(msg); m != nil {
			t.add(fact.Frame{File: m[1], Line: atoi(m[2]), Func: m[3]})
			t.last, t.code = pl.Line, true
			return -1
		}
	}
	if m := richFrame.FindStringSubmatch(msg); m != nil {
		t.add(fact.Frame{File: m[1], Line: atoi(m[2]), Func: strings.TrimSpace(m[3])})
		t.last = pl.Line
		return -1
	}
	if strings.HasPrefix(msg, "  ") || strings.HasPrefix(msg, "❱") || msg == "" || msg[0] == '^' || msg[0] == '~' {
		if t.code && len(t.frames) > 0 && strings.Trim(msg, " ^~") != "" {
			t.frames[len(t.frames)-1].Code = fact.Clip(r.mask(strings.TrimSpace(msg)), 200)
			t.code = false
		}
		if strings.HasPrefix(msg, "  ") || msg == "" {
			t.last = max(t.last, pl.Line-1)
		}
		return -1
	}
	m := excLine.FindStringSubmatch(msg)
	if m == nil && len(t.frames) > 0 && pl.Line-t.last <= 4 {
		if a := excAny.FindStringSubmatch(msg); a != nil && (a[2] == "" && !strings.Contains(msg, " ") || a[2] != "") && a[1] != "srun" && a[1] != "slurmstepd" && a[1] != "bash" && !ncclLast(a) {
			m = a
		}
	}
	if m == nil {
		return -1
	}
	t.open--
	return r.addException(h, t, m[1], m[2], pl)
}

// unlabelled finds the traceback without labels that a line goes on whose text
// happens to name a rank: "ValueError: bad batch on rank 1".
func (r *reader) unlabelled(k traceKey, msg string, pl fact.Place, t *trace) *trace {
	if k.rank < 0 {
		return t
	}
	k.rank = -1
	if o := r.traces[k]; o != nil && o.open > 0 && len(o.frames) > 0 && pl.Line-o.last <= 4 && (strings.HasPrefix(msg, "    ") || excLine.MatchString(msg)) {
		return o
	}
	return t
}

// ncclLast reports NCCL's own words, which stand after "Last error:" in the
// message of torch's exception: "Error: network IB not found."
func ncclLast(m []string) bool { return m[1] == "Error" && strings.HasPrefix(m[2], "network ") }

// bareException handles an exception line without a traceback before it: the
// wrapped or interleaved end of one, or a one-line report.
func (r *reader) bareException(h head, msg string, pl fact.Place, t *trace) int {
	if strings.HasPrefix(msg, "/") && strings.Contains(msg, "No module named ") {
		if m := noModuleM.FindStringSubmatch(msg); m != nil {
			r.say(kind.Which, m[2], m[1], "", pl)
			return r.addException(h, &trace{spawn: -1}, "ModuleNotFoundError", m[3], pl)
		}
		return -1
	}
	if len(msg) < 6 || !(msg[0] >= 'A' && msg[0] <= 'Z' || msg[0] >= 'a' && msg[0] <= 'z') || !strings.Contains(msg, "Error") && !strings.Contains(msg, "Exception") {
		return -1
	}
	m := excLine.FindStringSubmatch(msg)
	if m == nil || strings.HasSuffix(m[1], "Warning") {
		return -1
	}
	if m[2] == "" && !strings.Contains(m[1], ".") {
		return -1
	}
	if t != nil && pl.Line-t.last < 60 {
		return r.addException(h, &trace{start: t.start, frames: t.frames, chained: t.chained, spawn: t.spawn, quoted: t.quoted}, m[1], m[2], pl)
	}
	return r.addException(h, &trace{spawn: -1}, m[1], m[2], pl)
}

func (t *trace) add(f fact.Frame) {
	f.Code = ""
	if len(t.frames) >= fact.MaxFrames {
		copy(t.frames, t.frames[1:])
		t.frames = t.frames[:fact.MaxFrames-1]
	}
	t.frames = append(t.frames, f)
}

const maxExceptions = 4000

func (r *reader) addException(h head, t *trace, typ, msg string, pl fact.Place) int {
	t.last = pl.Line
	if t.spawn >= 0 && pl.Rank < 0 {
		pl.Rank = t.spawn
		pl.Local = t.spawn
	}
	typ = undouble(typ)
	e := fact.Exception{Place: pl, Start: t.start, Type: typ, Message: fact.Clip(r.mask(strings.TrimLeft(msg, ": ")), 2000),
		Frames: append([]fact.Frame(nil), t.frames...), Chained: t.chained, Quoted: t.quoted || r.quotedBlock, Count: 1, Handled: fact.Clip(r.mask(t.ignored), 160)}
	key := excKey{typ, e.Message, pl.Rank, pl.Task, pl.Node, r.file}
	if len(e.Message) > 200 {
		key.msg = e.Message[:200]
	}
	if i, ok := r.excSeen[key]; ok {
		x := &r.out.Exceptions[i]
		x.Count++
		if x.Count > 8 || pl.Line-x.Line < 400 {
			return i
		}
	}
	if len(r.out.Exceptions) >= maxExceptions {
		// The newest takes the last place: how a job ended must stay known.
		r.dropped++
		i := maxExceptions - 1
		e.After, e.Rest = r.progressMark(pl.Rank), r.wentMark(pl)
		r.out.Exceptions[i] = e
		r.lastExc, r.lastExcLine = i, pl.Line
		return i
	}
	r.excSeen[key] = len(r.out.Exceptions)
	e.After, e.Rest = r.progressMark(pl.Rank), r.wentMark(pl)
	r.out.Exceptions = append(r.out.Exceptions, e)
	r.lastExc, r.lastExcLine = len(r.out.Exceptions)-1, pl.Line
	return r.lastExc
}

type excKey struct {
	typ, msg   string
	rank, task int
	node       string
	file       int
}

// undouble turns RuntimeErrorRuntimeError, which two ranks write together, into RuntimeError.
func undouble(s string) string {
	if n := len(s); n%2 == 0 && n > 0 && s[:n/2] == s[n/2:] {
		return s[:n/2]
	}
	return s
}
