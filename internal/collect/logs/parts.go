package logs

import (
	"strings"

	"github.com/ncclinic/ncclinic/internal/fact"
	"github.com/ncclinic/ncclinic/internal/lazyre"
)

var (
	workRe    = lazyre.New(`WorkNCCL\((?:SeqNum=(\d+), )?OpType=(\w+)(?:, NumelIn=(\d+), NumelOut=(\d+))?(?:, TensorShape=\[([\d, ]*)\])?[^)]*?Timeout\(ms\)=(\d+)\) ran for (\d+)`)
	queueRe   = lazyre.New(`last enqueued(?: NCCL)? work: (-?\d+), last completed(?: NCCL)? work: (-?\d+)`)
	pgRe      = lazyre.New(`\[PG (?:ID )?(\S+)(?: PG GUID (\S+))?(?: \(?(\w+)\)?)? ?Rank (\d+)\]`)
	torchFail = lazyre.New(`failed \(exitcode: (-?\d+)\) local_rank: (\d+) \(pid: (\d+)\) of binary: (.+)`)
	tableRow  = lazyre.New(`^\s+(time|host|rank|exitcode|error_file|traceback)\s*: (.*)$`)
	tableRank = lazyre.New(`^(\d+) \(local_rank: (\d+)\)`)
	tableCode = lazyre.New(`^(-?\d+) \(pid: (\d+)\)`)
	srunTask  = lazyre.New(`^srun: error: (\S+): tasks? ([\d,\-]+): (.*)$`)
	shellKill = lazyre.New(`line \d+:\s+(\d+) (Killed|Segmentation fault|Aborted|Bus error|Terminated)`)
	zshCrash  = lazyre.New(`^(?:zsh: |\[\d+\] +(?:[+-] +)?)(\d*) ?segmentation fault`)
	mpiExit   = lazyre.New(`noticed that process rank (\d+) with PID (\d+) on node (\S+) exited on signal (\d+)`)
	hydraExit = lazyre.New(`KILLED BY SIGNAL: (\d+)`)
	dsExit    = lazyre.New(`exits with return code = (-?\d+)`)
	exitCode  = lazyre.New(`(?i)\b(?:exit(?:ed)?(?: with)?(?: code| status)?|rc|returned(?: non-zero exit status)?)[ =:]+(-?\d+)\b`)
)

// readWork collects what a watchdog says about a collective.
func (r *reader) readWork(msg string, pl fact.Place) {
	if strings.Contains(msg, "WorkNCCL(") {
		if m := workRe.FindStringSubmatch(msg); m != nil {
			w := fact.Work{Place: pl, Seq: -1, NumelIn: -1, NumelOut: -1, Enqueued: -1, Completed: -1,
				Op: m[2], TimeoutMS: atoi64(m[6]), RanMS: atoi64(m[7])}
			if m[1] != "" {
				w.Seq = atoi64(m[1])
			}
			if m[3] != "" {
				w.NumelIn, w.NumelOut = atoi64(m[3]), atoi64(m[4])
			} else if m[5] != "" { // torch 1.9 to 1.13
				n := elements(m[5])
				w.NumelIn, w.NumelOut = n, n
			}
			w.PG = pgOf(msg)
			r.addWork(w)
		}
	}
	if strings.Contains(msg, "last enqueued") {
		if m := queueRe.FindStringSubmatch(msg); m != nil {
			for i := len(r.out.Works) - 1; i >= 0; i-- {
				w := &r.out.Works[i]
				if w.Rank == pl.Rank && w.File == r.file {
					if w.Enqueued < 0 {
						w.Enqueued, w.Completed = atoi64(m[1]), atoi64(m[2])
					}
					break
				}
			}
		}
	}
}

// elements is the product of a shape such as "256, 32", -1 when it is not one.
func elements(shape string) int64 {
	n := int64(1)
	for _, d := range strings.Split(shape, ",") {
		d = strings.TrimSpace(d)
		v := atoi64(d)
		if !isDigits(d) || v > 0 && n > (1<<62)/v {
			return -1
		}
		n *= v
	}
	return n
}

func pgOf(msg string) string {
	if m := pgRe.FindStringSubmatch(msg); m != nil {
		if m[2] != "" {
			return m[2]
		}
		return m[1]
	}
	return ""
}

const maxWorks = 1 << 14

func (r *reader) addWork(w fact.Work) {
	k := workKey{w.Rank, w.Seq, w.Op, w.File}
	if r.workSeen[k] || len(r.out.Works) >= maxWorks {
		return
	}
	r.workSeen[k] = true
	r.out.Works = append(r.out.Works, w)
}

type workKey struct {
	rank int
	seq  int64
	op   string
	file int
}

const maxExits = 1 << 14

// readExit collects what launchers say about processes that ended.
func (r *reader) readExit(msg string, pl fact.Place) {
	add := func(e fact.Exit) {
		if len(r.out.Exits) < maxExits {
			r.out.Exits = append(r.out.Exits, e)
		}
	}
	switch {
	case strings.Contains(msg, "failed (exitcode: "):
		if m := torchFail.FindStringSubmatch(msg); m != nil {
			e := fact.Exit{Place: pl, By: "torchrun", Code: atoi(m[1]), Binary: r.mask(strings.TrimSpace(m[4]))}
			e.Local, e.PID = atoi(m[2]), atoi(m[3])
			e.Rank = -1
			add(e)
		}
	case strings.HasPrefix(msg, "srun: error: "):
		if m := srunTask.FindStringSubmatch(msg); m != nil {
			e := fact.Exit{Place: pl, By: "srun", Words: fact.Clip(m[3], 80), Tasks: m[2]}
			e.Node, e.Rank, e.Task = m[1], -1, -1
			r.nodes[m[1]] = true
			if c := exitCode.FindStringSubmatch(m[3]); c != nil {
				e.Code = atoi(c[1])
			}
			switch {
			case strings.HasPrefix(m[3], "Killed"):
				e.Code = -9
			case strings.HasPrefix(m[3], "Segmentation fault"):
				e.Code = -11
			case strings.HasPrefix(m[3], "Aborted"):
				e.Code = -6
			case strings.HasPrefix(m[3], "Terminated"):
				e.Code = -15
			case strings.HasPrefix(m[3], "Bus error"):
				e.Code = -7
			}
			add(e)
		}
	case strings.Contains(msg, "noticed that process rank "):
		if m := mpiExit.FindStringSubmatch(msg); m != nil {
			e := fact.Exit{Place: pl, By: "mpirun", Code: -atoi(m[4]), Words: fact.Clip(msg, 120)}
			e.Rank, e.PID, e.Node = atoi(m[1]), atoi(m[2]), m[3]
			r.nodes[m[3]] = true
			add(e)
		}
	case strings.Contains(msg, "KILLED BY SIGNAL: "): // Intel MPI and MPICH
		if m := hydraExit.FindStringSubmatch(msg); m != nil {
			add(fact.Exit{Place: pl, By: "mpirun", Code: -atoi(m[1]), Words: strings.Trim(msg, " =")})
		}
	case strings.Contains(msg, "exits with return code"):
		if m := dsExit.FindStringSubmatch(msg); m != nil && m[1] != "0" {
			add(fact.Exit{Place: pl, By: "deepspeed", Code: atoi(m[1])})
		}
	case strings.Contains(msg, "segmentation fault") && zshCrash.MatchString(msg):
		e := fact.Exit{Place: pl, By: "shell", Words: "segmentation fault", Code: -11}
		e.PID = atoi(zshCrash.FindStringSubmatch(msg)[1])
		add(e)
	case strings.Contains(msg, " Killed") || strings.Contains(msg, "Segmentation fault") || strings.Contains(msg, "Bus error"):
		if m := shellKill.FindStringSubmatch(msg); m != nil {
			e := fact.Exit{Place: pl, By: "shell", Words: m[2], Code: map[string]int{"Killed": -9, "Segmentation fault": -11, "Aborted": -6, "Bus error": -7, "Terminated": -15}[m[2]]}
			e.PID = atoi(m[1])
			add(e)
		}
	case strings.Contains(msg, "Root Cause (first observed failure)"):
		r.tableFirst = true
	case strings.HasPrefix(strings.TrimSpace(msg), "Failures:"):
		r.tableFirst = false
	case strings.HasPrefix(msg, "  "):
		if m := tableRow.FindStringSubmatch(msg); m != nil {
			r.readTable(m[1], m[2], pl)
		}
	}
}

// readTable reads one row of torchrun's failure table.
func (r *reader) readTable(key, val string, pl fact.Place) {
	t := &r.table
	switch key {
	case "time":
		*t = fact.Exit{Place: pl, By: "table", First: r.tableFirst}
		t.Rank, t.Local = -1, -1
		if st, n := readStamp(val); n > 0 {
			t.Time, t.TK = st.ms, st.kind
		}
		r.tableOpen = true
	case "host":
		t.Node = strings.TrimSpace(val)
		r.nodes[t.Node] = true
	case "rank":
		if m := tableRank.FindStringSubmatch(val); m != nil {
			t.Rank, t.Local = atoi(m[1]), atoi(m[2])
		}
	case "exitcode":
		if m := tableCode.FindStringSubmatch(val); m != nil {
			t.Code, t.PID = atoi(m[1]), atoi(m[2])
		}
	case "traceback":
		if r.tableOpen && len(r.out.Exits) < maxExits {
			r.out.Exits = append(r.out.Exits, *t)
			r.tableOpen = false
		}
	}
}

// isProgress reports whether a line looks like the periodic output of a training loop.
func isProgress(s string) bool {
	digit := false
	for i := 0; i < len(s) && i < 400; i++ {
		if s[i] >= '0' && s[i] <= '9' {
			digit = true
			break
		}
	}
	if !digit || len(s) < 6 {
		return false
	}
	if len(s) > 400 {
		s = s[:400]
	}
	l := strings.ToLower(s)
	if strings.Contains(l, "error:") || strings.Contains(l, "traceback") || strings.Contains(l, "nccl ") || strings.Contains(l, "exception") || strings.HasPrefix(l, "  file \"") {
		return false
	}
	for _, w := range [...]string{"it/s", "s/it", "examples/s", "%|", "loss", "tok/s", "samples/s", "busbw", "out of bounds values : 0 ok"} {
		if strings.Contains(l, w) {
			return true
		}
	}
	for _, w := range [...]string{"epoch", "iter", "step", "batch", "update", "round"} {
		if i := strings.Index(l, w); i >= 0 {
			rest := strings.TrimLeft(l[i+len(w):], "ationsex:=[(# |")
			if rest != "" && rest[0] >= '0' && rest[0] <= '9' {
				return true
			}
		}
	}
	return false
}

// shape is a hash of a line without its digits, to tell periodic output.
func shape(s string) uint64 {
	h := uint64(1469598103934665603)
	dig := false
	for i := 0; i < len(s) && i < 40; i++ {
		c := s[i]
		if c >= '0' && c <= '9' || c == '.' && dig {
			if dig {
				continue
			}
			dig, c = true, '#'
		} else {
			dig = false
			if c == ' ' || c == '-' {
				continue
			}
		}
		h = (h ^ uint64(c)) * 1099511628211
	}
	return h
}
