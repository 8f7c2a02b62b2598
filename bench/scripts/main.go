// Command scripts compares what "ncclinic lint" finds with labels of people:
//
//	go run ./bench/scripts -dir /path/to/scripts -labels labels.tsv
//
// The labels are a table (tabs, "|" or commas) with a column NNN, the number or
// name with which a script's file name starts, and a column ISSUES, the ids of
// the rules that are right for it, separated by blanks, commas or semicolons;
// "-" is none. Without a header line the first and the last column count. It
// prints precision and recall for each rule and each level.
package main

import (
	"bufio"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"sort"
	"strings"

	"github.com/ncclinic/ncclinic/internal/diag"
	"github.com/ncclinic/ncclinic/internal/lint"
	"github.com/ncclinic/ncclinic/rules"
)

func main() {
	dir := flag.String("dir", "", "folder of scripts")
	labels := flag.String("labels", "", "table of labels")
	verbose := flag.Bool("v", false, "name the scripts that differ")
	flag.Parse()
	if err := run(*dir, *labels, *verbose); err != nil {
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

func run(dir, labels string, verbose bool) error {
	if dir == "" || labels == "" {
		return fmt.Errorf("-dir and -labels are needed")
	}
	base, err := rules.Load(rules.Embedded(), "bench", "lint")
	if err != nil {
		return err
	}
	want, err := readLabels(labels, func(id string) bool { return base.Set().ByID(id) != nil })
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
		got, sev := map[string]bool{}, map[string]diag.Severity{}
		r := lint.File(e.Name(), src, lint.Options{Set: base.Set()})
		errs := 0
		for _, f := range r.Findings {
			got[f.ID] = true
			sev[f.ID] = f.Severity
			if f.Severity == diag.Error {
				errs++
			}
		}
		if len(w) == 0 {
			right++
			if errs > 0 {
				alarms++
			}
		}
		for id := range union(got, w) {
			s := string(sev[id])
			if s == "" {
				if x := base.Set().ByID(id); x != nil {
					s = string(x.Severity)
				}
			}
			what := ""
			switch {
			case got[id] && w[id]:
				get(rule, id).tp++
				get(level, s).tp++
			case got[id]:
				get(rule, id).fp++
				get(level, s).fp++
				what = "not labelled"
			default:
				get(rule, id).fn++
				get(level, s).fn++
				what = "missed"
			}
			if verbose && what != "" {
				fmt.Printf("%s\t%s\t%s\t%s\n", e.Name(), s, id, what)
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

func union(a, b map[string]bool) map[string]bool {
	m := map[string]bool{}
	for k := range a {
		m[k] = true
	}
	for k := range b {
		m[k] = true
	}
	return m
}

// labelOf finds the label of a file: its name is the key, or starts with it.
func labelOf(m map[string]map[string]bool, name string) (map[string]bool, bool) {
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

var idWord = regexp.MustCompile(`[a-z][a-z0-9]*(?:-[a-z0-9]+)*`)

func readLabels(name string, known func(string) bool) (map[string]map[string]bool, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	out := map[string]map[string]bool{}
	key, issues := 0, -1
	sc := bufio.NewScanner(f)
	sc.Buffer(nil, 1<<20)
	for sc.Scan() {
		l := strings.TrimSpace(sc.Text())
		if l == "" || strings.Trim(l, "|-: ") == "" {
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
		w := map[string]bool{}
		for _, id := range idWord.FindAllString(c[k], -1) {
			if known(id) {
				w[id] = true
			}
		}
		out[c[key]] = w
	}
	return out, sc.Err()
}
