package script

import (
	"bytes"
	"strconv"
	"strings"
	"unicode/utf8"

	"mvdan.cc/sh/v3/syntax"

	"github.com/ncclinic/ncclinic/internal/fact"
)

// hole makes a place in a value that is known only at run time.
func (w *walker) hole(h fact.Hole) string {
	s := w.p.s
	if len(s.Holes) >= fact.MaxHoles {
		return string(rune(fact.HoleBase + fact.MaxHoles - 1))
	}
	h.Text = fact.Clip(h.Text, 200)
	s.Holes = append(s.Holes, h)
	return string(rune(fact.HoleBase + len(s.Holes) - 1))
}

// mk builds a word from a value.
func (w *walker) mk(val string, pos fact.Pos, open bool) fact.Word {
	if len(val) > maxValue {
		val = strings.ToValidUTF8(val[:maxValue], "")
	}
	return fact.Word{Pos: pos, Val: val, Text: w.p.s.Show(val), Known: !fact.HasHole(val), Open: open}
}

// source returns the text of a node of the script itself.
func (w *walker) source(n syntax.Node) string {
	if w.base.Line != 0 {
		return ""
	}
	a, b := int(n.Pos().Offset()), int(n.End().Offset())
	src := w.p.src
	if a < 0 || b > len(src) || a > b || b-a > 4096 {
		return ""
	}
	return src[a:b]
}

// printed writes a node as shell text.
func (w *walker) printed(n syntax.Node) string {
	if src := w.source(n); src != "" && len(src) <= 200 && strings.IndexByte(src, '\n') < 0 {
		return src
	}
	if w.p.printer == nil {
		w.p.printer = syntax.NewPrinter(syntax.SingleLine(true))
	}
	var b bytes.Buffer
	if err := safely(func() error { return w.p.printer.Print(&b, n) }); err != nil {
		return "…"
	}
	return fact.Clip(strings.TrimSpace(b.String()), 200)
}

// fields collects the words that one word of source becomes.
type fields struct {
	out  []string
	cur  strings.Builder
	has  bool
	open bool
	opn  []bool
}

func (f *fields) add(s string) { f.cur.WriteString(s); f.has = true }

func (f *fields) end() {
	if f.has {
		f.out, f.opn = append(f.out, f.cur.String()), append(f.opn, f.open)
	}
	f.cur.Reset()
	f.has, f.open = false, false
}

// word expands one word of source to fields.
func (w *walker) word(wd *syntax.Word) []fact.Word { return w.words(nil, wd) }

// words appends the fields of one word of source to a list.
func (w *walker) words(list []fact.Word, wd *syntax.Word) []fact.Word {
	if wd == nil || len(wd.Parts) == 0 {
		return list
	}
	if len(wd.Parts) == 1 { // most words are plain
		if l, ok := wd.Parts[0].(*syntax.Lit); ok && strings.IndexByte(l.Value, '\\') < 0 {
			return append(list, fact.Word{Pos: w.pos(wd.Pos()), Val: l.Value, Text: w.p.s.Show(l.Value), Known: !fact.HasHole(l.Value), Raw: l.Value})
		}
	}
	var f fields
	for _, pt := range wd.Parts {
		w.part(pt, &f)
	}
	f.end()
	for _, v := range f.out {
		w.p.cost += 1 + len(v)/32
	}
	pos, raw := w.pos(wd.Pos()), w.source(wd)
	for i, v := range f.out {
		field := w.mk(v, pos, f.opn[i])
		field.Raw = raw
		list = append(list, field)
	}
	return list
}

// join expands a word without splitting, as in an assignment.
func (w *walker) join(wd *syntax.Word) string {
	var b strings.Builder
	defer func() { w.p.cost += 1 + b.Len()/32 }()
	for _, pt := range wd.Parts {
		switch x := pt.(type) {
		case *syntax.Lit:
			b.WriteString(unescape(x.Value))
		default:
			b.WriteString(w.single(pt))
		}
	}
	return b.String()
}

// single expands a part without splitting.
func (w *walker) single(pt syntax.WordPart) string {
	switch x := pt.(type) {
	case *syntax.Lit:
		return x.Value
	case *syntax.SglQuoted:
		if x.Dollar {
			return ansiC(x.Value)
		}
		return x.Value
	case *syntax.DblQuoted:
		return w.quotedParts(x.Parts)
	case *syntax.ParamExp:
		return strings.Join(w.param(x, true), " ")
	case *syntax.CmdSubst:
		return w.cmdSubst(x)
	case *syntax.ArithmExp:
		return w.arithExp(x)
	case *syntax.ProcSubst:
		cw := w.clone()
		cw.sub = true
		cw.stmts(x.Stmts)
		return w.hole(fact.Hole{Pos: w.pos(x.Pos()), Kind: "cmd", Text: w.printed(&syntax.Word{Parts: []syntax.WordPart{x}})})
	}
	return w.printed(&syntax.Word{Parts: []syntax.WordPart{pt}})
}

// quotedParts expands the inside of double quotes or a here-document.
func (w *walker) quotedParts(parts []syntax.WordPart) string {
	var b strings.Builder
	for _, pt := range parts {
		if l, ok := pt.(*syntax.Lit); ok {
			b.WriteString(unescapeDbl(l.Value))
		} else {
			b.WriteString(w.single(pt))
		}
		if b.Len() > maxValue*8 {
			break
		}
	}
	return b.String()
}

func (w *walker) part(pt syntax.WordPart, f *fields) {
	switch x := pt.(type) {
	case *syntax.Lit:
		f.add(unescape(x.Value))
	case *syntax.DblQuoted:
		if len(x.Parts) == 1 {
			if pe, ok := x.Parts[0].(*syntax.ParamExp); ok && isList(pe) {
				l := w.param(pe, true)
				for i, v := range l {
					if i > 0 {
						f.end()
					}
					f.add(v)
					if onlyHole(v) {
						f.open = f.open || w.isListHole(v)
					}
				}
				return
			}
		}
		f.add(w.quotedParts(x.Parts))
	case *syntax.ParamExp:
		for i, v := range w.param(x, false) {
			if i > 0 {
				f.end()
			}
			w.split(v, f)
		}
	case *syntax.CmdSubst, *syntax.ArithmExp:
		v := w.single(x)
		if onlyHole(v) {
			_, cmd := x.(*syntax.CmdSubst)
			f.add(v)
			f.open = f.open || cmd && !w.p.s.HolesOf(v)[0].Range
			return
		}
		w.split(v, f)
	default:
		f.add(w.single(pt))
	}
}

// split adds a value that the shell splits at blanks.
func (w *walker) split(v string, f *fields) {
	if v == "" {
		return
	}
	if onlyHole(v) {
		f.add(v)
		hs := w.p.s.HolesOf(v)
		if len(hs) > 0 && (hs[0].Kind == "var" || hs[0].Kind == "list" || hs[0].Kind == "cmd") && !hs[0].Range {
			f.open = true
		}
		return
	}
	if !strings.ContainsAny(v, " \t\n") {
		f.add(v)
		return
	}
	if isBlank(v[0]) {
		f.end()
	}
	fs := strings.Fields(v)
	for i, x := range fs {
		if i > 0 {
			f.end()
		}
		f.add(x)
		if onlyHole(x) {
			if hs := w.p.s.HolesOf(x); len(hs) > 0 && (hs[0].Kind == "var" || hs[0].Kind == "list") && !hs[0].Range {
				f.open = true
			}
		}
	}
	if isBlank(v[len(v)-1]) {
		f.end()
	}
}

func isBlank(c byte) bool { return c == ' ' || c == '\t' || c == '\n' }

// onlyHole reports whether a value is one hole and nothing else.
func onlyHole(v string) bool {
	r, n := utf8.DecodeRuneInString(v)
	return n == len(v) && r >= fact.HoleBase && r <= fact.HoleBase+fact.MaxHoles
}

func (w *walker) isListHole(v string) bool {
	hs := w.p.s.HolesOf(v)
	return len(hs) > 0 && hs[0].Kind == "list"
}

// isList reports whether an expansion is "$@" or "${a[@]}".
func isList(x *syntax.ParamExp) bool {
	if x.Param == nil || x.Length {
		return false
	}
	if x.Param.Value == "@" || x.Param.Value == "*" {
		return true
	}
	wd, ok := x.Index.(*syntax.Word)
	return ok && (wd.Lit() == "@" || wd.Lit() == "*")
}

func unescape(v string) string {
	if strings.IndexByte(v, '\\') < 0 {
		return v
	}
	var b strings.Builder
	for i := 0; i < len(v); i++ {
		if v[i] == '\\' && i+1 < len(v) {
			i++
			if v[i] == '\n' {
				continue
			}
		}
		b.WriteByte(v[i])
	}
	return b.String()
}

func unescapeDbl(v string) string {
	if strings.IndexByte(v, '\\') < 0 {
		return v
	}
	var b strings.Builder
	for i := 0; i < len(v); i++ {
		if v[i] == '\\' && i+1 < len(v) && strings.IndexByte("$`\"\\\n", v[i+1]) >= 0 {
			i++
			if v[i] == '\n' {
				continue
			}
		}
		b.WriteByte(v[i])
	}
	return b.String()
}

func ansiC(v string) string {
	return strings.NewReplacer(`\n`, "\n", `\t`, "\t", `\\`, `\`, `\'`, "'", `\"`, `"`, `\e`, "\x1b").Replace(v)
}

// read records an expansion of a variable.
func (w *walker) read(name string, pos fact.Pos, tested bool) *fact.Read {
	s := w.p.s
	if len(s.Reads) >= 8*maxCommands {
		return &fact.Read{}
	}
	v, ok := w.env.get(name)
	r := fact.Read{Pos: pos, Seq: w.p.n, Name: name, Step: w.step, Tested: tested || w.tested, Cond: w.cond, Dead: w.dead,
		Set: ok && !v.unset, Maybe: w.p.sourced, Arith: w.arith, Func: w.fn, File: w.file, Cmd: w.cmdName}
	s.Reads = append(s.Reads, r)
	return &s.Reads[len(s.Reads)-1]
}

// param expands a parameter. More than one value only for lists.
func (w *walker) param(x *syntax.ParamExp, quoted bool) []string {
	if x.Param == nil {
		return []string{w.hole(fact.Hole{Pos: w.pos(x.Pos()), Kind: "var", Text: w.printed(&syntax.Word{Parts: []syntax.WordPart{x}})})}
	}
	name, pos := x.Param.Value, w.pos(x.Pos())
	text := "$" + name
	if !x.Short {
		text = w.printed(&syntax.Word{Parts: []syntax.WordPart{x}})
	}
	if x.Index != nil {
		if wd, ok := x.Index.(*syntax.Word); ok {
			if l := wd.Lit(); l != "@" && l != "*" {
				w.word(wd)
			}
		} else {
			w.arithm(x.Index)
		}
	}
	var r *fact.Read
	if isName(name) {
		r = w.read(name, pos, false)
	}
	hole := func(h fact.Hole) []string {
		h.Pos, h.Name, h.Step = pos, name, w.step >= 0
		if h.Kind == "" {
			h.Kind = "var"
		}
		if h.Text == "" {
			h.Text = text
		}
		return []string{w.hole(h)}
	}
	if x.Exp != nil {
		switch x.Exp.Op {
		case syntax.DefaultUnset, syntax.DefaultUnsetOrNull, syntax.AssignUnset, syntax.AssignUnsetOrNull, syntax.ErrorUnset, syntax.ErrorUnsetOrNull:
			if r != nil {
				r.Default = true
			}
			def := ""
			if x.Exp.Word != nil {
				def = w.join(x.Exp.Word)
			}
			val, known := w.lookup(name)
			if x.Exp.Op == syntax.AssignUnset || x.Exp.Op == syntax.AssignUnsetOrNull {
				if !known && isName(name) {
					h := hole(fact.Hole{Def: true})
					w.set(name, variable{val: h[0], exported: w.exported(name)}, fact.Assign{Pos: pos, Value: w.mk(h[0], pos, false)})
					return h
				}
			}
			if known {
				if val == "" {
					return []string{def}
				}
				return []string{val}
			}
			if len(name) == 1 && name[0] >= '1' && name[0] <= '9' && w.known {
				switch i := int(name[0] - '0'); {
				case i <= w.openAt && w.args[i-1].Val != "":
					return []string{w.args[i-1].Val}
				case i <= w.openAt || w.openAt == len(w.args):
					return []string{def}
				}
			}
			return hole(fact.Hole{Def: true})
		case syntax.AlternateUnset, syntax.AlternateUnsetOrNull:
			if r != nil {
				r.Tested, r.Default = true, true
			}
			if x.Exp.Word != nil {
				w.join(x.Exp.Word)
			}
			return hole(fact.Hole{Kind: "list", Def: true})
		}
		if x.Exp.Word != nil {
			w.join(x.Exp.Word)
		}
	}
	if x.Slice != nil {
		lo := w.arithm(x.Slice.Offset)
		var ln itv
		if x.Slice.Length != nil {
			ln = w.arithm(x.Slice.Length)
		}
		if isList(x) {
			if (name == "@" || name == "*") && w.known && lo.known() && lo.lo > 0 && x.Slice.Length == nil && int(lo.lo) <= w.openAt+1 {
				var out []string // "${@:2}"
				for _, a := range w.args[lo.lo-1:] {
					out = append(out, a.Val)
				}
				return out
			}
			return hole(fact.Hole{Kind: "list"})
		}
		if v, known := w.lookup(name); known && !fact.HasHole(v) && lo.known() {
			return []string{slice(v, lo, ln, x.Slice.Length != nil)}
		}
		if jobID(name) && lo.known() && lo.lo < 0 && lo.lo > -10 && x.Slice.Length == nil {
			n := int(-lo.lo)
			return hole(fact.Hole{Range: true, Lo: 0, Hi: pow10(n) - 1, Width: n})
		}
		return hole(fact.Hole{})
	}
	if x.Repl != nil {
		if x.Repl.With != nil {
			w.join(x.Repl.With)
		}
		return hole(fact.Hole{})
	}
	if x.Excl || x.Names != 0 {
		return hole(fact.Hole{Kind: "list"})
	}
	if x.Length {
		v, _ := w.env.get(name)
		if v.isArr && isListIndex(x) && !anyHole(v.arr) {
			return []string{strconv.Itoa(len(v.arr))}
		}
		return hole(fact.Hole{Range: true, Lo: 0, Hi: 1 << 20})
	}
	if name == "@" || name == "*" {
		if w.known {
			var out []string
			for _, a := range w.args {
				out = append(out, a.Val)
			}
			return out
		}
		return hole(fact.Hole{Kind: "list"})
	}
	if v, ok := w.env.get(name); ok && v.isArr {
		switch {
		case isListIndex(x):
			if v.arr == nil {
				return nil
			}
			return v.arr
		case x.Index != nil:
			if wd, ok := x.Index.(*syntax.Word); ok && !anyHole(v.arr) {
				if i, err := strconv.Atoi(wd.Lit()); err == nil && i >= 0 && i < len(v.arr) {
					return []string{v.arr[i]}
				}
			}
			if len(v.arr) > 0 {
				if hs := w.p.s.HolesOf(v.arr[0]); len(hs) == 1 && hs[0].Kind == "list" {
					return hole(fact.Hole{Text: text})
				}
			}
			return hole(fact.Hole{})
		}
		if len(v.arr) > 0 && !w.isListHole(v.arr[0]) {
			return []string{v.arr[0]}
		}
		return hole(fact.Hole{})
	}
	if x.Index != nil {
		if isListIndex(x) {
			return hole(fact.Hole{Kind: "list"})
		}
		return hole(fact.Hole{})
	}
	if x.Exp != nil { // ${a%b} and the like
		if v, known := w.lookup(name); known && x.Exp.Word != nil {
			if out, ok := strip(v, x.Exp.Op, x.Exp.Word.Lit()); ok {
				return []string{out}
			}
		}
		return hole(fact.Hole{})
	}
	if len(name) == 1 && name[0] >= '0' && name[0] <= '9' {
		if i := int(name[0] - '0'); w.known && i > 0 && (i <= w.openAt || w.openAt == len(w.args)) {
			if i <= len(w.args) {
				return []string{w.args[i-1].Val}
			}
			return []string{""}
		}
		return hole(fact.Hole{})
	}
	if v, known := w.lookup(name); known {
		return []string{v}
	}
	h := fact.Hole{}
	h.Lo, h.Hi, h.Range = bounds(name)
	return hole(h)
}

func isListIndex(x *syntax.ParamExp) bool {
	wd, ok := x.Index.(*syntax.Word)
	return ok && (wd.Lit() == "@" || wd.Lit() == "*")
}

func anyHole(l []string) bool {
	for _, v := range l {
		if fact.HasHole(v) {
			return true
		}
	}
	return false
}

func isName(n string) bool {
	if n == "" || n[0] >= '0' && n[0] <= '9' {
		return false
	}
	for i := 0; i < len(n); i++ {
		c := n[i]
		if c != '_' && (c < '0' || c > '9' && c < 'A' || c > 'Z' && c < 'a' || c > 'z') {
			return false
		}
	}
	return true
}

func pow10(n int) int64 {
	p := int64(1)
	for range n {
		p *= 10
	}
	return p
}

func slice(v string, lo, ln itv, hasLen bool) string {
	i := int(lo.lo)
	if i < 0 {
		i = max(0, len(v)+i)
	}
	i = min(i, len(v))
	v = v[i:]
	if hasLen && ln.known() && ln.lo >= 0 && int(ln.lo) < len(v) {
		v = v[:ln.lo]
	}
	return v
}

// strip is ${v%pat} and the like for the patterns people use: a literal, with
// one * at an end.
func strip(v string, op syntax.ParExpOperator, pat string) (string, bool) {
	if strings.ContainsAny(pat, "?[\\") || pat == "" {
		return "", false
	}
	lit := strings.Trim(pat, "*")
	if strings.Contains(lit, "*") || lit == "" {
		return "", false
	}
	front, back := strings.HasPrefix(pat, "*"), strings.HasSuffix(pat, "*")
	switch op {
	case syntax.RemSmallSuffix, syntax.RemLargeSuffix:
		if front {
			return "", false
		}
		if !back {
			return strings.TrimSuffix(v, lit), true
		}
		i := strings.LastIndex(v, lit)
		if op == syntax.RemLargeSuffix {
			i = strings.Index(v, lit)
		}
		if i < 0 {
			return v, true
		}
		return v[:i], true
	case syntax.RemSmallPrefix, syntax.RemLargePrefix:
		if back {
			return "", false
		}
		if !front {
			return strings.TrimPrefix(v, lit), true
		}
		i := strings.Index(v, lit)
		if op == syntax.RemLargePrefix {
			i = strings.LastIndex(v, lit)
		}
		if i < 0 {
			return v, true
		}
		return v[i+len(lit):], true
	}
	return "", false
}

// lookup returns the value of a variable that is known: set by the script, or
// by Slurm from the header.
func (w *walker) lookup(name string) (string, bool) {
	if v, ok := w.env.get(name); ok {
		if v.unset {
			return "", true
		}
		return v.val, true
	}
	if v, ok := w.slurmVar(name); ok {
		return v, true
	}
	return "", false
}

// slurmVar is what Slurm sets from what the header says (F15).
func (w *walker) slurmVar(name string) (string, bool) {
	if !strings.HasPrefix(name, "SLURM_") {
		return "", false
	}
	r := &w.p.s.Request
	n := 0
	switch name {
	case "SLURM_NNODES", "SLURM_JOB_NUM_NODES":
		n = r.EffectiveNodes
		if w.step >= 0 && name == "SLURM_NNODES" {
			n = w.p.s.Steps[w.step].EffNodes
		}
	case "SLURM_NTASKS", "SLURM_NPROCS":
		if w.step >= 0 {
			n = w.p.s.Steps[w.step].EffTasks
		} else {
			n = r.Tasks
			if n == 0 && r.TasksPerNode > 0 {
				n = r.TasksPerNode * r.EffectiveNodes
			}
		}
	case "SLURM_NTASKS_PER_NODE":
		n = r.TasksPerNode
	case "SLURM_CPUS_PER_TASK":
		n = r.CPUsPerTask
	case "SLURM_GPUS_ON_NODE":
		n = r.EffectiveGPUs
	case "SLURM_GPUS_PER_NODE":
		n = r.GPUsPerNode
		if r.GPUType != "" {
			n = 0
		}
	case "SLURM_GPUS":
		n = r.GPUs
	}
	if n > 0 {
		return strconv.Itoa(n), true
	}
	return "", false
}

func jobID(name string) bool {
	switch name {
	case "SLURM_JOB_ID", "SLURM_JOBID", "SLURM_ARRAY_JOB_ID":
		return true
	}
	return false
}

// bounds are the numbers that a variable can hold.
func bounds(name string) (lo, hi int64, ok bool) {
	switch {
	case name == "RANDOM":
		return 0, 32767, true
	case jobID(name):
		return 1, 67108863, true // MaxJobId by default 0x03ff0000
	case name == "$":
		return 1, 4194304, true
	case name == "UID" || name == "EUID":
		return 0, 4294967294, true
	case name == "SLURM_PROCID" || name == "SLURM_NODEID" || name == "SLURM_LOCALID":
		return 0, 65535, true
	}
	return 0, 0, false
}

// itv is what is known of a number.
type itv struct {
	lo, hi int64
	ok     bool
}

func (i itv) known() bool { return i.ok && i.lo == i.hi }

const big = int64(1) << 40

func one(n int64) itv { return itv{n, n, true} }

// arithExp is $((…)).
func (w *walker) arithExp(x *syntax.ArithmExp) string {
	r := w.arithm(x.X)
	if r.known() {
		return strconv.FormatInt(r.lo, 10)
	}
	return w.hole(fact.Hole{Pos: w.pos(x.Pos()), Kind: "arith", Text: w.printed(&syntax.Word{Parts: []syntax.WordPart{x}}), Step: w.step >= 0, Lo: r.lo, Hi: r.hi, Range: r.ok, Name: w.p.lastRead()})
}

func (p *parser) lastRead() string {
	if n := len(p.s.Reads); n > 0 {
		return p.s.Reads[n-1].Name
	}
	return ""
}

// arithm evaluates an arithmetic expression to an interval.
func (w *walker) arithm(x syntax.ArithmExpr) itv {
	old := w.arith
	w.arith = true
	defer func() { w.arith = old }()
	w.depth++
	defer func() { w.depth-- }()
	if x == nil || w.depth > 200 {
		return itv{}
	}
	switch t := x.(type) {
	case *syntax.Word:
		if l := t.Lit(); l != "" && isName(l) { // a bare name
			w.read(l, w.pos(t.Pos()), false)
			if v, ok := w.lookup(l); ok {
				return w.numOf(v)
			}
			lo, hi, ok := bounds(l)
			return itv{lo, hi, ok}
		}
		return w.numOf(w.join(t))
	case *syntax.ParenArithm:
		return w.arithm(t.X)
	case *syntax.UnaryArithm:
		v := w.arithm(t.X)
		switch t.Op {
		case syntax.Minus:
			return itv{-v.hi, -v.lo, v.ok}
		case syntax.Plus:
			return v
		case syntax.Inc, syntax.Dec:
			return itv{}
		}
		return itv{0, 1, t.Op == syntax.Not}
	case *syntax.BinaryArithm:
		if t.Op == syntax.Assgn || t.Op == syntax.AddAssgn || t.Op == syntax.SubAssgn || t.Op == syntax.MulAssgn {
			v := w.arithm(t.Y)
			if n, ok := t.X.(*syntax.Word); ok && isName(n.Lit()) {
				val := w.hole(fact.Hole{Pos: w.pos(t.Pos()), Kind: "arith", Name: n.Lit(), Text: "$" + n.Lit(), Lo: v.lo, Hi: v.hi, Range: v.ok && t.Op == syntax.Assgn})
				if v.known() && t.Op == syntax.Assgn {
					val = strconv.FormatInt(v.lo, 10)
				}
				w.set(n.Lit(), variable{val: val}, fact.Assign{Pos: w.pos(t.Pos()), Value: w.mk(val, w.pos(t.Pos()), false)})
			}
			return v
		}
		a, b := w.arithm(t.X), w.arithm(t.Y)
		return combine(t.Op, a, b)
	}
	return itv{}
}

func combine(op syntax.BinAritOperator, a, b itv) itv {
	if !a.ok || !b.ok {
		if op == syntax.Rem && b.known() && b.lo > 0 {
			return itv{0, b.lo - 1, false} // the dividend may be negative or no number at all
		}
		return itv{}
	}
	lim := func(i itv) itv {
		if i.lo < -big || i.hi > big || i.lo > i.hi {
			return itv{}
		}
		return i
	}
	switch op {
	case syntax.Add:
		return lim(itv{a.lo + b.lo, a.hi + b.hi, true})
	case syntax.Sub:
		return lim(itv{a.lo - b.hi, a.hi - b.lo, true})
	case syntax.Mul:
		if a.lo < 0 || b.lo < 0 || a.hi > 1<<20 && b.hi > 1<<20 || b.hi > 1<<30 || a.hi > 1<<30 {
			return itv{}
		}
		return lim(itv{a.lo * b.lo, a.hi * b.hi, true})
	case syntax.Quo:
		if b.known() && b.lo > 0 && a.lo >= 0 {
			return itv{a.lo / b.lo, a.hi / b.lo, true}
		}
	case syntax.Rem:
		if b.known() && b.lo > 0 && a.lo >= 0 {
			if a.hi < b.lo {
				return a
			}
			if a.known() {
				return one(a.lo % b.lo)
			}
			return itv{0, b.lo - 1, true}
		}
	}
	return itv{}
}

// numOf reads a value as a number: digits, or holes with bounds.
func (w *walker) numOf(v string) itv {
	v = strings.TrimSpace(v)
	if !fact.HasHole(v) {
		if n, err := strconv.ParseInt(v, 0, 64); err == nil && n > -big && n < big {
			return one(n)
		}
		if n, err := strconv.ParseInt(v, 10, 64); err == nil && n > -big && n < big {
			return one(n)
		}
		return itv{}
	}
	return w.p.bound(v)
}

// bound is the range of a value that is made of digits and holes of fixed width.
func (p *parser) bound(v string) itv {
	lo, hi, ok := p.s.Bounds(v)
	return itv{lo, hi, ok}
}

// cmdSubst is $(…): its commands run, and a few are understood.
func (w *walker) cmdSubst(x *syntax.CmdSubst) string {
	from := len(w.p.s.Commands)
	cw := w.clone()
	cw.sub, cw.subst = true, true
	cw.pipeTo, cw.piped, cw.back, cw.neg, cw.tested = nil, false, false, w.neg, false
	cw.redir, cw.heredoc = nil, -1
	cw.depth++
	cw.level++
	cw.stmts(x.Stmts)
	text := w.printed(&syntax.Word{Parts: []syntax.WordPart{x}})
	h := fact.Hole{Pos: w.pos(x.Pos()), Kind: "cmd", Text: text, Step: w.step >= 0}
	var cmds []fact.ScriptCmd // its own, not those of a $(…) inside of it
	for i := from; i < len(w.p.s.Commands) && len(cmds) < 4; i++ {
		if w.p.levels[i] == cw.level {
			cmds = append(cmds, w.p.s.Commands[i])
		}
	}
	if len(x.Stmts) == 1 && len(cmds) > 0 && len(cmds) <= 3 {
		if v, ok := w.pure(cmds, &h); ok {
			return v
		}
	}
	return w.hole(h)
}

// pure evaluates commands whose output is known: echo of constants, and the
// ways in which people make port numbers.
func (w *walker) pure(cmds []fact.ScriptCmd, h *fact.Hole) (string, bool) {
	c := &cmds[0]
	arg := func(i int) string {
		if i < len(c.Words) {
			return c.Words[i].Val
		}
		return ""
	}
	last := &cmds[len(cmds)-1]
	switch c.Name {
	case "echo", "printf":
		ws := c.Words[1:]
		if len(ws) > 0 && ws[0].Text == "-n" {
			ws = ws[1:]
		}
		var vs []string
		for _, x := range ws {
			vs = append(vs, x.Val)
		}
		v := strings.Join(vs, " ")
		switch {
		case len(cmds) == 1 && c.Name == "echo" && !strings.ContainsAny(v, "\\"):
			return v, true
		case len(cmds) == 2 && last.Name == "tail" && len(last.Words) == 3 && last.Words[1].Text == "-c":
			if n, err := strconv.Atoi(last.Words[2].Text); err == nil && n > 0 && n < 8 {
				if hs := w.p.s.HolesOf(v); len(hs) == 1 && jobID(hs[0].Name) {
					if c.Words[1].Text != "-n" {
						n-- // the newline counts
					}
					h.Width, h.Range, h.Lo, h.Hi, h.Name = n, true, 0, pow10(n)-1, hs[0].Name
				}
			}
		case len(cmds) == 2 && last.Name == "tail" && len(last.Words) == 2 && strings.HasPrefix(last.Words[1].Text, "-c"):
			if n, err := strconv.Atoi(last.Words[1].Text[2:]); err == nil && n > 0 && n < 8 {
				if hs := w.p.s.HolesOf(v); len(hs) == 1 && jobID(hs[0].Name) {
					if c.Words[1].Text != "-n" {
						n--
					}
					h.Width, h.Range, h.Lo, h.Hi, h.Name = n, true, 0, pow10(n)-1, hs[0].Name
				}
			}
		}
	case "expr":
		if v := w.p.expr(c.Words[1:]); v.ok {
			if v.known() {
				return strconv.FormatInt(v.lo, 10), true
			}
			h.Range, h.Lo, h.Hi = true, v.lo, v.hi
		}
	case "which":
		// $(which singularity): that program, wherever it is.
		if len(cmds) == 1 && len(c.Words) == 2 && c.Words[1].Known && c.Words[1].Text != "" && c.Words[1].Text[0] != '-' {
			return c.Words[1].Text, true
		}
	case "shuf":
		lo, hi := int64(-1), int64(-1)
		for i := 1; i < len(c.Words); i++ {
			t := c.Words[i].Text
			if t == "-i" {
				t += arg(i + 1)
			}
			if a, b, ok := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(t, "--input-range="), "-i"), "-"); ok && (strings.HasPrefix(t, "-i") || strings.HasPrefix(t, "--input")) {
				lo, _ = strconv.ParseInt(a, 10, 64)
				hi, _ = strconv.ParseInt(b, 10, 64)
			}
		}
		if len(cmds) <= 2 && lo >= 0 && hi >= lo {
			h.Range, h.Lo, h.Hi = true, lo, hi
		}
	}
	return "", false
}

// expr evaluates the arguments of expr(1), left to right by precedence of * / % over + -.
func (p *parser) expr(ws []fact.Word) itv {
	if len(ws)%2 == 0 || len(ws) > 9 {
		return itv{}
	}
	val := func(w fact.Word) itv {
		if w.Known {
			n, err := strconv.ParseInt(w.Text, 10, 64)
			if err != nil {
				return itv{}
			}
			return one(n)
		}
		return p.bound(w.Val)
	}
	nums := []itv{val(ws[0])}
	var ops []string
	for i := 1; i+1 < len(ws); i += 2 {
		op, v := strings.Trim(ws[i].Text, `"'\`), val(ws[i+1])
		switch op {
		case "*", "/", "%":
			m := map[string]syntax.BinAritOperator{"*": syntax.Mul, "/": syntax.Quo, "%": syntax.Rem}[op]
			nums[len(nums)-1] = combine(m, nums[len(nums)-1], v)
		case "+", "-":
			ops, nums = append(ops, op), append(nums, v)
		default:
			return itv{}
		}
	}
	r := nums[0]
	for i, op := range ops {
		m := syntax.Add
		if op == "-" {
			m = syntax.Sub
		}
		r = combine(m, r, nums[i+1])
	}
	return r
}
