package script

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"sync"

	"mvdan.cc/sh/v3/syntax"

	"github.com/ncclinic/ncclinic/internal/fact"
	"github.com/ncclinic/ncclinic/internal/lazyre"
)

// Bounds of one script: a hostile file must not take unbounded time or memory.
const (
	maxCommands = 20000
	maxDepth    = 16
	maxValue    = 1 << 16
	maxCost     = 2 << 20 // statements, expansions, and bytes of values and inner scripts by 32
)

// body follows the shell part of the script.
func (p *parser) body() {
	s := p.s
	p.placeholders()
	switch s.Shell {
	case "python":
		p.quoteStrays()
		return
	case "csh", "tcsh", "fish", "perl", "other":
		return
	}
	src := s.Src
	if len(src) > MaxSize {
		return
	}
	if s.CRLF > 0 {
		src = bytes.ReplaceAll(src, []byte("\r\n"), []byte("\n"))
	}
	if s.BOM {
		src = src[3:]
	}
	p.src = string(src)
	// Rough sizes, so that the lists need not grow.
	n := min(len(src)/100+8, 4096)
	s.Commands, s.Assigns, s.Reads = slices.Grow(s.Commands, n), slices.Grow(s.Assigns, n/2), slices.Grow(s.Reads, n)
	w := &walker{p: p, step: -1, outer: -1, heredoc: -1, env: &scope{}, funcs: map[string]*function{}}
	stmts, err := parseShell(p.src, s.Shell)
	if err != nil {
		// a=("NAME"=$X) is right in bash; the parser wants ("NAME="$X).
		if text := quotedName.ReplaceAllString(p.src, `"$1="`); text != p.src {
			if again, err2 := parseShell(text, s.Shell); err2 == nil || err.Pos.Before(err2.Pos) {
				p.src, stmts, err = text, again, err2
			}
		}
	}
	if err != nil && s.Shell != "zsh" {
		// <NAME> left to fill in is no fault of the shell text: the rest is read
		// as if it were filled in.
		if text, found := fillIn(p.src); len(found) > 0 {
			if again, err2 := parseShell(text, s.Shell); err2 == nil || err.Pos.Before(err2.Pos) {
				s.Placeholders = append(s.Placeholders, found...)
				stmts, err = again, err2
			}
		}
		s.Syntax = err
		if err != nil {
			p.angle()
		}
	}
	s.Parsed = true
	for _, st := range stmts {
		p.quoted(st)
		from := len(s.Commands)
		w.stmt(st)
		s.Top = append(s.Top, fact.TopStmt{Pos: w.pos(st.Pos()), Kind: topKind(st), Cmds: [2]int{from, len(s.Commands)}, Back: st.Background})
	}
	w.deadFuncs()
	p.finish()
}

// quotedName is the beginning of an array element such as "NAME"=$X.
var quotedName = lazyre.New(`"([A-Za-z_]\w*)"=`)

func topKind(st *syntax.Stmt) string {
	switch c := st.Cmd.(type) {
	case nil:
		return "redirect"
	case *syntax.CallExpr:
		if len(c.Args) == 0 {
			return "assign"
		}
		return "call"
	case *syntax.IfClause:
		return "if"
	case *syntax.ForClause:
		return "for"
	case *syntax.WhileClause:
		return "while"
	case *syntax.CaseClause:
		return "case"
	case *syntax.FuncDecl:
		return "func"
	case *syntax.BinaryCmd:
		if c.Op == syntax.Pipe || c.Op == syntax.PipeAll {
			return "pipe"
		}
		return "andor"
	case *syntax.TestClause, *syntax.ArithmCmd:
		return "test"
	case *syntax.DeclClause:
		return "assign"
	}
	return "block"
}

// parseShell parses what can be parsed; statements before an error are kept.
func parseShell(src, shell string) ([]*syntax.Stmt, *fact.SyntaxError) {
	pool := &bashParsers
	if shell == "zsh" {
		pool = &zshParsers
	}
	ps := pool.Get().(*syntax.Parser)
	defer func() {
		if ps != nil {
			pool.Put(ps)
		}
	}()
	var out []*syntax.Stmt
	patched := 0
again:
	out = nil
	err := safely(func() error {
		for st, err := range ps.StmtsSeq(strings.NewReader(src)) {
			if err != nil {
				return err
			}
			if out = append(out, st); len(out) >= maxCommands {
				break
			}
		}
		return nil
	})
	if err == nil {
		return out, nil
	}
	if errors.Is(err, errPanic) {
		ps = nil // it may be broken
	}
	var pe syntax.ParseError
	var le syntax.LangError
	switch {
	case errors.As(err, &pe):
		// a=([0]*3): bash takes the word as it is, the parser wants an index.
		if off := int(pe.Pos.Offset()); strings.Contains(pe.Text, "must be followed by `=`") && patched < 20 && off < len(src) {
			if i := strings.LastIndexByte(src[:off+1], '['); i >= 0 {
				src = src[:i] + "x" + src[i+1:]
				patched++
				goto again
			}
		}
		return out, &fact.SyntaxError{Pos: fact.Pos{Line: int(pe.Pos.Line()), Col: int(pe.Pos.Col())}, Text: pe.Text}
	case errors.As(err, &le):
		return out, nil // valid in another shell; not this rule's business
	}
	return out, &fact.SyntaxError{Pos: fact.Pos{Line: 1, Col: 1}, Text: err.Error()}
}

// Parsers are reused: making one costs more than a small script.
var (
	bashParsers = sync.Pool{New: func() any { return syntax.NewParser(syntax.Variant(syntax.LangBash)) }}
	zshParsers  = sync.Pool{New: func() any { return syntax.NewParser(syntax.Variant(syntax.LangZsh)) }}
)

var errPanic = errors.New("the shell parser gave up")

// safely turns a panic of the parser into an error: its input is hostile.
func safely(f func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = errPanic
		}
	}()
	return f()
}

// function is a shell function of the script.
type function struct {
	body   *syntax.Stmt
	called bool
	w      *walker // where it was declared
	busy   bool
}

// variable is what is known of a shell variable.
type variable struct {
	val      string
	arr      []string
	isArr    bool
	exported bool
	unset    bool
}

// walker follows statements in the order in which they run.
type walker struct {
	p              *parser
	env            *scope
	funcs          map[string]*function
	args           []fact.Word // positional parameters, when known
	known          bool        // args are known, up to openAt
	openAt, argsAt int         // the first that may be several words; cond+loop where they were set

	step, outer int
	fn          string
	cond, loop  int
	sub, subst  bool
	back, trap  bool
	neg, orElse bool
	dead        bool
	tested      bool
	arith       bool
	pipeTo      []string
	piped       bool
	heredoc     int
	redir       []fact.Redir
	box         *fact.Box
	file        string
	base        fact.Pos // where an inner script starts; zero: as is
	depth       int
	level       int // of command substitutions
	cmdName     string
	noPos       bool
	inner       bool // a shell of its own: bash -c, a followed file
	guessed     bool // behind a command that is not known
}

func (w *walker) pos(p syntax.Pos) fact.Pos {
	l, c := int(p.Line()), int(p.Col())
	if w.base.Line == 0 {
		return fact.Pos{Line: l, Col: c}
	}
	if w.noPos {
		return w.base
	}
	if l == 1 {
		return fact.Pos{Line: w.base.Line, Col: w.base.Col + c - 1}
	}
	return fact.Pos{Line: w.base.Line + l - 1, Col: c}
}

func (w *walker) seq() int {
	w.p.n++
	return w.p.n
}

// clone is a walker with an environment of its own.
func (w *walker) clone() *walker {
	c := *w
	c.env = &scope{up: w.env}
	return &c
}

func (w *walker) full() bool {
	return len(w.p.s.Commands) >= maxCommands || w.depth > maxDepth || w.p.n > 20*maxCommands
}

func (w *walker) stmts(list []*syntax.Stmt) {
	for _, st := range list {
		w.stmt(st)
	}
}

func (w *walker) stmt(st *syntax.Stmt) {
	if st == nil || w.full() {
		return
	}
	w.p.cost++
	old := *w
	defer func() { // everything but what statements change
		w.back, w.neg, w.redir, w.heredoc, w.orElse = old.back, old.neg, old.redir, old.heredoc, old.orElse
	}()
	if st.Background {
		w.back = true
	}
	if st.Negated {
		w.neg = true
	}
	for _, r := range st.Redirs {
		w.redirect(r)
	}
	switch c := st.Cmd.(type) {
	case *syntax.CallExpr:
		if st.Background {
			cw := w.clone()
			cw.call(c)
			return
		}
		w.call(c)
	case *syntax.DeclClause:
		w.decl(c)
	case *syntax.Block:
		if st.Background {
			w.clone().stmts(c.Stmts)
			return
		}
		w.stmts(c.Stmts)
	case *syntax.Subshell:
		cw := w.clone()
		cw.sub = true
		cw.stmts(c.Stmts)
	case *syntax.IfClause:
		w.ifClause(c)
	case *syntax.WhileClause:
		starts := w.beginnings(c)
		w.invalidate(c, starts)
		w.loop++
		w.test(func() { w.stmts(c.Cond) })
		w.stmts(c.Do)
		w.loop--
		w.invalidate(c, starts)
	case *syntax.ForClause:
		w.forClause(c)
	case *syntax.CaseClause:
		w.word(c.Word)
		outs := []*scope{}
		for _, it := range c.Items {
			for _, pt := range it.Patterns {
				w.word(pt)
			}
			cw := w.clone()
			cw.cond++
			cw.stmts(it.Stmts)
			outs = append(outs, cw.env)
			w.shifted(cw)
		}
		w.merge(append(outs, w.env))
	case *syntax.BinaryCmd:
		w.binary(c)
	case *syntax.FuncDecl:
		if c.Name != nil {
			w.funcs[c.Name.Value] = &function{body: c.Body, w: w}
			if !w.dead {
				w.p.s.Funcs = append(w.p.s.Funcs, c.Name.Value)
			}
		}
	case *syntax.ArithmCmd:
		w.arithm(c.X)
	case *syntax.LetClause:
		for _, x := range c.Exprs {
			w.arithm(x)
		}
	case *syntax.TestClause:
		w.tested = true
		w.testExpr(c.X)
		w.tested = old.tested
	case *syntax.TimeClause:
		w.stmt(c.Stmt)
	case *syntax.CoprocClause:
		cw := w.clone()
		cw.back = true
		cw.stmt(c.Stmt)
	}
}

func (w *walker) test(f func()) {
	old := w.neg
	w.neg = true
	f()
	w.neg = old
}

func (w *walker) redirect(r *syntax.Redirect) {
	switch r.Op {
	case syntax.Hdoc, syntax.DashHdoc:
		h := fact.Heredoc{Pos: w.pos(r.Pos())}
		h.Quoted = quotedDelim(r.Word)
		if r.Hdoc != nil {
			h.Pos, h.End = w.pos(r.Hdoc.Pos()), w.pos(r.Hdoc.End()).Line
			if h.Quoted {
				h.Val = rawWord(r.Hdoc)
			} else {
				h.Val = w.quotedParts(r.Hdoc.Parts)
			}
		}
		if len(h.Val) > maxValue*8 {
			h.Val = h.Val[:maxValue*8]
		}
		w.heredoc = len(w.p.s.Heredocs)
		w.p.s.Heredocs = append(w.p.s.Heredocs, h)
	case syntax.WordHdoc:
		f := w.word(r.Word)
		h := fact.Heredoc{Pos: w.pos(r.Word.Pos())}
		h.End = h.Line
		for _, x := range f {
			h.Val += x.Val
		}
		w.heredoc = len(w.p.s.Heredocs)
		w.p.s.Heredocs = append(w.p.s.Heredocs, h)
	default:
		if r.Word != nil {
			f := w.word(r.Word)
			rd := fact.Redir{Op: r.Op.String()}
			if len(f) > 0 {
				rd.Word = f[0]
			}
			w.redir = append(append([]fact.Redir{}, w.redir...), rd)
		}
	}
}

func quotedDelim(wd *syntax.Word) bool {
	for _, pt := range wd.Parts {
		switch x := pt.(type) {
		case *syntax.SglQuoted, *syntax.DblQuoted:
			return true
		case *syntax.Lit:
			if strings.Contains(x.Value, "\\") {
				return true
			}
		}
	}
	return false
}

func rawWord(wd *syntax.Word) string {
	var b strings.Builder
	for _, pt := range wd.Parts {
		if l, ok := pt.(*syntax.Lit); ok {
			b.WriteString(l.Value)
		}
	}
	return b.String()
}

func (w *walker) ifClause(c *syntax.IfClause) {
	var outs []*scope
	cur := w
	for n := 0; c != nil && n < 1000; n++ {
		if len(c.Cond) > 0 {
			cur.test(func() { cur.stmts(c.Cond) })
		}
		cw := cur.clone()
		cw.cond++
		cw.stmts(c.Then)
		if !leaves(c.Then) {
			outs = append(outs, cw.env)
			w.shifted(cw)
		}
		if c.Else == nil {
			if len(c.Cond) > 0 {
				outs = append(outs, cur.env)
			}
			break
		}
		c = c.Else
	}
	if len(outs) > 0 {
		w.merge(outs)
	}
}

// shifted forgets the positional parameters when one way through a branch drops some.
func (w *walker) shifted(way *walker) {
	if !way.known || len(way.args) != len(w.args) {
		w.known = false
	}
}

// leaves reports whether a branch ends the script.
func leaves(list []*syntax.Stmt) bool {
	if len(list) == 0 {
		return false
	}
	c, ok := list[len(list)-1].Cmd.(*syntax.CallExpr)
	if !ok || len(c.Args) == 0 {
		return false
	}
	switch c.Args[0].Lit() {
	case "exit", "return":
		return true
	}
	return false
}

// merge makes variables that differ between the ways through a branch unknown.
// Each way is a layer over w's variables, or w's own for the way around.
func (w *walker) merge(outs []*scope) {
	names := map[string]bool{}
	for _, o := range outs {
		if o != w.env {
			for k := range o.own {
				names[k] = true
			}
		}
	}
	for k := range names {
		v, ok := outs[0].get(k)
		same, exp, isArr := ok, v.exported, v.isArr
		for _, o := range outs[1:] {
			x, has := o.get(k)
			exp, isArr = exp || x.exported, isArr || x.isArr
			if !has || !ok || x.val != v.val || x.isArr != v.isArr || x.unset != v.unset || !slices.Equal(x.arr, v.arr) {
				same = false
			}
		}
		if base, rest, ok := commonStart(k, outs); !same && !isArr && ok {
			// CMD="$CMD --more" on one way: what stands before is known.
			h := w.hole(fact.Hole{Kind: "var", Name: k, Text: "$" + k, Step: w.step >= 0})
			w.more(h, rest)
			v = variable{val: base + " " + h}
		} else if !same {
			v = variable{val: w.hole(fact.Hole{Kind: "var", Name: k, Text: "$" + k, Step: w.step >= 0}), isArr: isArr}
			if isArr {
				v.arr = []string{w.hole(fact.Hole{Kind: "list", Name: k, Text: "${" + k + "[@]}"})}
			}
		}
		v.exported = exp
		w.env.set(k, v)
	}
}

// commonStart is the value that a variable has on some way through a branch,
// when the other ways only put words behind it: rest, on one of them.
func commonStart(name string, outs []*scope) (base, rest string, ok bool) {
	for i, o := range outs {
		v, ok := o.get(name)
		if !ok || v.unset || v.isArr || v.val == "" {
			return "", "", false
		}
		if i == 0 || len(v.val) < len(base) {
			base = v.val
		}
	}
	for _, o := range outs {
		v, _ := o.get(name)
		r, ok := strings.CutPrefix(v.val, base)
		if !ok || r != "" && r[0] != ' ' {
			return "", "", false
		}
		if len(rest) < 4096 {
			rest += r // of all ways: any of them may be taken
		}
	}
	return base, rest, longCommand(variable{val: base})
}

// scope is a layer of variables; what a layer does not set shows through.
type scope struct {
	own map[string]variable
	up  *scope
}

func (s *scope) get(k string) (variable, bool) {
	for ; s != nil; s = s.up {
		if v, ok := s.own[k]; ok {
			return v, true
		}
	}
	return variable{}, false
}

func (s *scope) set(k string, v variable) {
	if s.own == nil {
		s.own = map[string]variable{}
	}
	s.own[k] = v
}

// all calls f for every variable that is seen.
func (s *scope) all(f func(k string, v variable)) {
	if s.up == nil {
		for k, v := range s.own {
			f(k, v)
		}
		return
	}
	seen := map[string]bool{}
	for ; s != nil; s = s.up {
		for k, v := range s.own {
			if !seen[k] {
				seen[k] = true
				f(k, v)
			}
		}
	}
}

func (w *walker) exported(k string) bool {
	v, _ := w.env.get(k)
	return v.exported
}

// invalidate makes every variable that a loop assigns unknown, but for what
// stands before words that the loop puts behind it. It runs before and after
// what is in the loop.
func (w *walker) invalidate(n syntax.Node, starts map[string]beginning) {
	assigns(n, func(a *syntax.Assign) {
		k := a.Name.Value
		v, _ := w.env.get(k)
		if st, ok := starts[k]; ok {
			if rest := strings.TrimPrefix(v.val, st.val); rest != "" {
				w.more(st.hole, strings.ReplaceAll(rest, st.hole, ""))
			}
			v.val = st.val + " " + st.hole
		} else {
			v.val = w.hole(fact.Hole{Kind: "var", Name: k, Text: "$" + k})
		}
		if v.isArr || a.Array != nil || a.Index != nil {
			v.isArr, v.arr = true, []string{w.hole(fact.Hole{Kind: "list", Name: k, Text: "${" + k + "[@]}"})}
		}
		v.unset = false
		w.env.set(k, v)
	})
}

// more notes the words that may stand for a hole.
func (w *walker) more(hole, words string) {
	if hs := w.p.s.HolesOf(hole); len(hs) == 1 && len(words) < 4096 && len(w.p.s.Holes) < fact.MaxHoles {
		hs[0].More = strings.TrimSpace(words)
	}
}

// beginning is a command that a loop puts words behind; hole stands for these.
type beginning struct{ val, hole string }

// beginnings returns what is known of commands that a loop only puts words behind.
func (w *walker) beginnings(n syntax.Node) map[string]beginning {
	var out map[string]beginning
	assigns(n, func(a *syntax.Assign) {
		k := a.Name.Value
		_, seen := out[k]
		switch v, _ := w.env.get(k); {
		case !grows(a):
			v.val = "" // nothing is known of it
			fallthrough
		case !seen && longCommand(v):
			if out == nil {
				out = map[string]beginning{}
			}
			out[k] = beginning{val: v.val}
		}
	})
	for k, v := range out {
		if v.val == "" {
			delete(out, k)
			continue
		}
		v.hole = w.hole(fact.Hole{Kind: "var", Name: k, Text: "$" + k, Step: w.step >= 0})
		out[k] = v
	}
	return out
}

// assigns calls f for every assignment below a node.
func assigns(n syntax.Node, f func(a *syntax.Assign)) {
	syntax.Walk(n, func(x syntax.Node) bool {
		if a, ok := x.(*syntax.Assign); ok && a.Name != nil && (a.Value != nil || a.Array != nil || a.Append) {
			f(a)
		}
		return true
	})
}

// longCommand reports a value that is the beginning of a command.
func longCommand(v variable) bool {
	return !v.isArr && !v.unset && (strings.Contains(v.val, " ") || strings.HasPrefix(v.val, "srun"))
}

// grows reports an assignment that puts words behind the value that a variable
// has: X="$X more", X+=" more".
func grows(a *syntax.Assign) bool {
	if a.Value == nil || a.Array != nil || a.Index != nil || len(a.Value.Parts) != 1 {
		return false
	}
	q, ok := a.Value.Parts[0].(*syntax.DblQuoted)
	if !ok || len(q.Parts) == 0 {
		return false
	}
	parts := q.Parts
	if !a.Append {
		x, ok := parts[0].(*syntax.ParamExp)
		if !ok || x.Param == nil || x.Param.Value != a.Name.Value || x.Exp != nil || x.Slice != nil || x.Repl != nil || x.Index != nil || x.Length || x.Excl {
			return false
		}
		parts = parts[1:]
	}
	if len(parts) == 0 {
		return false
	}
	l, ok := parts[0].(*syntax.Lit)
	return ok && strings.HasPrefix(l.Value, " ")
}

func (w *walker) forClause(c *syntax.ForClause) {
	starts := w.beginnings(c)
	w.invalidate(c, starts)
	w.loop++
	switch l := c.Loop.(type) {
	case *syntax.WordIter:
		for _, it := range l.Items {
			w.word(it)
		}
		if l.Name != nil {
			w.set(l.Name.Value, variable{val: w.hole(fact.Hole{Pos: w.pos(l.Name.Pos()), Kind: "var", Name: l.Name.Value, Text: "$" + l.Name.Value})}, fact.Assign{Pos: w.pos(l.Name.Pos())})
		}
	case *syntax.CStyleLoop:
		w.arithm(l.Init)
		w.arithm(l.Cond)
		w.arithm(l.Post)
		w.invalidateArith(l.Init)
	}
	w.stmts(c.Do)
	w.loop--
	w.invalidate(c, starts)
}

func (w *walker) invalidateArith(x syntax.ArithmExpr) {
	if b, ok := x.(*syntax.BinaryArithm); ok {
		if n, ok := b.X.(*syntax.Word); ok && n.Lit() != "" {
			k := n.Lit()
			w.set(k, variable{val: w.hole(fact.Hole{Kind: "var", Name: k, Text: "$" + k})}, fact.Assign{Pos: w.pos(n.Pos())})
		}
	}
}

func (w *walker) binary(c *syntax.BinaryCmd) {
	switch c.Op {
	case syntax.AndStmt:
		w.test(func() { w.stmt(c.X) })
		w.cond++
		w.stmt(c.Y)
		w.cond--
	case syntax.OrStmt:
		old := w.orElse
		w.orElse = true
		w.test(func() { w.stmt(c.X) })
		w.orElse = old
		cw := w.clone()
		cw.cond++
		cw.stmt(c.Y)
		if !leaves([]*syntax.Stmt{c.Y}) {
			w.merge([]*scope{w.env, cw.env})
		}
	default: // a pipe
		parts := []*syntax.Stmt{c.Y}
		x := c.X
		for {
			b, ok := x.Cmd.(*syntax.BinaryCmd)
			if !ok || b.Op != syntax.Pipe && b.Op != syntax.PipeAll || len(x.Redirs) > 0 {
				break
			}
			parts = append([]*syntax.Stmt{b.Y}, parts...)
			x = b.X
		}
		parts = append([]*syntax.Stmt{x}, parts...)
		names := make([]string, len(parts))
		for i, st := range parts {
			names[i] = firstName(st)
		}
		for i, st := range parts {
			cw := w.clone()
			cw.pipeTo = append(append([]string{}, names[i+1:]...), w.pipeTo...)
			cw.piped = i > 0 || w.piped
			cw.sub = true
			cw.stmt(st)
		}
	}
}

func firstName(st *syntax.Stmt) string {
	if c, ok := st.Cmd.(*syntax.CallExpr); ok && len(c.Args) > 0 {
		return base(c.Args[0].Lit())
	}
	return ""
}

func (w *walker) testExpr(x syntax.TestExpr) {
	switch t := x.(type) {
	case *syntax.BinaryTest:
		w.testExpr(t.X)
		w.testExpr(t.Y)
	case *syntax.UnaryTest:
		if t.Op == syntax.TsVarSet {
			if wd, ok := t.X.(*syntax.Word); ok && wd.Lit() != "" {
				w.read(wd.Lit(), w.pos(wd.Pos()), true)
			}
		}
		w.testExpr(t.X)
	case *syntax.ParenTest:
		w.testExpr(t.X)
	case *syntax.Word:
		w.word(t)
	}
}

// call is a simple command, or assignments alone.
func (w *walker) call(c *syntax.CallExpr) {
	if len(c.Args) == 0 {
		for _, a := range c.Assigns {
			w.assign(a, false, -1)
		}
		return
	}
	saved := w.cmdName
	w.cmdName = base(c.Args[0].Lit())
	if w.cmdName == "[" || w.cmdName == "test" {
		w.tested = true
	}
	words := make([]fact.Word, 0, len(c.Args))
	for _, a := range c.Args {
		words = w.words(words, a)
	}
	w.tested = false
	defer func() { w.cmdName = saved }()
	if len(words) == 0 {
		return
	}
	run := w
	var names []string
	if len(c.Assigns) > 0 {
		run = w.clone()
		for _, a := range c.Assigns {
			run.assignPrefix(a, len(w.p.s.Commands))
			if a.Name != nil {
				names = append(names, a.Name.Value)
			}
		}
	}
	run.command(words, names)
}

// decl is export, declare, local, readonly, typeset.
func (w *walker) decl(c *syntax.DeclClause) {
	exp := c.Variant != nil && c.Variant.Value == "export"
	off := false
	for _, a := range c.Args {
		if a.Naked && a.Name == nil && a.Value != nil {
			f := w.word(a.Value)
			if len(f) == 0 {
				continue
			}
			v := f[0].Text
			if strings.HasPrefix(v, "-") && strings.Contains(v, "x") {
				exp = true
			}
			if strings.HasPrefix(v, "-") && strings.Contains(v, "n") || strings.HasPrefix(v, "+x") {
				off = true
			}
			continue
		}
		if off {
			continue
		}
		w.assign(a, exp, -1)
	}
	// export is a command too: it can be the last one, and succeeds.
	w.p.s.Commands = append(w.p.s.Commands, w.newCmd(w.pos(c.Pos()), c.Variant.Value, []fact.Word{{Text: c.Variant.Value, Val: c.Variant.Value, Known: true, Pos: w.pos(c.Pos())}}))
}

func (w *walker) assign(a *syntax.Assign, export bool, cmd int) {
	if a.Name == nil {
		return
	}
	k := a.Name.Value
	rec := fact.Assign{Pos: w.pos(a.Pos()), Export: export, Cmd: cmd}
	if a.Naked && a.Value == nil && a.Array == nil && a.Index == nil {
		v, _ := w.env.get(k)
		v.exported = v.exported || export
		w.env.set(k, v)
		if _, had := w.env.get(k); had && v.val == "" && !v.isArr {
			rec.Bare = true
		}
		rec.Bare = true
		rec.Name, rec.Seq, rec.Step, rec.Cond = k, w.seq(), w.step, w.cond
		w.record(rec)
		return
	}
	old, _ := w.env.get(k)
	v := variable{exported: old.exported || export || w.p.setA(w.p.n)}
	switch {
	case a.Array != nil:
		v.isArr = true
		if a.Append {
			v.arr = append(v.arr, old.arr...)
			if !old.isArr && old.val != "" {
				v.arr = append(v.arr, old.val)
			}
		}
		for _, e := range a.Array.Elems {
			if e.Value == nil {
				continue
			}
			for _, f := range w.word(e.Value) {
				if len(v.arr) > maxCommands {
					break
				}
				x := f.Val
				if f.Open && fact.HasHole(x) {
					x = w.hole(fact.Hole{Pos: f.Pos, Kind: "list", Text: f.Text, Name: nameOf(w.p.s, x), Step: w.step >= 0})
				}
				v.arr = append(v.arr, x)
				rec.Array = append(rec.Array, f)
			}
		}
		rec.IsArr = true
		if len(v.arr) > 0 {
			v.val = v.arr[0]
		}
	default:
		val := ""
		if a.Value != nil {
			val = w.join(a.Value)
		}
		if a.Index != nil {
			v.isArr, v.arr = true, append(append([]string{}, old.arr...), val)
			v.val = old.val
			rec.IsArr = true
			break
		}
		if a.Append {
			val = old.val + val
		}
		if len(val) > maxValue {
			val = w.hole(fact.Hole{Kind: "var", Name: k, Text: "$" + k})
		}
		v.val = val
		rec.Value = w.mk(val, w.pos(a.Pos()), false)
		if a.Value != nil {
			rec.Value.Pos = w.pos(a.Value.Pos())
			rec.Value.Raw = w.source(a.Value)
		}
	}
	w.set(k, v, rec)
}

// assignPrefix is NAME=value before a command.
func (w *walker) assignPrefix(a *syntax.Assign, cmd int) {
	if a.Name == nil {
		return
	}
	val := ""
	if a.Value != nil {
		val = w.join(a.Value)
	}
	w.env.set(a.Name.Value, variable{val: val, exported: true})
	rec := fact.Assign{Pos: w.pos(a.Pos()), Name: a.Name.Value, Seq: w.seq(), Prefix: true, Export: true, Step: w.step, Cond: w.cond, Loop: w.loop, Cmd: cmd, Value: w.mk(val, w.pos(a.Pos()), false)}
	w.record(rec)
}

func (w *walker) set(k string, v variable, rec fact.Assign) {
	if rec.Cmd == 0 {
		rec.Cmd = -1
	}
	if old, ok := w.env.get(k); ok && old.exported {
		v.exported = true
	}
	w.env.set(k, v)
	rec.Name, rec.Seq, rec.Step, rec.Cond, rec.Loop = k, w.seq(), w.step, w.cond, w.loop
	rec.Export = rec.Export || v.exported
	rec.Unset = v.unset
	w.record(rec)
}

func (w *walker) record(rec fact.Assign) {
	rec.Sub, rec.Dead, rec.Func, rec.File = w.sub, w.dead, w.fn, w.file
	if len(w.p.s.Assigns) < 4*maxCommands {
		w.p.s.Assigns = append(w.p.s.Assigns, rec)
	}
}

func nameOf(s *fact.Script, val string) string {
	for _, h := range s.HolesOf(val) {
		if h.Name != "" {
			return h.Name
		}
	}
	return ""
}

// deadFuncs walks functions that nothing calls, so that their text is seen too.
func (w *walker) deadFuncs() {
	var names []string
	for _, n := range w.p.s.Funcs {
		if f := w.funcs[n]; f != nil && !f.called {
			names = append(names, n)
			f.called = true
		}
	}
	for _, n := range names {
		cw := w.clone()
		cw.dead, cw.fn = true, n
		cw.depth++
		cw.stmt(w.funcs[n].body)
	}
}

// quoted notes strings that span lines.
func (p *parser) quoted(st *syntax.Stmt) {
	if len(p.s.Stray) == 0 {
		return
	}
	syntax.Walk(st, func(n syntax.Node) bool {
		switch n.(type) {
		case *syntax.SglQuoted, *syntax.DblQuoted:
			if a, b := int(n.Pos().Line()), int(n.End().Line()); b > a {
				p.strings = append(p.strings, [2]int{a, b})
			}
		}
		return true
	})
}
