package script

import (
	"bytes"
	"slices"
	"strings"
	"sync"

	"github.com/ncclinic/ncclinic/internal/fact"
	"github.com/ncclinic/ncclinic/internal/lazyre"
)

// program recognises training launchers by name.
func (w *walker) program(idx int, name string, words []fact.Word) {
	args := words[1:]
	l := fact.Launch{Cmd: idx, Pos: words[0].Pos}
	switch {
	case name == "torchrun" || name == "torchrun-script":
		l.Kind = fact.LaunchTorchrun
		w.torchrun(&l, args)
	case name == "accelerate" || name == "accelerate-launch":
		if name == "accelerate" {
			if len(args) == 0 || args[0].Text != "launch" {
				return
			}
			args = args[1:]
		}
		l.Kind = fact.LaunchAccelerate
		w.accelerate(&l, args)
	case name == "deepspeed" || name == "deepspeed.py" || name == "ds":
		l.Kind = fact.LaunchDeepSpeed
		w.deepspeed(&l, args)
	case name == "composer":
		l.Kind = fact.LaunchComposer
		w.composer(&l, args)
	case name == "lightning" || name == "fabric":
		if len(args) == 0 || args[0].Text != "run" {
			return
		}
		l.Kind, l.Open = fact.LaunchLightning, true
		w.launch(l, args)
	case name == "colossalai":
		if len(args) == 0 || args[0].Text != "run" {
			return
		}
		l.Kind = fact.LaunchColossal
		w.deepspeed(&l, args[1:])
	case name == "horovodrun":
		l.Kind, l.Open = fact.LaunchHorovod, true
		w.launch(l, args)
	case name == "ray":
		l.Kind = fact.LaunchRay
		l.Args = args
		w.launch(l, args)
	case isPython(name):
		w.python(&l, words)
	case isPythonVar(words[0]):
		w.python(&l, words)
	case strings.HasSuffix(name, ".sh") || strings.HasSuffix(name, ".bash") || strings.HasSuffix(name, ".slurm") || strings.HasSuffix(name, ".sbatch"):
		w.scriptFile(idx, words[0], args)
	case strings.HasSuffix(name, ".py"):
		l.Kind, l.Program, l.Args = fact.LaunchPython, words[0].Text, args
		w.launch(l, args)
	case plain()[name]:
		if name == "xargs" || name == "find" {
			w.guess(args)
		}
	case words[0].Open:
		// $LAUNCHER with an unknown value.
		l.Kind, l.Open, l.Args = fact.LaunchWrapper, true, args
		w.launch(l, args)
		w.guess(args)
	case name == "":
	case w.step >= 0 || strings.Contains(words[0].Text, "/"):
		l.Kind, l.Open, l.Program, l.Args = fact.LaunchWrapper, true, words[0].Text, args
		w.launch(l, args)
		w.guess(args)
	default:
		// A command of the site: it may start what follows.
		w.guess(args)
	}
}

// plain are commands that start no training.
var plain = sync.OnceValue(func() map[string]bool {
	m := map[string]bool{}
	for _, n := range strings.Fields(`echo printf cat ls cp mv rm mkdir rmdir ln chmod chown touch date hostname uname whoami id pwd env printenv
grep egrep fgrep sed awk gawk tr cut sort uniq head tail wc tee find xargs du df free top ps pgrep pkill kill killall sleep seq bc expr which type
nvidia-smi rocm-smi nvcc gcc g++ make cmake git wget curl tar unzip zip gzip gunzip pigz rsync scp scontrol sinfo squeue sacct scancel sattach sstat sbcast
module ml conda mamba pip pip3 jupyter tensorboard wandb huggingface-cli hf ip ifconfig ping netstat ss lsof nc lscpu numactl lspci lsmod ulimit
basename dirname realpath readlink tput clear stty stat test true false yes mktemp openssl base64 md5sum sha256sum jq yq dos2unix ibstat ibv_devinfo ibdev2netdev lsb_release
mount umount fusermount squashfuse docker podman shuf nproc getent host dig nslookup nodeset watch jobs fg bg history time file diff cmp patch column rev paste split comm tac nl od xxd hexdump strings logger mail mailx sendmail gsutil aws az gcloud s3cmd rclone mc`) {
		m[n] = true
	}
	return m
})

func isPython(name string) bool {
	if name == "python" || name == "ipython" || name == "pypy3" || name == "pythonw" {
		return true
	}
	r, ok := strings.CutPrefix(name, "python")
	return ok && strings.Trim(r, "0123456789.") == ""
}

// isPythonVar recognises $PYTHON and ${PYTHON_BIN}/python of unknown value.
func isPythonVar(w fact.Word) bool {
	if w.Known {
		return false
	}
	t := strings.ToLower(strings.Trim(w.Text, `${}"`))
	return strings.HasPrefix(t, "python") || strings.HasSuffix(t, "_python") || t == "py"
}

// python is a Python interpreter: a module, a file, or text.
func (w *walker) python(l *fact.Launch, words []fact.Word) {
	l.Python = words[0].Text
	args := words[1:]
	for i := 0; i < len(args); i++ {
		t := args[i].Text
		switch {
		case t == "-m":
			if i+1 >= len(args) {
				return
			}
			w.module(l, args[i+1].Text, args[i+2:])
			return
		case strings.HasPrefix(t, "-m") && len(t) > 2 && t[2] != '-':
			w.module(l, t[2:], args[i+1:])
			return
		case t == "-c" || t == "--version" || t == "-V" || t == "-" || t == "-h":
			return
		case t == "-W" || t == "-X":
			i++
		case strings.HasPrefix(t, "-"):
		case args[i].Open && onlyHole(args[i].Val):
			l.Kind, l.Open, l.Program, l.Args = fact.LaunchPython, true, t, args[i+1:]
			w.launch(*l, args)
			return
		default:
			b := base(t)
			if b == "torchrun" || b == "deepspeed" || b == "accelerate" {
				w.program(l.Cmd, b, args[i:])
				return
			}
			if strings.HasSuffix(t, "torch/distributed/run.py") || strings.HasSuffix(t, "torch/distributed/launch.py") {
				w.module(l, "torch.distributed."+strings.TrimSuffix(b, ".py"), args[i+1:])
				return
			}
			l.Kind, l.Program, l.Args = fact.LaunchPython, t, args[i+1:]
			w.launch(*l, args)
			return
		}
	}
}

func (w *walker) module(l *fact.Launch, mod string, args []fact.Word) {
	switch mod {
	case "torch.distributed.run", "torch.distributed.launcher", "torch.distributed.elastic.launch":
		l.Kind = fact.LaunchTorchrun
		w.torchrun(l, args)
	case "torch.distributed.launch":
		l.Kind = fact.LaunchLegacy
		w.torchrun(l, args)
	case "accelerate.commands.launch", "accelerate.commands.accelerate_cli":
		if strings.HasSuffix(mod, "_cli") && len(args) > 0 && args[0].Text == "launch" {
			args = args[1:]
		}
		l.Kind = fact.LaunchAccelerate
		w.accelerate(l, args)
	case "deepspeed.launcher.runner", "deepspeed.launcher.launch", "deepspeed":
		l.Kind = fact.LaunchDeepSpeed
		w.deepspeed(l, args)
	case "pip", "venv", "virtualenv", "ensurepip", "json.tool", "http.server", "ipykernel", "pytest", "torch.utils.collect_env", "site", "zipfile", "tensorboard.main", "compileall":
	default:
		l.Kind, l.Program, l.Args = fact.LaunchPython, mod, args
		w.launch(*l, args)
	}
}

// flag is one option of a launcher.
type flag struct {
	name string // with - for _
	val  fact.Word
	has  bool
	word fact.Word // as it stands
}

// flags reads a launcher's options up to the program. switches are those
// without a value; short maps one-letter options to long ones. An option that
// is not known takes a value unless the next word is an option. The beginning of
// one of full alone stands for it, as argparse reads it.
func (w *walker) flags(args []fact.Word, switches string, short map[string]string, full ...string) (fs []flag, rest []fact.Word, open bool) {
	sw := strings.Fields(switches)
	for i := 0; i < len(args); i++ {
		a := args[i]
		t := a.Val
		if !strings.HasPrefix(t, "-") || t == "-" {
			if a.Open && onlyHole(a.Val) {
				// "$ARGS train.py": options, or the program itself.
				if i+1 < len(args) {
					open = true
					continue
				}
				return fs, args[i:], true
			}
			if t == "" && !a.Open {
				continue
			}
			return fs, args[i:], open
		}
		if t == "--" {
			return fs, args[i+1:], open
		}
		n, v, eq := strings.Cut(t, "=")
		long := strings.TrimLeft(n, "-")
		if !strings.HasPrefix(n, "--") {
			if l, ok := short[n]; ok {
				long = l
			} else if l, ok := short[n[:min(2, len(n))]]; ok && len(n) > 2 {
				fs = append(fs, flag{l, w.mk(n[2:], a.Pos, false), true, a})
				continue
			}
		}
		long = strings.ReplaceAll(long, "_", "-")
		if strings.HasPrefix(n, "--") {
			long = unabbreviated(long, full)
		}
		switch {
		case eq:
			fs = append(fs, flag{long, fact.Word{Pos: a.Pos, Val: v, Text: w.p.s.Show(v), Known: !fact.HasHole(v), Raw: a.Raw}, true, a})
		case slices.Contains(sw, long):
			fs = append(fs, flag{long, fact.Word{Pos: a.Pos}, false, a})
		case i+1 < len(args) && !strings.HasPrefix(args[i+1].Text, "--"):
			i++
			fs = append(fs, flag{long, args[i], true, a})
		default:
			fs = append(fs, flag{long, fact.Word{Pos: a.Pos}, false, a})
		}
	}
	return fs, nil, open
}

// unabbreviated returns the only name that begins with n, or n.
func unabbreviated(n string, full []string) string {
	hit := ""
	for _, f := range full {
		switch {
		case f == n:
			return n
		case strings.HasPrefix(f, n) && hit != "":
			return n // ambiguous
		case strings.HasPrefix(f, n):
			hit = f
		}
	}
	if hit == "" {
		return n
	}
	return hit
}

// torchrunOptions are those of torch/distributed/run.py of PyTorch 1.9 to 2.15.
var torchrunOptions = strings.Fields(`nnodes nproc-per-node rdzv-backend rdzv-endpoint rdzv-id rdzv-conf standalone max-restarts
monitor-interval start-method event-log-handler role module no-python run-path log-dir redirects tee local-ranks-filter node-rank
master-addr master-port local-addr logs-specs numa-binding signals-to-handle duplicate-stdout-filters duplicate-stderr-filters
virtual-local-rank log-line-prefix-template print-completion shutdown-timeout use-env help h`)

// strange reports an option that torchrun does not have.
func strange(f flag) bool {
	switch {
	case fact.HasHole(f.name):
		return false
	case strings.HasPrefix(f.word.Val, "--"):
		return !slices.Contains(torchrunOptions, f.name)
	}
	return !strings.ContainsAny(f.word.Val[:min(2, len(f.word.Val))], "mtrh") // -m, -t, -r, -h
}

func programOf(l *fact.Launch, rest []fact.Word) {
	if len(rest) > 0 {
		l.Program, l.Args = rest[0].Text, rest[1:]
	}
}

func (w *walker) torchrun(l *fact.Launch, args []fact.Word) {
	fs, rest, open := w.flags(args, "standalone m module no-python run-path use-env virtual-local-rank print-completion h help", map[string]string{"-m": "module", "-t": "tee", "-r": "redirects"}, torchrunOptions...)
	l.Open = open
	for _, f := range fs {
		switch f.name {
		case "nnodes":
			l.Nnodes = f.val
		case "nproc-per-node":
			l.Nproc = f.val
		case "node-rank":
			l.NodeRank = f.val
		case "rdzv-backend":
			l.Backend = f.val
		case "rdzv-endpoint":
			l.Endpoint = f.val
		case "master-addr":
			l.MasterAddr = f.val
		case "master-port":
			l.MasterPort = f.val
		case "standalone":
			l.Standalone = true
		case "no-python":
			l.NoPython = true
		}
		// The older launcher has other options, and what stands behind words that
		// are not known may belong to the program.
		if l.Kind == fact.LaunchTorchrun && !open && strange(f) {
			l.Strange = append(l.Strange, f.word)
		}
	}
	programOf(l, rest)
	if l.NoPython && len(rest) > 0 && base(rest[0].Text) == "accelerate" {
		w.launch(*l, args)
		w.command(rest, nil)
		return
	}
	w.launch(*l, args)
}

func (w *walker) accelerate(l *fact.Launch, args []fact.Word) {
	fs, rest, open := w.flags(args, "multi-gpu cpu use-deepspeed use-fsdp tpu m module no-python quiet debug mps use-megatron-lm same-network dynamo-use-dynamic use-mps-device ipex use-xpu enable-cpu-affinity fsdp-dummy dynamo-use-fullgraph use-parallelism-config h help no-local-rank", map[string]string{"-m": "module", "-q": "quiet"})
	l.Open = open
	for _, f := range fs {
		switch f.name {
		case "num-processes":
			l.Nproc = f.val
		case "num-machines":
			l.Nnodes = f.val
		case "machine-rank":
			l.NodeRank = f.val
		case "main-process-ip":
			l.MasterAddr = f.val
		case "main-process-port":
			l.MasterPort = f.val
		case "rdzv-backend":
			l.Backend = f.val
		case "config-file":
			l.Config = f.val
		case "multi-gpu":
			l.MultiGPU = true
		case "deepspeed-hostfile":
			l.Hostfile = f.val
		}
	}
	programOf(l, rest)
	w.launch(*l, args)
}

func (w *walker) deepspeed(l *fact.Launch, args []fact.Word) {
	fs, rest, open := w.flags(args, "force-multi no-python module no-local-rank no-ssh no-ssh-check save-pid elastic-training bind-cores-to-rank enable-each-rank-log-dummy h help", map[string]string{"-H": "hostfile", "-i": "include", "-e": "exclude"})
	l.Open = open
	for _, f := range fs {
		switch f.name {
		case "num-gpus", "nproc-per-node":
			l.Nproc = f.val
		case "num-nodes", "nnodes":
			l.Nnodes = f.val
		case "node-rank":
			l.NodeRank = f.val
		case "master-addr":
			l.MasterAddr = f.val
		case "master-port":
			l.MasterPort = f.val
		case "hostfile", "include", "launcher", "host":
			l.Hostfile = f.val
		}
	}
	programOf(l, rest)
	w.launch(*l, args)
}

func (w *walker) composer(l *fact.Launch, args []fact.Word) {
	fs, rest, open := w.flags(args, "m module-mode c command-mode verbose v h help", map[string]string{"-n": "nproc"})
	l.Open = open
	for _, f := range fs {
		switch f.name {
		case "nproc":
			l.Nproc = f.val
		case "world-size":
			l.Nnodes = f.val
		case "node-rank":
			l.NodeRank = f.val
		case "master-addr":
			l.MasterAddr = f.val
		case "master-port":
			l.MasterPort = f.val
		}
	}
	programOf(l, rest)
	w.launch(*l, args)
}

// placeholders finds parts of a template in live directives and the body.
func (p *parser) placeholders() {
	s := p.s
	for i := range s.Directives {
		d := &s.Directives[i]
		if t := placeholder(d.Value); t != "" {
			pos := d.ValuePos
			s.Placeholders = append(s.Placeholders, fact.Placeholder{Pos: pos, Text: t, Live: true})
		} else if d.HasValue && d.Value == "" && d.Known && (d.Name == "partition" || d.Name == "account" || d.Name == "qos") {
			s.Placeholders = append(s.Placeholders, fact.Placeholder{Pos: d.Pos, Text: d.Written + "=", Live: true})
		}
	}
	for i := range s.Directives {
		// "-A # your account" at the end of a line: the option takes the first
		// word of the next line, and nothing there is what was meant.
		d := &s.Directives[i]
		if d.HasValue && d.ValuePos.Line > d.Line && d.Col > 0 {
			if l := s.Line(d.Line); d.Col <= len(l) && strings.HasPrefix(strings.TrimSpace(strings.TrimPrefix(l[d.Col-1:], d.Written)), "#") {
				s.Placeholders = append(s.Placeholders, fact.Placeholder{Pos: d.Pos, Text: d.Written, Live: true}, fact.Placeholder{Pos: d.ValuePos, Text: d.Written, Live: true})
			}
		}
	}
	for i := range s.Refused {
		e := &s.Refused[i]
		t := placeholder(e.Text)
		if e.Kind == fact.RefuseNoValue {
			// "-A # your account": the value is left to the reader.
			if l := s.Line(e.Line); e.Col > 0 && e.Col <= len(l) && strings.HasPrefix(strings.TrimSpace(strings.TrimPrefix(l[e.Col-1:], e.Text)), "#") {
				t = e.Text
			}
		}
		if t == "" { // with blanks inside: { partition }, {{ nodes }}
			if m := blankHolder.FindStringSubmatch(s.Line(e.Line)); m != nil {
				t = m[1]
			}
		}
		if t != "" {
			s.Placeholders = append(s.Placeholders, fact.Placeholder{Pos: e.Pos, Text: t, Live: true})
		}
	}
	if n := s.FirstCmd.Line; n > 0 { // a line that is one placeholder: {sbatch_options}
		if l := strings.TrimSpace(s.Line(n)); len(l) > 2 && len(l) < 60 && l[0] == '{' && l[len(l)-1] == '}' && isName(strings.Trim(l, "{} ")) {
			s.Placeholders = append(s.Placeholders, fact.Placeholder{Pos: s.FirstCmd, Text: l})
		}
	}
	if src := s.Src[:min(len(s.Src), MaxSize)]; bytes.Contains(src, []byte("{{")) || bytes.Contains(src, []byte("{%")) {
		p.jinja()
	}
}

// blankHolder is a placeholder with blanks in it.
var blankHolder = lazyre.New(`(?:^|[^$<{])([<{]{1,2}\s*[A-Za-z][\w .-]*[>}]{1,2})`)

// jinja finds {{ x }} and {% x %} outside of what bash itself writes so.
func (p *parser) jinja() {
	s := p.s
	for n := 1; n <= s.NumLines && len(s.Placeholders) < 100; n++ {
		l := s.Line(n)
		for _, pair := range [][2]string{{"{{", "}}"}, {"{%", "%}"}} {
			i := strings.Index(l, pair[0])
			if i < 0 {
				continue
			}
			if j := strings.Index(l[i:], pair[1]); j > 0 && j < 80 && (i == 0 || l[i-1] != '$' || pair[0] == "{{") && !strings.HasPrefix(strings.TrimSpace(l), "#") {
				s.Placeholders = append(s.Placeholders, fact.Placeholder{Pos: fact.Pos{Line: n, Col: i + 1}, Text: l[i : i+j+2]})
				break
			}
		}
	}
}

// leftOpen is <NAME>, <x.y.z>, <your token>: what a template leaves to fill in.
// Words that redirections can have between them do not count: <<EOF, <(cmd), <a >b.
var leftOpen = lazyre.New(`(^|[^<&\d])([<\x{2039}\x{ab}][A-Za-z_\x{2026}][\w .:,'\x{2026}-]{0,78}[>\x{203a}\x{bb}])`)

// fillIn puts letters where <NAME> stands in the text, at the same places.
func fillIn(src string) (string, []fact.Placeholder) {
	if len(src) > 1<<20 || !strings.ContainsAny(src, "<\u2039\u00ab") {
		return "", nil
	}
	var found []fact.Placeholder
	lines := strings.Split(src, "\n")
	for n, l := range lines {
		if len(l) > 4096 || strings.HasPrefix(strings.TrimSpace(l), "#") || !strings.ContainsAny(l, "<\u2039\u00ab") {
			continue
		}
		for k := 0; k < 10; k++ {
			m := leftOpen.FindStringSubmatchIndex(l)
			if m == nil || len(found) >= 100 {
				break
			}
			a, b := m[4], m[5]
			found = append(found, fact.Placeholder{Pos: fact.Pos{Line: n + 1, Col: a + 1}, Text: l[a:b]})
			l = l[:a] + strings.Repeat("x", b-a) + l[b:]
		}
		lines[n] = l
	}
	return strings.Join(lines, "\n"), found
}

// angle finds <NAME> in the body of a script that the shell cannot read.
func (p *parser) angle() {
	s := p.s
	for n := s.Syntax.Line - 1; n <= s.Syntax.Line+1; n++ {
		l := s.Line(n)
		if strings.HasPrefix(strings.TrimSpace(l), "#") {
			continue
		}
		for i := 0; i < len(l); i++ {
			if l[i] != '<' || i+1 >= len(l) || l[i+1] == '<' || l[i+1] == ' ' || l[i+1] == '(' {
				continue
			}
			j := strings.IndexByte(l[i:], '>')
			if j > 2 && j < 80 && !strings.ContainsAny(l[i:i+j], "/$|;&") {
				s.Placeholders = append(s.Placeholders, fact.Placeholder{Pos: fact.Pos{Line: n, Col: i + 1}, Text: l[i : i+j+1]})
				return
			}
		}
	}
}

// placeholder returns the part of a value that is left to fill in: <x>, {x},
// [x], TODO_x, YOUR_x.
func placeholder(v string) string {
	if t := v[strings.LastIndexByte(v, ':')+1:]; t == "..." || t == "\u2026" || t == "???" {
		return v // --nodes=..., --gres=gpu:...
	}
	pair := func(a, b byte) string {
		i := strings.IndexByte(v, a)
		if i < 0 || i > 0 && v[i-1] == '$' {
			return ""
		}
		j := strings.IndexByte(v[i:], b)
		if j < 2 {
			return ""
		}
		in := strings.Trim(v[i+1:i+j], "<>{}[] ")
		if in == "" {
			return ""
		}
		letters := false
		for _, c := range in {
			if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' {
				letters = true
			}
		}
		if !letters {
			return "" // node[01-04], {1..4}
		}
		return v[i : i+j+1]
	}
	if t := pair('<', '>'); t != "" {
		return t
	}
	if strings.HasPrefix(v, "<") && len(v) > 1 { // <your account>: cut at the blank
		return v
	}
	if t := pair('{', '}'); t != "" && !strings.Contains(v, "$") {
		return t
	}
	if t := pair('[', ']'); t != "" && strings.HasPrefix(v, "[") {
		return t
	}
	for i := 0; i+4 <= len(v); i++ {
		if (i == 0 || v[i-1] == '_' || v[i-1] == '/' || v[i-1] == '<') && leftToFill(v[i:]) {
			return v
		}
	}
	return ""
}

// leftToFill reports whether s begins as what a reader is to replace, in any case.
func leftToFill(s string) bool {
	switch s[0] | 0x20 {
	case 't', 'y', 'f', 'c', 'r', 'x':
		for _, k := range [...]string{"TODO", "YOUR_", "YOUR-", "FIXME", "CHANGEME", "CHANGE_ME", "REPLACE_ME", "XXXX"} {
			if len(s) >= len(k) && strings.EqualFold(s[:len(k)], k) {
				return true
			}
		}
	}
	return false
}
