package logs

import (
	"strconv"
	"strings"

	"github.com/ncclinic/ncclinic/internal/fact"
	"github.com/ncclinic/ncclinic/internal/lazyre"
)

// head is what stands before the message of a line.
type head struct {
	rank, local, task int // -1: not told
	dev               int // NCCL's [dev]
	node              string
	pid               int
	st                stamp
	level             byte // I W E F or 0
	src               string
	nccl              bool
	tag               string // other bracketed tags, which keep interleaved writers apart
}

func noHead() head { return head{rank: -1, local: -1, task: -1, dev: -1} }

var (
	ncclHead   = lazyre.New(`^([A-Za-z0-9][\w.-]*):(\d+):(\d+) \[(-?\d+)\] `)
	rankInText = lazyre.New(`\[(?:PG [^\]]*?)?[Rr]ank (\d+)\]|^[Rr]ank[ :=]+(\d+)\b|^\((?:[Rr]ank )(\d+)\)|\bon rank:? (\d+)\b|\[(?:[Rr]ank)[ =:]?(\d+)[^\]]{0,24}\]|GLOBAL_RANK: (\d+)|\[GPU(\d+)\]`)
	nodeWord   = lazyre.New(`^[A-Za-z][A-Za-z0-9-]*(?:\.[A-Za-z0-9-]+)*$`)
	notNode    = lazyre.New(`(?i)^(epoch|c10d|step|iter|iteration|gpu|cuda|rank|loss|fold|layer|worker_?rank|python|pip|line|task|job|tasks|test|train|val|eval|stage|phase|batch|gen|seed|run|exp|trial|attempt|model|node_rank|error|warning|info|debug|note|hint|usage|srun|sbatch|salloc|slurmstepd|slurmd|slurmctld|bash|sh|torchrun|conda|lr|acc|top|mAP|v|sm|cu|py|utf|sha|x|http|https|file|pdsh@.*|frame|thread|process|proc|part|shard|block|level|mem|cpu|device|default)_?-?\d*$`)
	rayHead    = lazyre.New(`^(?:[\w.:-]+ ?)*\bpid=(\d+)(?:, ip=([\w.:-]+))?(?:, actor_id=\w+)?$`)
	defaultTag = lazyre.New(`^\[(?:default|trainers?|worker|[a-z]+_?)(\d+)\]:`)
)

// isNode reports whether a word can be a host name in front of a line: it has
// a digit or a hyphen and is no word that programs print there.
func isNode(w string, known map[string]bool) bool {
	if w == "" || len(w) > 64 {
		return false
	}
	if known[w] {
		return true
	}
	if !nodeWord.MatchString(w) || notNode.MatchString(w) {
		return false
	}
	if strings.ContainsAny(w, "0123456789") {
		return true
	}
	return strings.Contains(w, "-") && strings.ToLower(w) == w
}

// parseHead strips what stands before the message, again and again, and
// returns the message.
func (r *reader) parseHead(s string) (head, string) {
	h := noHead()
	for range 10 {
		n := r.strip(&h, s)
		if n == 0 {
			break
		}
		s = s[n:]
	}
	if h.rank < 0 && len(s) > 5 && (strings.Contains(s, "ank") || strings.Contains(s, "RANK: ") || strings.HasPrefix(s, "[GPU")) {
		if m := rankInText.FindStringSubmatch(fact.Clip(s, 200)); m != nil {
			for _, g := range m[1:] {
				if g != "" {
					h.rank = atoi(g)
					break
				}
			}
		}
	}
	return h, s
}

// strip returns the length of one prefix at the start of s, 0 for none.
func (r *reader) strip(h *head, s string) int {
	if s == "" {
		return 0
	}
	lead := 0
	for lead < len(s) && s[lead] == ' ' && lead < 3 {
		lead++
	}
	t := s[lead:]
	if t == "" {
		return 0
	}
	c := t[0]
	if lead > 0 {
		// only srun's padded labels and Megatron's leading blank stand behind blanks
		if c >= '0' && c <= '9' && r.labeled && h.task < 0 {
			if v, n, ok := num(t, 1, 5); ok && len(t) > n && t[n] == ':' {
				h.task = v
				return lead + n + 1 + blank(t[n+1:])
			}
		}
		if c == '[' {
			if n := r.stripBracket(h, t); n > 0 && h.st.kind != 0 {
				return lead + n
			}
		}
		return 0
	}
	switch {
	case c >= '0' && c <= '9':
		if v, n, ok := num(t, 1, 5); ok && len(t) > n && t[n] == ':' && h.task < 0 && (len(t) == n+1 || t[n+1] == ' ') && (r.labeled || labelLike(t[n+1:])) {
			h.task = v
			return n + 1 + blank(t[n+1:])
		}
		if st, n := readStamp(t); n > 0 && h.st.kind == 0 {
			h.st = st
			return n + seps(t[n:])
		}
	case c == '[' || c == '(':
		return r.stripBracket(h, t)
	case c == 'E' || c == 'W' || c == 'I' || c == 'F':
		if st, n := glogStamp(t); n > 0 {
			h.st, h.level = st, c
			n += skipGlog(h, t[n:])
			return n
		}
		return r.stripWord(h, t)
	case c >= 'A' && c <= 'Z':
		if st, n := readStamp(t); n > 0 && h.st.kind == 0 {
			h.st = st
			n += seps(t[n:])
			return n
		}
		return r.stripWord(h, t)
	case c >= 'a' && c <= 'z':
		return r.stripWord(h, t)
	case c == '-' || c == '|':
		if len(t) > 1 && t[1] == ' ' && h.st.kind != 0 {
			return 2
		}
	}
	return 0
}

func blank(s string) int {
	if strings.HasPrefix(s, " ") {
		return 1
	}
	return 0
}

// seps skips what separates a stamp from the rest.
func seps(s string) int {
	n := 0
	for n < len(s) && (s[n] == ' ' || s[n] == ':' || s[n] == ',' || s[n] == ']' || s[n] == '-' || s[n] == '|') {
		n++
	}
	return n
}

// labelLike reports whether what follows "N:" looks like a program's output and
// not like an enumeration.
func labelLike(s string) bool {
	s = strings.TrimPrefix(s, " ")
	return s == "" || strings.HasPrefix(s, "Traceback (most") || strings.HasPrefix(s, "  File \"") || strings.HasPrefix(s, "[rank") ||
		strings.HasPrefix(s, "slurmstepd: ") || ncclHead.MatchString(s) || strings.HasPrefix(s, "NCCL version ") ||
		excLine.MatchString(s)
}

// skipGlog skips "pid file.py:123] " behind a glog stamp.
func skipGlog(h *head, s string) int {
	n := 0
	for n < len(s) && s[n] == ' ' {
		n++
	}
	if v, k, ok := num(s[n:], 1, 16); ok && n+k < len(s) && s[n+k] == ' ' {
		h.pid = v
		n += k + 1
	}
	if i := strings.IndexByte(s[n:], ']'); i >= 0 && i < 120 && !strings.Contains(s[n:n+i], " ") {
		h.src = s[n : n+i]
		n += i + 1
	}
	for n < len(s) && s[n] == ' ' {
		n++
	}
	return n
}

// stripBracket handles prefixes that begin with [ or (.
func (r *reader) stripBracket(h *head, t string) int {
	end := byte(']')
	if t[0] == '(' {
		end = ')'
	}
	i := strings.IndexByte(t, end)
	if i < 0 || i > 160 {
		return 0
	}
	in, n := t[1:i], i+1
	rest := t[n:]
	colon := strings.HasPrefix(rest, ":")
	skip := func() int {
		m := n
		if colon {
			m++
		}
		return m + blank(t[m:])
	}
	low := strings.ToLower(in)
	switch {
	case strings.HasPrefix(low, "rank"):
		f := strings.FieldsFunc(low[4:], func(c rune) bool { return c == ' ' || c == ':' || c == '=' || c == '_' || c == ',' || c == '/' })
		if len(f) >= 1 && isDigits(f[0]) {
			h.rank = atoi(f[0])
			if _, rest, ok := strings.Cut(in, " "); ok {
				if st, k := readStamp(rest); k == len(rest) && h.st.kind == 0 { // [rank0 16:01:11]
					h.st = st
					return skip()
				}
			}
			if len(f) > 1 && len(low) < 40 {
				h.tag += "/" + in
			}
			return skip()
		}
	case end == ']' && isPair(in):
		// mpirun --tag-output: [job,rank]<stream>:
		_, b, _ := strings.Cut(in, ",")
		for _, s := range []string{"<stdout>:", "<stderr>:", "<stddiag>:"} {
			if strings.HasPrefix(rest, s) {
				h.rank = atoi(b)
				m := n + len(s)
				return m + blank(t[m:])
			}
		}
	case colon && defaultTag.MatchString(t):
		m := defaultTag.FindStringSubmatch(t)
		h.local = atoi(m[1])
		return skip()
	case len(in) > 8 && (in[0] == 'E' || in[0] == 'W' || in[0] == 'I' || in[0] == 'F') && end == ']':
		if st, k := glogStamp(in); k > 0 {
			h.st, h.level = st, in[0]
			h.src = strings.TrimSpace(in[k:])
			return skip()
		}
		if len(in) > 2 && in[1] == ' ' && strings.Contains(in, ".cpp:") || strings.Contains(in, ".hpp:") {
			h.level, h.src = in[0], in[2:]
			return skip()
		}
	}
	if end == ')' && h.pid == 0 {
		// Ray: (RayTrainWorker pid=3106, ip=10.8.1.2)
		if m := rayHead.FindStringSubmatch(in); m != nil {
			h.pid = atoi(m[1])
			if h.node == "" {
				h.node = m[2]
			}
			return skip()
		}
	}
	if st, k := readStamp(in); k > 0 && k >= len(in)-8 {
		if h.st.kind == 0 || h.st.kind == fact.TimeDayless {
			h.st = st
		}
		return skip()
	}
	if isFloat(in) && end == ']' {
		v, _ := strconv.ParseFloat(strings.TrimSpace(in), 64)
		if h.st.kind == 0 {
			if v > 1e9 && v < 4e9 {
				h.st = stamp{int64(v * 1000), fact.TimeFull}
			} else {
				h.st = stamp{int64(v * 1000), fact.TimeRelative}
			}
			return skip()
		}
	}
	if end == ']' && !strings.Contains(in, " ") && len(in) < 64 {
		switch strings.ToUpper(in) {
		case "INFO", "WARNING", "WARN", "ERROR", "DEBUG", "CRITICAL", "STDOUT", "STDERR":
			if len(in) > 0 && strings.ToUpper(in) != "STDOUT" && strings.ToUpper(in) != "STDERR" {
				h.level = strings.ToUpper(in)[0]
			}
			return skip()
		}
		if strings.Contains(in, ".py:") {
			h.src = in
			return skip()
		}
		if h.node == "" && isNode(in, r.nodes) && (len(rest) > 0 && rest[0] == ' ' || colon) && end == ']' && strings.ContainsAny(in, "0123456789-") {
			h.node = in
			return skip()
		}
		if isTag(in) && len(rest) > 0 && rest[0] == ' ' {
			h.tag += "/" + in
			return skip()
		}
	}
	return 0
}

// stripWord handles "host: ", "rank 3: ", "name.node0 [stderr] ", NCCL heads and levels.
func (r *reader) stripWord(h *head, t string) int {
	if m := ncclHead.FindStringSubmatchIndex(t); m != nil {
		h.node, h.pid, h.dev, h.nccl = t[m[2]:m[3]], atoi(t[m[4]:m[5]]), atoi(t[m[8]:m[9]]), true
		r.nodes[h.node] = true
		return m[1]
	}
	i := 0
	for i < len(t) && i < 64 && t[i] != ' ' && t[i] != ':' {
		i++
	}
	if i >= len(t) || i == 0 || i == 64 {
		return 0
	}
	w := t[:i]
	if n := nodeAndRank(h, w, t[i:]); n > 0 {
		r.nodes[h.node] = true
		return i + n
	}
	if t[i] == ' ' {
		if w == "submitit" && h.st.kind == 0 {
			// submitit INFO (2022-10-05 21:38:04,771) - text
			if j := strings.IndexByte(t, '('); j > 0 && j < 24 {
				if st, k := readStamp(t[j+1:]); k > 0 {
					h.st = st
					m := j + 1 + k
					return m + seps(strings.TrimPrefix(t[m:], ")")) + 1
				}
			}
		}
		if (w == "rank" || w == "Rank") && len(t) > i+1 {
			if v, k, ok := num(t[i+1:], 1, 6); ok && i+1+k < len(t) && t[i+1+k] == ':' && h.rank < 0 {
				h.rank = v
				m := i + 2 + k
				return m + blank(t[m:])
			}
		}
		if strings.HasPrefix(t[i+1:], "[stderr] ") || strings.HasPrefix(t[i+1:], "[stdout] ") {
			h.node = w
			return i + 1 + 9
		}
		// "nb101 rank 0: " and "host rank 3 "
		if isNode(w, r.nodes) && r.nodes[w] && h.node == "" && strings.HasPrefix(t[i+1:], "rank ") {
			h.node = w
			return i + 1
		}
		return 0
	}
	// word and colon
	if strings.HasPrefix(strings.ToLower(w), "rank") && isDigits(w[4:]) && h.rank < 0 && i+1 < len(t) && t[i+1] == ' ' {
		h.rank = atoi(w[4:])
		return i + 2
	}
	switch w {
	case "INFO", "WARNING", "ERROR", "DEBUG", "CRITICAL":
		h.level = w[0]
		// INFO:logger.name:message
		if j := strings.IndexByte(t[i+1:], ':'); j > 0 && j < 90 && !strings.Contains(t[i+1:i+1+j], " ") {
			h.src = t[i+1 : i+1+j]
			m := i + 1 + j + 1
			return m + blank(t[m:])
		}
		return i + 1 + blank(t[i+1:])
	}
	if h.node == "" && i+1 < len(t) && t[i+1] == ' ' && isNode(w, r.nodes) && !strings.Contains(w, "Error") {
		h.node = w
		return i + 2
	}
	if h.node == "" && strings.HasPrefix(t[i+1:], "[rank") && isNode(w, r.nodes) {
		h.node = w
		return i + 1
	}
	if strings.HasPrefix(t, "torch.") && h.st.kind != 0 {
		// "torch.distributed.run: [WARNING] " behind a stamp
		if j := strings.Index(t, ": ["); j > 0 && j < 90 && !strings.Contains(t[:j], " ") {
			h.src = t[:j]
			return j + 2
		}
	}
	return 0
}

// nodeAndRank handles "c12/9 | " and "c12/9: ", which wrappers put in front of
// each process's lines. The number counts like srun's labels: whether it is a
// rank, those decide who know what was started.
func nodeAndRank(h *head, w, rest string) int {
	node, num, ok := strings.Cut(w, "/")
	if !ok || h.node != "" || h.task >= 0 || !isDigits(num) || len(num) > 6 || !nodeWord.MatchString(node) || notNode.MatchString(node) || !strings.ContainsAny(node, "0123456789-") {
		return 0
	}
	for _, sep := range [...]string{" | ", " |", ": ", " > "} {
		if strings.HasPrefix(rest, sep) {
			h.node, h.task = node, atoi(num)
			return len(sep)
		}
	}
	return 0
}

func isPair(s string) bool {
	a, b, ok := strings.Cut(s, ",")
	return ok && isDigits(a) && isDigits(b)
}

func isTag(s string) bool {
	for i := 0; i < len(s); i++ {
		c := s[i]
		if !(c >= 'a' && c <= 'z' || c == '_' || c == '-') {
			return false
		}
	}
	return s != ""
}

func isDigits(s string) bool {
	if s == "" || len(s) > 9 {
		return false
	}
	for i := 0; i < len(s); i++ {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return true
}

func isFloat(s string) bool {
	s = strings.TrimSpace(s)
	dot := 0
	for i := 0; i < len(s); i++ {
		if s[i] == '.' {
			dot++
		} else if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return dot == 1 && len(s) > 3
}

func atoi(s string) int { v, _ := strconv.Atoi(s); return v }

func atoi64(s string) int64 { v, _ := strconv.ParseInt(s, 10, 64); return v }

var (
	fileRank = lazyre.New(`(?i)(?:^|[._\-/])rank[._\-]?(\d+)(?:[._\-/]|$)`)
	fileNode = lazyre.New(`(?i)(?:^|/)([a-z]+[a-z0-9-]*\d[a-z0-9-]*)\.(?:log|out|err|txt|stderr|stdout)(?:\.(?:gz|xz|zst))?$`)
)

// fromName reads rank and node out of a file's name: rank6.err, slurm-1187.rank9.err, gpu07.log.
func fromName(path string) (rank int, node string) {
	rank = -1
	base := path[strings.LastIndexByte(path, '/')+1:]
	if m := fileRank.FindStringSubmatch(base); m != nil && len(m[1]) < 7 {
		rank = atoi(m[1])
		return rank, ""
	}
	if m := fileNode.FindStringSubmatch(base); m != nil {
		w := m[1]
		if !notNode.MatchString(w) && !strings.HasPrefix(w, "slurm-") {
			node = w
		}
	}
	return rank, node
}
