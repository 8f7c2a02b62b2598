package logs

import (
	"strings"

	"github.com/ncclinic/ncclinic/internal/fact"
	"github.com/ncclinic/ncclinic/internal/lazyre"
)

var prompt = lazyre.New(`^(?:\(([\w.+/-]+)\) )?(?:\[([\w.-]+)@([\w.-]+)(?:[ :][^\]]*)?\] ?[$#%] ?|([\w.-]+)@([\w.-]+):[^\s$#]*[$#] ?|([a-z][\w-]*)\$ |\$ |PS [A-Za-z]:[^>]*> ?|[A-Za-z]:\\[^>]*>)(\S.*)?$`)

const maxCommands = 4000

// session recognises command lines of a pasted terminal session and of
// "set -x", and reports whether the line is one.
func (r *reader) session(text, msg string, pl fact.Place) bool {
	c := text[0]
	if c == '+' && len(text) > 2 && (text[1] == ' ' || text[1] == '+') {
		cmd := strings.TrimLeft(text, "+ ")
		r.command(fact.ShellCmd{Place: pl, Text: cmd, Via: "xtrace"})
		return true
	}
	if c != '$' && c != '(' && c != '[' && c != 'P' && !(c >= 'a' && c <= 'z') && !(c >= 'A' && c <= 'Z') {
		return false
	}
	if !strings.ContainsAny(fact.Clip(text, 120), "$#>%") {
		return false
	}
	m := prompt.FindStringSubmatch(text)
	if m == nil {
		return false
	}
	host := m[3] + m[5] + m[6]
	if m[7] == "" && host == "" {
		return false
	}
	cmd := m[7]
	if strings.HasPrefix(cmd, "#") && !strings.HasPrefix(text, "$ #") {
		return false
	}
	if host != "" {
		r.nodes[host] = true
		pl.Node = host
	}
	r.command(fact.ShellCmd{Place: pl, Text: cmd, Host: host, Env: m[1], Via: "prompt"})
	return true
}

var (
	showsSource = lazyre.New(`^(?:cat|less|more|head|tail|sed|bat|nl|awk|grep|rg|git (?:diff|show|log|grep)|diff|vim?|nano)\b.*\.(?:py|sh|sbatch|slurm|yaml|yml|json|toml|md|rst|txt\.j2|c|cc|cpp|cu|h|bash|job|cfg|ini)\b`)
	showsScript = lazyre.New(`^(?:cat|less|more|head|bat)\b.*?(\S+\.(?:sh|sbatch|slurm|bash|job))\b`)
	// a command that shows nothing itself, or another one behind it that runs something
	goesOn    = lazyre.New(`^(?:sed|perl) (?:\S+ )*-[a-z]*i|(?:;|&&) *(?:bash|sh|srun|sbatch|python\d?|torchrun|accelerate|deepspeed|mpirun|\./|nvidia-smi|ls|env|ulimit|df|free)\b`)
	showsHelp = lazyre.New(`(?:^man |--help\b|\s-h\b|^help |\bgit (?:log|diff|show)\b)`)
)

func (r *reader) command(c fact.ShellCmd) {
	c.Text = fact.Clip(r.mask(c.Text), 1000)
	if len(r.out.Commands) < maxCommands {
		r.out.Commands = append(r.out.Commands, c)
	}
	first := c.Text
	if i := strings.IndexAny(first, "|;&"); i > 0 {
		first = first[:i]
	}
	r.quotedBlock = (showsSource.MatchString(first) || showsHelp.MatchString(first)) && !goesOn.MatchString(c.Text)
	r.shown = 0
	if m := showsScript.FindStringSubmatch(first); m != nil && len(r.out.Texts) < maxTexts {
		r.out.Texts = append(r.out.Texts, fact.SourceText{File: r.file, Kind: fact.KindScript, From: c.Line + 1})
		r.shown = len(r.out.Texts)
	}
	r.list.Command(c)
	clear(r.traces)
}
