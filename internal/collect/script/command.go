package script

import (
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/ncclinic/ncclinic/internal/fact"
)

func (w *walker) newCmd(pos fact.Pos, name string, words []fact.Word) fact.ScriptCmd {
	return fact.ScriptCmd{Pos: pos, Seq: w.seq(), Name: name, Words: words, Outer: w.outer, Step: w.step, Func: w.fn,
		Dead: w.dead, Cond: w.cond, Loop: w.loop, Sub: w.sub, Subst: w.subst, Back: w.back, Trap: w.trap, Neg: w.neg, OrElse: w.orElse,
		PipeTo: w.pipeTo, Piped: w.piped, Container: w.box, Redir: w.redir, Heredoc: w.heredoc, File: w.file}
}

// command is one command with its words expanded. It is recorded, and what it
// starts is followed.
func (w *walker) command(words []fact.Word, prefix []string) {
	if w.full() || len(words) == 0 {
		return
	}
	name := ""
	if words[0].Known || !words[0].Open {
		name = base(w.p.s.Show(words[0].Val))
	}
	if words[0].Known {
		name = base(words[0].Text)
	}
	c := w.newCmd(words[0].Pos, name, words)
	c.Prefix = prefix
	idx := len(w.p.s.Commands)
	w.p.s.Commands = append(w.p.s.Commands, c)
	if w.level > 0 {
		w.p.levels[idx] = w.level
	}
	if w.builtin(idx, name, words) {
		return
	}
	if f := w.funcs[words[0].Text]; f != nil && words[0].Known && w.depth < maxDepth {
		if f.busy {
			return
		}
		f.called, f.busy = true, true
		old := *w
		w.setArgs(words[1:])
		w.fn, w.outer, w.depth = words[0].Text, idx, w.depth+1
		w.pipeTo, w.redir = nil, nil
		w.stmt(f.body)
		env := w.env
		*w = old
		w.env = env
		f.busy = false
		return
	}
	cw := *w
	cw.outer, cw.depth = idx, w.depth+1
	cw.redir = nil
	if cw.depth > maxDepth {
		return
	}
	cw.starts(idx, name, words)
}

// setArgs sets the positional parameters. One that may be several words, or
// none, becomes a list: "$@" holds it, and the numbers behind it are not known.
func (w *walker) setArgs(ws []fact.Word) {
	w.args, w.known, w.argsAt, w.openAt = ws, true, w.cond+w.loop, len(ws)
	for i, x := range ws {
		if !x.Open {
			continue
		}
		if w.openAt == len(ws) {
			w.openAt = i
			w.args = slices.Clone(ws)
		}
		if !(onlyHole(x.Val) && w.isListHole(x.Val)) {
			w.args[i] = w.mk(w.hole(fact.Hole{Pos: x.Pos, Kind: "list", Text: x.Text, Name: nameOf(w.p.s, x.Val), Step: w.step >= 0}), x.Pos, true)
		}
	}
}

// shift drops positional parameters. In a loop or a branch nobody knows how many.
func (w *walker) shift(args []fact.Word) {
	n := 1
	if len(args) > 0 {
		k, err := strconv.Atoi(args[0].Text)
		if err != nil || k < 0 {
			k = len(w.args) + 1
		}
		n = k
	}
	if !w.known || n > w.openAt || w.cond+w.loop != w.argsAt {
		w.known = false
		return
	}
	w.args, w.openAt = w.args[n:], w.openAt-n
}

func (p *parser) setA(seq int) bool { return p.s.Option("a", seq+1) }

// builtin handles commands that change the shell itself.
func (w *walker) builtin(idx int, name string, words []fact.Word) bool {
	s := w.p.s
	c := &s.Commands[idx]
	args := words[1:]
	switch name {
	case "set":
		w.setOpts(c.Pos, args)
		return true
	case "shopt":
		return true
	case "trap":
		w.trapCmd(c, args)
		return true
	case "unset":
		for _, a := range args {
			if a.Known && isName(a.Text) {
				w.set(a.Text, variable{unset: true}, fact.Assign{Pos: a.Pos})
			}
		}
		return true
	case "read", "mapfile", "readarray", "getopts":
		for i, a := range args {
			if !a.Known || !isName(a.Text) || name == "getopts" && i == 0 {
				continue
			}
			kind := "var"
			v := variable{}
			if name == "mapfile" || name == "readarray" || i > 0 && strings.HasPrefix(args[i-1].Text, "-") && strings.Contains(args[i-1].Text, "a") {
				kind, v.isArr = "list", true
			}
			v.val = w.hole(fact.Hole{Pos: a.Pos, Kind: "var", Name: a.Text, Text: "$" + a.Text})
			if v.isArr {
				v.arr = []string{w.hole(fact.Hole{Pos: a.Pos, Kind: kind, Name: a.Text, Text: "${" + a.Text + "[@]}"})}
			}
			w.set(a.Text, v, fact.Assign{Pos: a.Pos, IsArr: v.isArr, Value: w.mk(v.val, a.Pos, false)})
		}
		return true
	case "printf":
		if len(args) > 2 && args[0].Text == "-v" && isName(args[1].Text) {
			k := args[1].Text
			h := w.hole(fact.Hole{Pos: c.Pos, Kind: "var", Name: k, Text: "$" + k})
			w.set(k, variable{val: h}, fact.Assign{Pos: c.Pos, Value: w.mk(h, c.Pos, false)})
		}
		return false
	case "shift":
		w.shift(args)
		return true
	case "source", ".":
		w.source_(idx, args)
		return true
	case "eval":
		w.p.sourced = true
		if len(args) > 0 {
			var vs []string
			for _, a := range args {
				vs = append(vs, a.Val)
			}
			w.inline(strings.Join(vs, " "), args[0], false, nil)
		}
		return true
	case "module", "ml":
		w.p.sourced = true
		return true
	case "exit", "return", "cd", "wait", "true", "false", ":", "ulimit", "umask", "alias", "pushd", "popd", "kill", "disown", "hash", "let", "break", "continue", "[", "test":
		return true
	case "cat", "tee":
		if c.Heredoc >= 0 {
			for _, r := range c.Redir {
				if strings.HasPrefix(r.Op, ">") && r.Word.Val != "" {
					w.p.made[path.Clean(r.Word.Val)] = c.Heredoc
				}
			}
			if name == "tee" && len(args) > 0 && !strings.HasPrefix(args[0].Text, "-") {
				w.p.made[path.Clean(args[0].Val)] = c.Heredoc
			}
		}
	}
	return false
}

func (w *walker) setOpts(pos fact.Pos, args []fact.Word) {
	s := w.p.s
	on := func(n string, v bool) {
		s.Sets = append(s.Sets, fact.ShellSet{Pos: pos, Name: n, On: v, Seq: w.seq(), Cond: w.cond, Step: w.step, Sub: w.sub})
	}
	for i := 0; i < len(args); i++ {
		t := args[i].Text
		if t == "--" || len(t) < 2 || t[0] != '-' && t[0] != '+' {
			w.args, w.known = args[i:], false
			return
		}
		v := t[0] == '-'
		for _, r := range t[1:] {
			if r == 'o' {
				if i+1 < len(args) {
					i++
					switch args[i].Text {
					case "errexit":
						on("e", v)
					case "nounset":
						on("u", v)
					case "xtrace":
						on("x", v)
					case "allexport":
						on("a", v)
					default:
						on(args[i].Text, v)
					}
				}
				continue
			}
			on(string(r), v)
		}
	}
}

func (w *walker) trapCmd(c *fact.ScriptCmd, args []fact.Word) {
	if len(args) > 0 && args[0].Text == "--" {
		args = args[1:]
	}
	if len(args) < 2 {
		return
	}
	t := fact.Trap{Pos: c.Pos, Action: args[0].Text, Seq: c.Seq, Known: args[0].Known, Step: w.step}
	for _, a := range args[1:] {
		t.Signals = append(t.Signals, SignalName(a.Text))
	}
	w.p.s.Traps = append(w.p.s.Traps, t)
	if t.Action == "" || t.Action == "-" {
		return
	}
	cw := w.clone()
	cw.trap = true
	cw.depth++
	cw.inline(args[0].Val, args[0], false, nil)
}

// source_ reads a file into the shell, when it stands beside the script.
func (w *walker) source_(idx int, args []fact.Word) {
	s := w.p.s
	if len(args) == 0 {
		return
	}
	src := fact.Sourced{Pos: args[0].Pos, Path: args[0].Text, Cmd: idx}
	if body, ok := w.open(args[0]); ok {
		src.Followed = true
		s.Sources = append(s.Sources, src)
		old := w.file
		w.p.follow++
		w.nest(body, args[0].Text, func(c *walker) {
			if len(args) > 1 {
				c.setArgs(args[1:])
			}
		}, false)
		w.p.follow--
		w.file = old
		return
	}
	s.Sources = append(s.Sources, src)
	if b := base(args[0].Text); b != "activate" && b != "conda.sh" && b != "mamba.sh" && b != "deactivate" || w.step >= 0 {
		w.p.sourced = true
	}
}

// open returns a file beside the script.
func (w *walker) open(name fact.Word) ([]byte, bool) {
	if w.p.o.Open == nil || !name.Known || name.Text == "" || w.p.follow > 4 || strings.HasPrefix(name.Text, "/") || strings.HasPrefix(name.Text, "~") {
		return nil, false
	}
	b, err := w.p.o.Open(name.Text)
	if err != nil || len(b) > 1<<20 {
		return nil, false
	}
	return b, true
}

// nest walks another file in this environment (own) or in one of its own.
func (w *walker) nest(body []byte, name string, f func(*walker), own bool) {
	w.p.cost += len(body) / 32
	if w.full() {
		return
	}
	stmts, _ := parseShell(string(body), "bash")
	c := w
	if own {
		c = w.child()
	}
	oldBase, oldFile, oldPos := c.base, c.file, c.noPos
	if w.outer >= 0 || oldBase.Line == 0 {
		at := w.p.s.Commands[len(w.p.s.Commands)-1].Pos
		c.base, c.noPos = at, true
	}
	c.file = name
	if f != nil {
		f(c)
	}
	c.depth++
	for _, st := range stmts {
		c.stmt(st)
	}
	c.depth--
	c.base, c.file, c.noPos = oldBase, oldFile, oldPos
}

// child is a new shell: it sees what is exported.
func (w *walker) child() *walker {
	c := *w
	c.env = &scope{}
	w.env.all(func(k string, v variable) {
		if v.exported {
			c.env.set(k, v)
		}
	})
	c.funcs = map[string]*function{}
	c.args, c.known, c.fn = nil, false, ""
	c.inner, c.redir, c.heredoc = true, nil, -1
	c.cond, c.loop = w.cond, w.loop
	c.pipeTo, c.piped = nil, false
	return &c
}

// inline parses the text of bash -c, eval or a here-document. at is the word
// that holds it.
func (w *walker) inline(text string, at fact.Word, own bool, args []fact.Word) {
	w.p.cost += len(text) / 32
	if w.full() || len(text) > maxValue*4 {
		return
	}
	stmts, _ := parseShell(text, "bash")
	c := w
	if own {
		c = w.child()
		if args != nil {
			c.setArgs(args)
		}
	}
	oldBase, oldPos := c.base, c.noPos
	c.base = at.Pos
	c.base.Col += quoteWidth(at.Raw)
	if at.Raw != "" && !strings.Contains(at.Raw, "\n") && strings.Contains(text, "\n") {
		c.noPos = true // the lines came with a variable: "$LAUNCHER"
	}
	c.depth++
	for _, st := range stmts {
		c.stmt(st)
	}
	c.depth--
	c.base, c.noPos = oldBase, oldPos
}

func quoteWidth(raw string) int {
	if strings.HasPrefix(raw, "'") || strings.HasPrefix(raw, `"`) {
		return 1
	}
	return 0
}

// wrappers are commands that start another one: flags that take a value, and
// how many plain arguments come before the command.
var wrappers = map[string]struct {
	val  string
	skip int
}{
	"time":            {"", 0},
	"nohup":           {"", 0},
	"exec":            {"-a", 0},
	"command":         {"", 0},
	"setsid":          {"", 0},
	"nice":            {"-n --adjustment", 0},
	"ionice":          {"-c -n -p", 0},
	"timeout":         {"-s --signal -k --kill-after", 1},
	"stdbuf":          {"-i -o -e", 0},
	"unbuffer":        {"", 0},
	"numactl":         {"-m -N -C -p -P -i --membind --cpunodebind --physcpubind --interleave --preferred", 0},
	"taskset":         {"", 1},
	"sudo":            {"-u -g", 0},
	"env":             {"-u -C --unset --chdir", 0},
	"catchsegv":       {"", 0},
	"script":          {"", 0},
	"strace":          {"-e -o -p -s", 0},
	"xvfb-run":        {"-s -n -e -f --server-args --server-num", 0},
	"nsys":            {"-o -t -s -f -w -x -y -d -c -p -e -b --output --trace --sample --capture-range --capture-range-end --delay --duration --force-overwrite --kill --wait --cuda-graph-trace --backtrace --cpuctxsw --nic-metrics --show-output --env-var --session --session-new --gpu-metrics-devices --gpu-metrics-frequency --python-backtrace --python-sampling --pytorch --samples-per-backtrace --cudabacktrace --export --stats --cuda-memory-usage --gpu-metrics-device", 1},
	"ncu":             {"-o --export -k --kernel-name -c --launch-count -s --launch-skip --set --section --metrics --target-processes", 0},
	"rocprof":         {"-i -o -d", 0},
	"pyinstrument":    {"-o -r", 0},
	"scalene":         {"", 0},
	"conda":           {"-n --name -p --prefix", 1},
	"mamba":           {"-n --name -p --prefix", 1},
	"micromamba":      {"-n --name -p --prefix", 1},
	"uv":              {"--with --extra --group --python -p --project --env-file --package --directory --index-url --with-requirements --cache-dir", 1},
	"poetry":          {"-C --directory", 1},
	"pipenv":          {"", 1},
	"pdm":             {"-p --project", 1},
	"pixi":            {"-e --environment --manifest-path", 1},
	"rye":             {"", 1},
	"hatch":           {"-e", 1},
	"hydra":           {"", 0},
	"set_affinity.sh": {"", 0},
	"bind.sh":         {"", 0},
}

// starts follows what a command starts.
func (w *walker) starts(idx int, name string, words []fact.Word) {
	args := words[1:]
	switch name {
	case "bash", "sh", "dash", "zsh", "ksh":
		w.shell(idx, args)
	case "srun":
		w.srun(idx, words)
	case "mpirun", "mpiexec", "orterun", "prterun", "mpiexec.hydra", "ibrun", "aprun", "jsrun", "lrun", "flux", "prun":
		w.mpirun(idx, name, words)
	case "pdsh", "clush", "parallel-ssh", "pssh", "ssh", "dsh":
		w.remote(idx, name, words)
	case "salloc":
	case "singularity", "apptainer", "docker", "podman", "podman-hpc", "enroot", "shifter", "sarus", "charliecloud", "ch-run", "udocker":
		w.container(idx, name, words)
	case "sbatch":
		w.p.sbatch(&w.p.s.Commands[idx])
	case "parallel", "xargs":
		w.guess(args)
	default:
		if wr, ok := wrappers[name]; ok {
			w.wrapper(idx, name, args, wr.val, wr.skip)
			return
		}
		w.program(idx, name, words)
	}
}

func (w *walker) wrapper(idx int, name string, args []fact.Word, vals string, skip int) {
	switch name {
	case "conda", "mamba", "micromamba", "uv", "poetry", "pipenv", "pdm", "pixi", "rye", "hatch":
		if len(args) == 0 || args[0].Text != "run" {
			return
		}
	case "nsys":
		if len(args) == 0 || args[0].Text != "profile" && args[0].Text != "launch" {
			return
		}
	}
	valued := strings.Fields(vals)
	i := 0
	for ; i < len(args); i++ {
		t := args[i].Text
		switch {
		case t == "--":
			i++
			goto found
		case strings.HasPrefix(t, "-") && len(t) > 1:
			if slices.Contains(valued, t) {
				i++
			}
			if name == "taskset" && t == "-c" {
				i++
				goto found
			}
		case name == "env" && strings.IndexByte(t, '=') > 0:
			k, v, _ := strings.Cut(args[i].Val, "=")
			if isName(k) {
				c := *w.clone()
				*w = c
				w.env.set(k, variable{val: v, exported: true})
				w.record(fact.Assign{Pos: args[i].Pos, Name: k, Seq: w.seq(), Prefix: true, Export: true, Step: w.step, Cmd: idx, Value: w.mk(v, args[i].Pos, false)})
			}
		case skip > 0:
			skip--
		default:
			goto found
		}
	}
found:
	if i < len(args) {
		w.command(args[i:], nil)
	}
}

// shell is bash with a string, a file, or a here-document.
func (w *walker) shell(idx int, args []fact.Word) {
	for i := 0; i < len(args); i++ {
		t := args[i].Text
		switch {
		case strings.HasPrefix(t, "-") && !strings.HasPrefix(t, "--") && strings.Contains(t, "c"):
			if i+1 < len(args) {
				var rest []fact.Word
				if i+3 <= len(args) {
					rest = args[min(i+3, len(args)):]
				}
				if args[i+1].Open {
					w.launch(fact.Launch{Kind: fact.LaunchWrapper, Cmd: idx, Open: true}, nil)
				}
				w.inline(args[i+1].Val, args[i+1], true, rest)
			}
			return
		case t == "-s" || t == "--" || t == "--login":
		case strings.HasPrefix(t, "-") || strings.HasPrefix(t, "+"):
			if t == "-o" || t == "+o" || t == "-O" {
				i++
			}
		default:
			w.scriptFile(idx, args[i], args[i+1:])
			return
		}
	}
	if h := w.p.s.Commands[idx].Heredoc; h >= 0 {
		d := w.p.s.Heredocs[h]
		w.inline(d.Val, fact.Word{Pos: d.Pos}, true, nil)
	} else if w.heredoc >= 0 {
		d := w.p.s.Heredocs[w.heredoc]
		w.inline(d.Val, fact.Word{Pos: d.Pos}, true, nil)
	} else if w.step >= 0 {
		w.launch(fact.Launch{Kind: fact.LaunchWrapper, Cmd: idx, Open: true}, nil)
	}
}

// scriptFile is a shell script that is started: one that this script wrote, one
// beside it, or one that is not known.
func (w *walker) scriptFile(idx int, name fact.Word, args []fact.Word) {
	if h, ok := w.p.made[path.Clean(name.Val)]; ok {
		d := w.p.s.Heredocs[h]
		w.inline(d.Val, fact.Word{Pos: d.Pos}, true, args)
		return
	}
	if body, ok := w.open(name); ok {
		w.p.follow++
		w.nest(body, name.Text, func(c *walker) { c.setArgs(args) }, true)
		w.p.follow--
		return
	}
	w.launch(fact.Launch{Kind: fact.LaunchWrapper, Cmd: idx, Open: true, Program: name.Text, Args: args}, nil)
	w.guess(args)
}

// guess finds a launcher among the arguments of a wrapper that is not known.
func (w *walker) guess(args []fact.Word) {
	for i, a := range args {
		switch b := base(a.Text); b {
		case "torchrun", "python", "python3", "accelerate", "deepspeed", "composer", "bash":
			if i > 0 && strings.HasPrefix(args[i-1].Text, "--") && !strings.Contains(args[i-1].Text, "=") {
				continue
			}
			old := w.guessed
			w.guessed = true
			w.command(args[i:], nil)
			w.guessed = old
			return
		}
	}
}

// sizeless lists the options that may stand for a hole, when they are known and
// say nothing of the number of nodes and tasks: --container-mounts=$m in a loop.
func (w *walker) sizeless(hole string, depth int) (names []string, ok bool) {
	hs := w.p.s.HolesOf(hole)
	if len(hs) != 1 || hs[0].More == "" || depth > 4 {
		return nil, false
	}
	for _, t := range strings.Fields(hs[0].More) {
		if onlyHole(t) {
			more, ok := w.sizeless(t, depth+1)
			if !ok {
				return nil, false
			}
			names = append(names, more...)
			continue
		}
		n, _, eq := strings.Cut(t, "=")
		n = strings.TrimPrefix(n, "--")
		switch {
		case !eq || n == t || fact.HasHole(n):
			return nil, false
		case strings.HasPrefix(n, "container-"), n == "export", n == "mpi", n == "output", n == "error", n == "job-name", n == "cpu-bind", n == "kill-on-bad-exit", n == "wait":
			names = append(names, n)
		default:
			return nil, false
		}
	}
	return names, true
}

// srun reads a step's options and follows its program.
func (w *walker) srun(idx int, words []fact.Word) {
	st := fact.Step{Pos: words[0].Pos, Tool: "srun", Cmd: idx, Outer: w.step}
	i := 1
	ds := func(name, val string, wd fact.Word, hasVal bool) {
		st.Opts = append(st.Opts, fact.Directive{Pos: wd.Pos, Name: name, Value: w.p.s.Show(val), HasValue: hasVal, Known: srunOptions().long[name] != nil})
		if !hasVal {
			return
		}
		n, err := strconv.Atoi(val)
		cnt := func(to *int) {
			if err != nil || n <= 0 {
				st.Unknown = true
				return
			}
			*to = n
		}
		switch name {
		case "nodes":
			if lo, _, ok := nodeRange(val); ok {
				st.Nodes = lo
			} else {
				st.Unknown = true
			}
		case "ntasks":
			cnt(&st.Tasks)
		case "ntasks-per-node":
			cnt(&st.TasksPerNode)
		case "gpus-per-task":
			if k, _, ok := gpuCount(val); ok {
				st.GPUsPerTask = k
			} else {
				st.Unknown = true
			}
		}
	}
	for i < len(words) {
		a := words[i]
		t := a.Val
		if t == "--" {
			i++
			break
		}
		if t == ":" { // the next component of a heterogeneous step
			st.Unknown = true
			i++
			continue
		}
		if !strings.HasPrefix(t, "-") {
			if a.Open && onlyHole(a.Val) && i+1 < len(words) { // $SRUN_ARGS
				if names, ok := w.sizeless(a.Val, 0); ok {
					for _, n := range names {
						ds(n, "", a, false)
					}
					i++
					continue
				}
				st.Unknown = true
				i++
				continue
			}
			break
		}
		if strings.HasPrefix(t, "--") {
			n, v, eq := strings.Cut(t[2:], "=")
			o := srunOptions().find(n)
			switch {
			case o == nil && !eq:
				ds(n, "", a, false)
				if !st.Unknown { // behind $1 it may be an option of the program
					d := &st.Opts[len(st.Opts)-1]
					d.Near, d.Maybe = srunOptions().guess(n), srunOptions().ambiguous(n)
				}
				// A site's option: its value follows unless that is a program.
				if i+1 < len(words) && !strings.HasPrefix(words[i+1].Text, "-") && !programLike(words[i+1].Text) && i+2 < len(words) {
					i++
				}
			case o == nil:
				ds(n, v, a, true)
				if !st.Unknown {
					d := &st.Opts[len(st.Opts)-1]
					d.Near, d.Maybe = srunOptions().guess(n), srunOptions().ambiguous(n)
				}
			case eq:
				ds(o.canon(), v, a, true)
			case o.arg == needArg && i+1 < len(words):
				i++
				ds(o.canon(), words[i].Val, words[i], true)
			default:
				ds(o.canon(), "", a, false)
			}
			i++
			continue
		}
		rest := t[1:]
		for k := 0; k < len(rest); k++ {
			o := srunOptions().short[rest[k]]
			if o == nil {
				break
			}
			if o.arg == noArg {
				ds(o.canon(), "", a, false)
				continue
			}
			if k+1 < len(rest) {
				ds(o.canon(), rest[k+1:], a, true)
			} else if o.arg == needArg && i+1 < len(words) {
				i++
				ds(o.canon(), words[i].Val, words[i], true)
			} else {
				ds(o.canon(), "", a, false)
			}
			break
		}
		i++
	}
	if st.Opt("version") != nil || st.Opt("help") != nil || st.Opt("usage") != nil {
		return // it starts nothing
	}
	w.effStep(&st)
	n := len(w.p.s.Steps)
	w.p.s.Steps = append(w.p.s.Steps, st)
	w.step = n
	if d := st.Opt("container-image"); d != nil {
		w.box = &fact.Box{Tool: "pyxis", Image: d.Value, NV: true, Pos: d.Pos}
	}
	if st.Opt("environment") != nil || st.Opt("container") != nil {
		w.box = &fact.Box{Tool: "srun", NV: true, Open: true, Pos: st.Pos}
	}
	if d := st.Opt("export"); d != nil {
		for _, kv := range strings.Split(d.Value, ",") {
			if k, v, ok := strings.Cut(kv, "="); ok && isName(k) && !strings.ContainsAny(v, "$") {
				w.env = &scope{up: w.env}
				w.env.set(k, variable{val: v, exported: true})
				w.record(fact.Assign{Pos: d.Pos, Name: k, Seq: w.seq(), Prefix: true, Export: true, Step: n, Cmd: idx, Value: w.mk(v, d.Pos, false)})
			}
		}
	}
	if i < len(words) {
		w.command(words[i:], nil)
	} else if w.heredoc < 0 {
		w.launch(fact.Launch{Kind: fact.LaunchWrapper, Cmd: idx, Open: true}, nil)
	}
}

func programLike(t string) bool {
	switch base(t) {
	case "bash", "sh", "python", "python3", "torchrun", "accelerate", "deepspeed", "singularity", "apptainer", "nvidia-smi", "env", "uv":
		return true
	}
	return strings.HasSuffix(t, ".sh") || strings.HasPrefix(t, "./") || strings.HasPrefix(t, "/")
}

// effStep works out nodes and tasks of a step: SLURM_NTASKS and
// SLURM_NTASKS_PER_NODE are inputs of srun (F10).
func (w *walker) effStep(st *fact.Step) {
	r := &w.p.s.Request
	jobTasks := r.Tasks
	if v, ok := w.env.get("SLURM_NTASKS"); ok {
		jobTasks, _ = strconv.Atoi(v.val)
	}
	if jobTasks == 0 && r.TasksPerNode > 0 {
		jobTasks = r.TasksPerNode * r.EffectiveNodes
	}
	st.EffNodes = r.EffectiveNodes
	if st.Nodes > 0 {
		st.EffNodes = st.Nodes
	}
	if st.Unknown && st.Opt("nodes") != nil && st.Nodes == 0 {
		st.EffNodes = 0
	}
	switch {
	case st.Unknown && (st.Opt("ntasks") != nil && st.Tasks == 0 || st.Opt("ntasks-per-node") != nil && st.TasksPerNode == 0):
	case st.Tasks > 0:
		st.EffTasks = st.Tasks
	case st.TasksPerNode > 0 && st.Opt("nodes") != nil && jobTasks > 0 && jobTasks != st.TasksPerNode*st.EffNodes:
		// With -N of its own, the tasks of the job do not count since 23.02
		// (src/srun/opt.c); before, --ntasks-per-node was ignored here too. How many
		// tasks start depends on the release: left open.
	case jobTasks > 0: // --ntasks-per-node alone cannot be honoured then
		st.EffTasks = jobTasks
	case st.TasksPerNode > 0:
		st.EffTasks, st.EffTPN = st.TasksPerNode*st.EffNodes, st.TasksPerNode
	case r.TasksPerNode > 0:
		st.EffTPN = r.TasksPerNode
	case r.TasksPerGPU > 0 || r.GPUsPerTask > 0 && r.GPUs > 0:
	default: // one task per node
		st.EffTasks, st.EffTPN = st.EffNodes, 1
	}
	if st.Unknown && st.Opt("ntasks") == nil && st.Opt("nodes") == nil && st.Opt("ntasks-per-node") == nil {
		// Options in a variable may say anything.
		st.EffTasks, st.EffTPN, st.EffNodes = 0, 0, 0
		return
	}
	if st.EffTasks > 0 && st.EffTasks < st.EffNodes {
		st.EffNodes = st.EffTasks
	}
	if st.EffTPN == 0 && st.EffTasks > 0 && st.EffNodes > 0 {
		st.EffTPN = (st.EffTasks + st.EffNodes - 1) / st.EffNodes
	}
}

func (w *walker) mpirun(idx int, name string, words []fact.Word) {
	st := fact.Step{Pos: words[0].Pos, Tool: name, Cmd: idx, Outer: w.step}
	i := 1
	valued := strings.Fields("-np -n -c -N -npernode --npernode -ppn --ppn -perhost -H -host --host -hosts --hosts -hostfile --hostfile -machinefile --machinefile -f --map-by -map-by --bind-to -bind-to --rank-by -x -genv -env -mca --mca -wdir --wdir -rf --rankfile -path --np --n -pe --prefix -r -a -g -d -b -l -tasks_per_rs --output-filename -iface --nooversubscribe-dummy")
	if name == "flux" {
		i = 2
	}
	for i < len(words) && (strings.HasPrefix(words[i].Text, "-") || words[i].Text == ":" || words[i].Open && onlyHole(words[i].Val) && i+1 < len(words)) {
		t := words[i].Text
		if words[i].Open && !strings.HasPrefix(t, "-") {
			st.Unknown = true
			i++
			continue
		}
		n, v, eq := strings.Cut(strings.TrimLeft(t, "-"), "=")
		if !eq && slices.Contains(valued, t) && i+1 < len(words) {
			i++
			v, eq = words[i].Text, true
			if n == "mca" || n == "genv" || n == "env" {
				i++
			}
		}
		st.Opts = append(st.Opts, fact.Directive{Pos: words[i].Pos, Name: n, Value: v, HasValue: eq, Known: true})
		k, err := strconv.Atoi(v)
		switch n {
		case "np", "n":
			if err == nil {
				st.Tasks = k
			} else {
				st.Unknown = true
			}
		case "npernode", "N", "ppn", "perhost":
			if err == nil {
				st.TasksPerNode = k
			} else {
				st.Unknown = true
			}
		case "map-by":
			if f := strings.Split(v, ":"); len(f) >= 3 && f[0] == "ppr" && f[2] == "node" {
				if k, err := strconv.Atoi(f[1]); err == nil {
					st.TasksPerNode = k
				}
			}
		}
		i++
	}
	st.EffTasks, st.EffTPN, st.EffNodes = st.Tasks, st.TasksPerNode, w.p.s.Request.EffectiveNodes
	if st.EffTPN == 0 && st.Tasks > 0 && st.EffNodes > 0 && !st.Unknown {
		if st.Tasks == st.EffNodes {
			st.EffTPN = 0 // slots decide
		}
	}
	w.step = len(w.p.s.Steps)
	w.p.s.Steps = append(w.p.s.Steps, st)
	if i < len(words) {
		w.command(words[i:], nil)
	}
}

// remote is ssh or pdsh: a command line for another host.
func (w *walker) remote(idx int, name string, words []fact.Word) {
	st := fact.Step{Pos: words[0].Pos, Tool: name, Cmd: idx, Outer: w.step, Unknown: true}
	i := 1
	valued := strings.Fields("-o -p -l -i -F -J -L -R -D -w -x -g -f -t -u -h")
	host := name == "ssh"
	for i < len(words) {
		t := words[i].Text
		if strings.HasPrefix(t, "-") {
			if slices.Contains(valued, t) {
				i++
			}
			i++
			continue
		}
		if host {
			host = false
			i++
			continue
		}
		break
	}
	w.step = len(w.p.s.Steps)
	w.p.s.Steps = append(w.p.s.Steps, st)
	if i >= len(words) {
		if w.heredoc >= 0 {
			d := w.p.s.Heredocs[w.heredoc]
			w.inline(d.Val, fact.Word{Pos: d.Pos}, true, nil)
		}
		return
	}
	var vs []string
	for _, x := range words[i:] {
		vs = append(vs, x.Val)
	}
	w.inline(strings.Join(vs, " "), words[i], true, nil)
}

// container reads the options of a container tool and follows the program.
func (w *walker) container(idx int, tool string, words []fact.Word) {
	b := &fact.Box{Tool: tool, Pos: words[0].Pos}
	i := 1
	valued := strings.Fields("-B --bind -H --home -W --workdir --pwd --cwd --env --env-file --overlay -o --app --network --security --nvccli-dummy --scratch -S --mount -v --volume -e -w --name --gpus --shm-size --ipc --network --ulimit -u --user --device --entrypoint --cpus -m --memory --runtime --group-add --cap-add -p --publish --hostname --image --module --mount -d --rc --set-env -b --fakeroot-dummy --pid-dummy --dns --apply-cgroups --config --fuse-mount --add-caps --keep-privs-dummy --conf --tmpfs --label -l --platform --pull --userns --uts --annotation")
	switch tool {
	case "singularity", "apptainer":
		for i < len(words) && strings.HasPrefix(words[i].Text, "-") {
			i++
		}
		if i >= len(words) || words[i].Text != "exec" && words[i].Text != "run" && words[i].Text != "shell" {
			return
		}
		i++
	case "docker", "podman", "podman-hpc", "enroot":
		if i >= len(words) || words[i].Text != "run" && words[i].Text != "exec" && words[i].Text != "start" {
			return
		}
		i++
	case "shifter", "sarus":
		b.NV = true
		if tool == "sarus" {
			if i >= len(words) || words[i].Text != "run" {
				return
			}
			i++
		}
	}
	for i < len(words) {
		a := words[i]
		t := a.Text
		if a.Open && onlyHole(a.Val) && i+2 < len(words) {
			if next := words[i+1].Text; programLike(next) && !strings.Contains(next, "/") {
				break // $IMAGE bash
			}
			b.Open = true
			i++
			continue
		}
		if !strings.HasPrefix(t, "-") {
			break
		}
		n, v, eq := strings.Cut(t, "=")
		switch n {
		case "--nv", "--nvccli":
			b.NV = true
		case "--rocm":
			b.ROCm = true
		case "--gpus", "--device", "--runtime":
			b.NV = true
		case "--image":
			b.Image = v
		}
		if !eq && slices.Contains(valued, n) {
			i++
			if n == "--image" && i < len(words) {
				b.Image = words[i].Text
			}
		}
		i++
	}
	if tool != "shifter" || b.Image == "" {
		if tool != "shifter" && i < len(words) {
			b.Image = words[i].Text
			i++
		}
	}
	for _, k := range []string{"SINGULARITY_NV", "APPTAINER_NV"} {
		if v, ok := w.env.get(k); ok && v.val != "0" {
			b.NV = true
		}
	}
	w.box = b
	w.p.s.Commands[idx].Container = b
	if i < len(words) {
		w.command(words[i:], nil)
		return
	}
	if w.heredoc >= 0 {
		return
	}
	w.launch(fact.Launch{Kind: fact.LaunchWrapper, Cmd: idx, Open: true, Program: b.Image}, nil)
}

// sbatch notes that the script submits others.
func (p *parser) sbatch(c *fact.ScriptCmd) {
	for _, a := range c.Words[1:] {
		// A script that submits itself again is no generator.
		if a.Raw == "$0" || a.Raw == `"$0"` || strings.Contains(a.Text, "BASH_SOURCE") || strings.HasSuffix(a.Text, "/"+base(p.s.Name)) || a.Text == base(p.s.Name) {
			return
		}
	}
	p.s.CallsSbatch = true
}

// launch records a launch with the walker's place.
func (w *walker) launch(l fact.Launch, words []fact.Word) {
	s := w.p.s
	if len(s.Launches) >= maxCommands {
		return
	}
	l.Step, l.Container, l.Cond, l.Dead, l.Back, l.Guessed = w.step, w.box, w.cond, w.dead, w.back, w.guessed
	if l.Pos.Line == 0 {
		l.Pos = s.Commands[l.Cmd].Pos
	}
	if w.step >= 0 && w.p.s.Steps[w.step].Unknown && w.p.s.Steps[w.step].Tool == "srun" {
		// The step's own options may hold the rest; flags of the program are still its own.
		_ = words
	}
	s.Launches = append(s.Launches, l)
}

// finish looks at the script as a whole.
func (p *parser) finish() {
	s := p.s
	if s.CallsSbatch {
		for i := range s.Heredocs {
			if strings.Contains(s.Heredocs[i].Val, "#SBATCH") {
				s.Generator = true
			}
		}
		for i := range s.Commands {
			c := &s.Commands[i]
			if c.Name != "echo" && c.Name != "printf" {
				continue
			}
			for _, a := range c.Words {
				if strings.Contains(a.Text, "#SBATCH") {
					s.Generator = true
				}
			}
		}
		if len(s.Directives) == 0 {
			s.Generator = true
		}
	}
	// Directives inside a here-document or a string are text of another script.
	p.quoteStrays()
}

func (p *parser) quoteStrays() {
	s := p.s
	if len(s.Stray) == 0 {
		return
	}
	if s.Shell == "python" {
		p.strings = append(p.strings, tripleQuoted(s.Src)...)
	}
	in := func(line int) bool {
		if s.Syntax != nil && line > s.Syntax.Line {
			return true // what stands after it could not be read: perhaps a here-document
		}
		for i := range s.Heredocs {
			if h := &s.Heredocs[i]; line >= h.Line && line <= h.End {
				return true
			}
		}
		for _, r := range p.strings {
			if line > r[0] && line <= r[1] {
				return true
			}
		}
		return false
	}
	for i := range s.Stray {
		if in(s.Stray[i].Line) {
			s.Stray[i].Kind = fact.StrayQuoted
		}
	}
}

// tripleQuoted lists first and last lines of the long strings of a Python
// program: scripts that it writes stand in them.
func tripleQuoted(src []byte) [][2]int {
	var out [][2]int
	line, first, open := 1, 0, byte(0)
	for i := 0; i < len(src); i++ {
		c := src[i]
		switch {
		case c == '\n':
			line++
		case c == '\\':
			i++
			if i < len(src) && src[i] == '\n' {
				line++
			}
		case c == '#' && open == 0:
			for i+1 < len(src) && src[i+1] != '\n' {
				i++
			}
		case (c == '"' || c == '\'') && (open == 0 || open == c) && i+2 < len(src) && src[i+1] == c && src[i+2] == c:
			if i += 2; open == 0 {
				open, first = c, line
			} else {
				open, out = 0, append(out, [2]int{first, line})
			}
		}
	}
	return out
}
