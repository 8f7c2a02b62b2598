// Command scripts compares what "ncclinic lint" finds with labels of people:
//
//	go run ./bench/scripts -dir /path/to/scripts -labels labels.tsv
//
// The labels are a table (tabs, "|" or commas) with a column NNN, the number or
// name with which a script's file name starts, and a column ISSUES, the ids of
// the rules that are right for it, separated by blanks, commas or semicolons;
// "-" or nothing is none. An id may carry the line and, where it is not the
// rule's own, the level: "gpu-count-mismatch@12/warning". Without a header line
// the first and the last column count. It prints precision and recall for each
// rule and each level; -levels error,warning leaves notes out, for labels that
// have none.
package main

import (
	"bufio"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"sort"
	"strconv"
	"strings"

	"github.com/ncclinic/ncclinic/internal/diag"
	"github.com/ncclinic/ncclinic/internal/lint"
	"github.com/ncclinic/ncclinic/rules"
)

func main() {
	dir := flag.String("dir", "", "folder of scripts")
	labels := flag.String("labels", "", "table of labels")
	levels := flag.String("levels", "error,warning,note", "levels that are scored")
	verbose := flag.Bool("v", false, "name the scripts that differ")
	flag.Parse()
	if err := run(*dir, *labels, *levels, *verbose); err != nil {
		fmt.Fprintln(os.Stderr, "bench/scripts:", err)
		os.Exit(1)
	}
}

// count of one rule or level.
type count struct{ tp, fp, fn int }

func (c count) String() string {
	pct := func(a, b int) string {
		if b == 0 {
			return "    -"
		}
		return fmt.Sprintf("%5.1f", 100*float64(a)/float64(b))
	}
	return fmt.Sprintf("tp %4d  fp %4d  fn %4d  precision %s  recall %s", c.tp, c.fp, c.fn, pct(c.tp, c.tp+c.fp), pct(c.tp, c.tp+c.fn))
}

func run(dir, labels, levels string, verbose bool) error {
	if dir == "" || labels == "" {
		return fmt.Errorf("-dir and -labels are needed")
	}
	scored := map[diag.Severity]bool{}
	for _, l := range strings.Split(levels, ",") {
		s := diag.Severity(strings.TrimSpace(l))
		if s != diag.Error && s != diag.Warning && s != diag.Note {
			return fmt.Errorf("-levels: %q is none of error, warning, note", l)
		}
		scored[s] = true
	}
	base, err := rules.Load(rules.Embedded(), "bench", "lint")
	if err != nil {
		return err
	}
	want, err := readLabels(labels, func(id string) diag.Severity {
		if r := base.Set().ByID(id); r != nil {
			return r.Severity
		}
		return ""
	})
	if err != nil {
		return err
	}
	ents, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	rule, level := map[string]*count{}, map[string]*count{}
	get := func(m map[string]*count, k string) *count {
		if m[k] == nil {
			m[k] = &count{}
		}
		return m[k]
	}
	n, right, alarms := 0, 0, 0
	for _, e := range ents {
		w, ok := labelOf(want, e.Name())
		if !ok || e.IsDir() {
			continue
		}
		n++
		src, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			return err
		}
		got := map[string]place{}
		r := lint.File(e.Name(), src, lint.Options{Set: base.Set()})
		errs := 0
		for _, f := range r.Findings {
			if f.Severity == diag.Error {
				errs++
			}
			if g, ok := got[f.ID]; !ok || f.Severity == diag.Error && g.sev != diag.Error {
				got[f.ID] = place{f.Where[0].Line, f.Severity}
			}
		}
		if len(w) == 0 {
			right++
			if errs > 0 {
				alarms++
			}
		}
		for _, id := range union(got, w) {
			// The level of a pair is what the linter says, else what the label says.
			p, hit := got[id]
			label, labelled := w[id]
			if !hit {
				p = label
			}
			if !scored[p.sev] {
				continue
			}
			what := ""
			for _, c := range []*count{get(rule, id), get(level, string(p.sev))} {
				switch {
				case hit && labelled:
					c.tp++
				case hit:
					c.fp++
					what = "not labelled"
				default:
					c.fn++
					what = "missed"
				}
			}
			if verbose && what != "" {
				fmt.Printf("%s:%d\t%s\t%s\t%s\n", e.Name(), p.line, p.sev, id, what)
			}
			if verbose && hit && labelled && label.sev != p.sev {
				fmt.Printf("%s:%d\t%s\t%s\tlabelled as %s\n", e.Name(), p.line, p.sev, id, label.sev)
			}
		}
	}
	for _, m := range []map[string]*count{rule, level} {
		var ks []string
		for k := range m {
			ks = append(ks, k)
		}
		sort.Strings(ks)
		for _, k := range ks {
			fmt.Printf("%-34s %s\n", k, *m[k])
		}
		fmt.Println()
	}
	fmt.Printf("%d scripts with a label; %d labelled right, %d of them with an error\n", n, right, alarms)
	return nil
}

// place of a finding or a label: line 0 is not said.
type place struct {
	line int
	sev  diag.Severity
}

func union(a, b map[string]place) []string {
	var out []string
	for k := range a {
		out = append(out, k)
	}
	for k := range b {
		if _, ok := a[k]; !ok {
			out = append(out, k)
		}
	}
	sort.Strings(out)
	return out
}

// labelOf finds the label of a file: its name is the key, or starts with it.
func labelOf(m map[string]map[string]place, name string) (map[string]place, bool) {
	stem := strings.TrimSuffix(name, filepath.Ext(name))
	for _, k := range []string{name, stem} {
		if w, ok := m[k]; ok {
			return w, true
		}
	}
	i := 0
	for i < len(stem) && (stem[i] >= '0' && stem[i] <= '9') {
		i++
	}
	w, ok := m[stem[:i]]
	return w, ok && i > 0
}

// idWord is a rule with its line and level: "missing-rdzv@12/error".
var idWord = regexp.MustCompile(`([a-z][a-z0-9]*(?:-[a-z0-9]+)*)(?:@([0-9]+))?(?:/(error|warning|note))?`)

// readLabels reads the table; known returns the level of a rule, "" for what is none.
func readLabels(name string, known func(string) diag.Severity) (map[string]map[string]place, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	out := map[string]map[string]place{}
	key, issues := 0, -1
	sc := bufio.NewScanner(f)
	sc.Buffer(nil, 1<<20)
	for sc.Scan() {
		// An empty last column is a label too: nothing is wrong.
		l := strings.Trim(sc.Text(), " \r")
		if strings.Trim(l, "|-: \t") == "" {
			continue
		}
		sep := "\t"
		if !strings.Contains(l, sep) {
			if sep = "|"; !strings.Contains(l, sep) {
				sep = ","
			}
		}
		c := strings.Split(strings.Trim(l, "|"), sep)
		for i := range c {
			c[i] = strings.TrimSpace(c[i])
		}
		if strings.Contains(l, "ISSUES") {
			for i := range c {
				switch strings.ToUpper(c[i]) {
				case "NNN":
					key = i
				case "ISSUES":
					issues = i
				}
			}
			continue
		}
		k := issues
		if k < 0 || k >= len(c) {
			k = len(c) - 1
		}
		if key >= len(c) || k == key {
			continue
		}
		w := map[string]place{}
		for _, m := range idWord.FindAllStringSubmatch(c[k], -1) {
			sev := known(m[1])
			if sev == "" {
				continue
			}
			if m[3] != "" {
				sev = diag.Severity(m[3])
			}
			line, _ := strconv.Atoi(m[2])
			if old, ok := w[m[1]]; !ok || old.sev != diag.Error {
				w[m[1]] = place{line, sev}
			}
		}
		out[c[key]] = w
	}
	return out, sc.Err()
}
