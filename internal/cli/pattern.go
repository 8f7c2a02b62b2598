package cli

import (
	"path/filepath"
	"regexp"
	"sort"
	"strconv"
	"strings"
)

// origin is what the name of a file says of who wrote it.
type origin struct {
	node string
	task *int // of the step, where srun wrote one file for each
}

// match is a file that a pattern found.
type match struct {
	path string
	origin
}

// expand finds the files of a pattern: shell globs, and the names that sbatch
// and srun take for --output, such as slurm-%j-%t.out. There %t is the task and
// %N the node, so that their files need no other label.
func expand(pattern string) []match {
	var glob, re strings.Builder
	re.WriteString("^")
	task, node, groups := 0, 0, 0
	meta := strings.ContainsAny(pattern, "*?[") // what a glob matched is not told apart
	for i := 0; i < len(pattern); i++ {
		c := pattern[i]
		j := i + 1
		for j < len(pattern) && pattern[j] >= '0' && pattern[j] <= '9' { // %3t: zeros in front
			j++
		}
		switch {
		case c == '%' && j < len(pattern) && strings.IndexByte("AabJjNnstux", pattern[j]) >= 0:
			glob.WriteByte('*')
			groups++
			switch pattern[j] {
			case 't':
				re.WriteString(`(\d+)`)
				task = groups
			case 'N':
				re.WriteString(`([^/]+?)`)
				node = groups
			case 'x', 'u':
				re.WriteString(`([^/]+?)`)
			default:
				re.WriteString(`([\w.+]+?)`)
			}
			i = j
		case strings.HasPrefix(pattern[i:], "%%"):
			glob.WriteByte('%')
			re.WriteByte('%')
			i++
		default:
			glob.WriteByte(c)
			re.WriteString(regexp.QuoteMeta(pattern[i : i+1]))
		}
	}
	names, err := filepath.Glob(glob.String())
	if err != nil {
		return nil
	}
	sort.Strings(names)
	var who *regexp.Regexp
	if task+node > 0 && !meta {
		who, _ = regexp.Compile(re.String() + "$")
	}
	out := make([]match, 0, len(names))
	for _, name := range names {
		x := match{path: name}
		if who != nil {
			m := who.FindStringSubmatch(name)
			if m == nil {
				continue // * matched more than the field can hold
			}
			if task > 0 && len(m[task]) < 8 {
				n, _ := strconv.Atoi(m[task])
				x.task = &n
			}
			if node > 0 {
				x.node = m[node]
			}
		}
		out = append(out, x)
	}
	return out
}
