package lint

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ncclinic/ncclinic/internal/diag"
	"github.com/ncclinic/ncclinic/internal/testenv"
	"github.com/ncclinic/ncclinic/rules"
	"github.com/ncclinic/ncclinic/rules/lint"
)

func set(tb testing.TB) *diag.Set {
	tb.Helper()
	base, err := rules.Load(rules.Embedded(), "test", "lint")
	if err != nil {
		tb.Fatal(err)
	}
	return base.Set()
}

func ids(r Report) string {
	var out []string
	for _, f := range r.Findings {
		out = append(out, f.ID)
	}
	return strings.Join(out, " ")
}

const two = "#!/bin/bash\n#SBATCH --mem=8\nexport CUDA_LAUNCH_BLOCKING=1\npython train.py\n"

func TestIgnoreComments(t *testing.T) {
	s := set(t)
	for name, c := range map[string]struct{ src, want string }{
		"none":      {two, "mem-unit-missing cuda-launch-blocking"},
		"same line": {strings.Replace(two, "=8", "=8 # ncclinic: ignore=mem-unit-missing", 1), "cuda-launch-blocking"},
		"above":     {strings.Replace(two, "export", "# ncclinic: ignore=cuda-launch-blocking\nexport", 1), "mem-unit-missing"},
		"file":      {two + "# ncclinic: ignore-file=mem-unit-missing,cuda-launch-blocking\n", ""},
		"all":       {strings.Replace(two, "=8", "=8 # ncclinic: ignore", 1), "cuda-launch-blocking"},
		"other":     {strings.Replace(two, "=8", "=8 # ncclinic: ignore=crlf", 1), "mem-unit-missing cuda-launch-blocking"},
	} {
		if got := ids(File("x", []byte(c.src), Options{Set: s})); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

func TestConfig(t *testing.T) {
	s := set(t)
	known := func(id string) bool { return s.ByID(id) != nil }
	c, err := ReadConfig([]byte("slurm: \"22.05\"\nrules: {mem-unit-missing: error, cuda-launch-blocking: off, no-set-e: on}\nignore:\n  - {files: \"old/**\", rules: [all]}\n"), "/w/.ncclinic.yaml", known)
	if err != nil {
		t.Fatal(err)
	}
	r := File("/w/a.sh", []byte(two), Options{Set: s, Config: c})
	if got := ids(r); got != "no-set-e mem-unit-missing" || r.Findings[1].Severity != diag.Error {
		t.Errorf("%s %+v", got, r.Findings)
	}
	if got := ids(File("/w/old/a.sh", []byte(two), Options{Set: s, Config: c})); got != "" {
		t.Errorf("ignored folder: %s", got)
	}
	site := "#!/bin/bash\n#SBATCH --workdir=/x\ntrue\n"
	if got := ids(File("x", []byte(site), Options{Set: s})); got != "removed-sbatch-option" {
		t.Errorf("removed option: %s", got)
	}
	if got := ids(File("x", []byte(site), Options{Set: s, Config: &Config{SiteOptions: []string{"--workdir"}}})); got != "" {
		t.Errorf("option of the site: %s", got)
	}
	for _, bad := range []string{"rules: {no-such-rule: off}", "rules: {crlf: maybe}", "slurm: new", "colour: red", "ignore: [{files: \"[\", rules: [all]}]", "rules: ["} {
		if _, err := ReadConfig([]byte(bad), "c", known); err == nil {
			t.Errorf("%s: no error", bad)
		}
	}
	if _, err := ReadConfig(nil, "c", known); err != nil {
		t.Errorf("empty: %v", err)
	}
}

// TestFix holds that what the safe edits leave has none of the findings that
// they are for, also when one edit reveals another.
func TestFix(t *testing.T) {
	s := set(t)
	src := "\n#!/bin/bash\r\n #SBATCH --nodes=2\r\nset -e\r\n#SBATCH --export=A=1 \r\nNCCL_DEBUG=WARN\r\nsrun python t.py\r\n"
	got := string(Fix("x", []byte(src), Options{Set: s}).Src)
	want := "#!/bin/bash\n#SBATCH --nodes=2\n#SBATCH --export=ALL,A=1\nset -e\nexport NCCL_DEBUG=WARN\nsrun python t.py\n"
	if strings.ReplaceAll(got, " \n", "\n") != strings.Replace(want, "#!/bin/bash\n", "#!/bin/bash\n\n", 1) && strings.ReplaceAll(got, " \n", "\n") != want {
		t.Errorf("%q", got)
	}
	for _, f := range File("x", []byte(got), Options{Set: s}).Findings {
		if len(f.Edits) > 0 || f.Severity == diag.Error {
			t.Errorf("%s is left at line %d", f.ID, f.Where[0].Line)
		}
	}
}

// TestFixSays holds that edits are named, that those which change what is
// submitted say so, and that none is made that brings another finding up.
func TestFixSays(t *testing.T) {
	s := set(t)
	const head = "#!/bin/bash\n"
	for name, c := range map[string]struct{ src, want, done, left, adds, drops string }{
		"moved":       {head + "set -e\n#SBATCH --array=0-3\n#SBATCH -d afterok:7\ntrue\n", head + "#SBATCH --array=0-3\n#SBATCH -d afterok:7\nset -e\ntrue\n", "sbatch-after-command", "", "--array=0-3|-d afterok:7", ""},
		"conflict":    {head + "#SBATCH --mem=8G\nset -e\n#SBATCH --mem=64G\ntrue\n", "", "", "sbatch-after-command", "", ""},
		"repeated":    {head + "#SBATCH --mem=8G\nset -e\n#SBATCH --mem=8G\ntrue\n", "", "", "", "", ""},
		"would break": {head + "set -e\n#SBATCH --output=$X/%j\nNCCL_DEBUG=WARN\nsrun python t.py\n", head + "set -e\n#SBATCH --output=$X/%j\nexport NCCL_DEBUG=WARN\nsrun python t.py\n", "env-var-not-exported", "sbatch-after-command", "", ""},
		"renamed":     {head + "#SBATCH --tine=1:00:00\ntrue\n", head + "#SBATCH --time=1:00:00\ntrue\n", "option-typo", "", "--time=1:00:00", ""},
		"nothing":     {head + "true\n", "", "", "", "", ""},
	} {
		m := Fix("x.sh", []byte(c.src), Options{Set: s})
		rules := func(cs []Change) string {
			var out []string
			for _, x := range cs {
				out = append(out, x.Rule)
			}
			return strings.Join(out, " ")
		}
		if c.want == "" {
			c.want = c.src
		}
		if string(m.Src) != c.want || rules(m.Done) != c.done || rules(m.Left) != c.left || strings.Join(m.Adds, "|") != c.adds || strings.Join(m.Drops, "|") != c.drops {
			t.Errorf("%s: %q done %q left %q adds %q drops %q", name, m.Src, rules(m.Done), rules(m.Left), m.Adds, m.Drops)
		}
	}
}

// TestDiff holds that patch(1) makes the new version of the old one.
func TestDiff(t *testing.T) {
	patch, err := exec.LookPath("patch")
	if err != nil {
		testenv.Need(t, "patch", "apt-get install patch")
	}
	long := strings.Repeat("same\n", 20)
	for name, c := range map[string][2]string{
		"change":     {"a\nb\nc\n", "a\nB\nc\n"},
		"insert":     {"a\nb\n", "x\na\nb\ny\n"},
		"delete":     {"a\nb\nc\n", "b\n"},
		"far apart":  {"1\n" + long + "2\n", "one\n" + long + "two\n"},
		"no newline": {"a\nb", "a\nB"},
		"empty":      {"", "a\n"},
		"moved":      {"a\nb\nc\nd\n", "c\na\nb\nd\n"},
		// No line with a secret is in a patch, which applies nevertheless.
		"secret below":   {"a\nb\nc\nd\nTOKEN=pa55word\nz\n", "a\nb\nc\nD\nTOKEN=pa55word\nz\n"},
		"secret above":   {"a\nTOKEN=pa55word\nd\ne\nf\ng\nh\n", "a\nTOKEN=pa55word\nD\ne\nf\ng\nh\n"},
		"secret between": {"a\nb\nTOKEN=pa55word\nd\ne\n", "A\nb\nTOKEN=pa55word\nd\nE\n"},
		"secret two off": {"a\nb\nc\nd\nx\ny\nTOKEN=pa55word\nz\n", "a\nb\nc\nD\nx\ny\nTOKEN=pa55word\nz\n"},
		"moved above":    {"a\nTOKEN=pa55word\nb\nc\nd\n", "a\nc\nTOKEN=pa55word\nb\nd\n"},
		"secrets around": {"a\nTOKEN=pa55word\nb\nTOKEN=pa55word\nd\n", "a\nTOKEN=pa55word\nTOKEN=pa55word\nd\nx\n"},
		"key":            {"a\nK='-----BEGIN PRIVATE KEY-----\npa55word\n-----END PRIVATE KEY-----'\nb\n", "a\nK='-----BEGIN PRIVATE KEY-----\npa55word\n-----END PRIVATE KEY-----'\nc\n"},
	} {
		f := filepath.Join(t.TempDir(), "f")
		if err := os.WriteFile(f, []byte(c[0]), 0o644); err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command(patch, f)
		text, hidden := Diff("f", []byte(c[0]), []byte(c[1]))
		cmd.Stdin = strings.NewReader(text)
		out, err := cmd.CombinedOutput()
		got, _ := os.ReadFile(f)
		if err != nil || !bytes.Equal(got, []byte(c[1])) || bytes.Contains(out, []byte("fuzz")) || bytes.Contains(out, []byte("offset")) {
			t.Errorf("%s: %v %s: %q\n%s", name, err, out, got, text)
		}
		if hidden != nil || strings.Contains(text, "pa55") || strings.Contains(text, "***") {
			t.Errorf("%s: %v\n%s", name, hidden, text)
		}
	}
	if text, _ := Diff("f", []byte("a"), []byte("a")); text != "" {
		t.Error("no difference is no patch")
	}
	if text, hidden := Diff("f", []byte("a\n TOKEN=pa55word\nb\n"), []byte("A\nTOKEN=pa55word\nb\n")); text != "" || len(hidden) != 1 || hidden[0] != 2 {
		t.Errorf("a change of a line with a secret: %v\n%s", hidden, text)
	}
}

func TestCandidate(t *testing.T) {
	for name, c := range map[string]struct {
		head string
		want bool
	}{"a.sbatch": {"", true}, "a.sh": {"#!/bin/bash\n#SBATCH -N 1", true}, "b.sh": {"#!/bin/bash\nls", false}, "c.py": {"#SBATCH", false}, "run": {"#!/bin/sh\n#SBATCH -n 1", true}} {
		if got := Candidate(name, []byte(c.head)); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func FuzzFile(f *testing.F) {
	base, err := rules.Load(rules.Embedded(), "fuzz", "lint")
	if err != nil {
		f.Fatal(err)
	}
	f.Add([]byte(two))
	f.Add([]byte("#!/bin/sh\n #SBATCH --nodes = 2\nset -u\n#SBATCH -o ~/x\nsrun torchrun --nnodes=2 --node_rank=$SLURM_NODEID t.py | tee l &\n"))
	f.Add([]byte("\xef\xbb\xbf#!/bin/bash\r\n#SBATCH --gres=gpu:2 --mem=4\r\nsource activate x\r\nport=$RANDOM\r\n[ -z \"$5\"]\r\n"))
	f.Add([]byte("#SBATCH-XXXXX")) // a placeholder behind a letter that is no option
	all := func(string) bool { return true }
	f.Fuzz(func(t *testing.T, src []byte) {
		r := File("f", src, Options{Set: base.Set()})
		for _, x := range r.Findings {
			if w := x.Where[0]; w.Line < 1 || w.Col < 1 {
				t.Fatalf("%s at %+v", x.ID, w)
			}
			for _, e := range x.Edits {
				if e.From < 0 || e.To < e.From || e.To > len(src) {
					t.Fatalf("%s: edit %+v of %d bytes", x.ID, e, len(src))
				}
			}
		}
		lint.Run(base.Set(), r.Script, lint.Options{Enable: all})
		Fix("f", src, Options{Set: base.Set()})
	})
}
