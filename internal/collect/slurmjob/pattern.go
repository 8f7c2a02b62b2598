package slurmjob

import (
	"regexp"
	"strings"

	"github.com/ncclinic/ncclinic/internal/fact"
)

// Names are what the %-patterns of --output stand for. Empty ones are not
// known: they differ between the tasks of a step, or nobody told.
type Names struct {
	Job   string // %j
	Array string // %A
	Task  string // %a
	Name  string // %x
	User  string // %u
	Host  string // %N
	Step  string // %s
	Node  string // %n: index of the node
	Rank  string // %t
}

// namesOf takes the names of a job; those of its batch step are known too.
func namesOf(j *fact.Job) Names {
	n := Names{Job: j.Raw, Array: j.Array, Task: j.Task, Name: j.Name.Or(""), User: j.User.Or("")}
	if n.Job == "" {
		n.Job = j.ID
	}
	if n.Array == "" { // what Slurm writes for a job that is no array
		n.Array, n.Task = n.Job, "4294967294"
	}
	return n
}

// batch are the names as the batch step has them.
func (n Names) batch(host string) Names {
	n.Host, _, _ = strings.Cut(host, ".")
	n.Step, n.Node, n.Rank = "batch", "0", "0"
	return n
}

// part is a piece of an expanded pattern: text, or something that any of the
// expression may stand for.
type part struct {
	text string
	any  string // regular expression; "": text
}

// expand puts names into a pattern as sbatch and srun do: %j, %x, %A_%a, %5t
// (zeros in front), %% and a backslash that switches patterns off.
func expand(pattern string, n Names) []part {
	if strings.Contains(pattern, `\`) {
		return []part{{text: strings.ReplaceAll(pattern, `\`, "")}}
	}
	var out []part
	text := func(s string) {
		if len(out) > 0 && out[len(out)-1].any == "" {
			out[len(out)-1].text += s
			return
		}
		out = append(out, part{text: s})
	}
	for i := 0; i < len(pattern); i++ {
		if pattern[i] != '%' {
			text(pattern[i : i+1])
			continue
		}
		k := i + 1
		width := 0
		for k < len(pattern) && pattern[k] >= '0' && pattern[k] <= '9' && k-i < 4 {
			width = width*10 + int(pattern[k]-'0')
			k++
		}
		if k >= len(pattern) {
			text(pattern[i:])
			break
		}
		val, any := "", ""
		switch pattern[k] {
		case '%':
			text("%")
			i = k
			continue
		case 'j':
			val, any = n.Job, `\d+`
		case 'J':
			if val = n.Job; n.Step != "" && n.Step != "batch" {
				val += "." + n.Step
			}
			any = regexp.QuoteMeta(n.Job) + `(?:\.\w+)?`
			if n.Step == "" {
				val = ""
			}
		case 'A':
			val, any = n.Array, `\d+`
		case 'a':
			val, any = n.Task, `\d+`
		case 'b':
			if val = n.Task; val != "" {
				val = val[len(val)-1:]
			}
			any = `\d`
		case 'x':
			val, any = n.Name, `[^/]*`
		case 'u':
			val, any = n.User, `[^/]+`
		case 'N':
			val, any = n.Host, `[\w-]+`
		case 'n':
			val, any = n.Node, `\d+`
		case 's':
			val, any = n.Step, `\w+`
		case 't':
			val, any = n.Rank, `\d+`
		default: // not a pattern: it stays as it is
			text(pattern[i : k+1])
			i = k
			continue
		}
		i = k
		if val == "" {
			out = append(out, part{any: any})
			continue
		}
		if strings.IndexByte("xuNs", pattern[k]) < 0 {
			val = strings.Repeat("0", max(0, min(width, 10)-len(val))) + val
		}
		text(val)
	}
	return out
}

// Expand puts names into a pattern, "*" for what is not known.
func Expand(pattern string, n Names) string {
	var b strings.Builder
	for _, p := range expand(pattern, n) {
		if p.any != "" {
			b.WriteByte('*')
		}
		b.WriteString(p.text)
	}
	return b.String()
}
