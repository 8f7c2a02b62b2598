package cli

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// runLint runs one command line and returns the exit status and both streams.
func runLint(t *testing.T, stdin string, args ...string) (int, string, string) {
	t.Helper()
	var out, errs bytes.Buffer
	code := Main(append([]string{"lint"}, args...), Streams{In: strings.NewReader(stdin), Out: &out, Err: &errs,
		Getenv: func(k string) string { return map[string]string{"LANG": "C", "NCCLINIC_NO_SCONTROL": "1"}[k] }})
	return code, out.String(), errs.String()
}

const badScript = "#!/bin/bash\n#SBATCH --mem=8\nset -e\n#SBATCH --job-name=è<&\"late\nexport HF_TOKEN=hf_aB3dE5gH7jK9mN1pQ3sT5vX7zA9cE1gI3k\nexport NCCL_DEBUG=INFO\npython train.py\n"

// A log or a program is named as what it is not; what is a script is still read.
func TestLintForeign(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"slurm-1.out": "Traceback (most recent call last):\n  File \"a.py\", line 3\nRuntimeError: (x\n", "prog": "\x7fELF\x02\x01\x00\x00(", "good": badScript, "part": "srun python t.py\n", "lib.sh": "f() { :; }\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"slurm-1.out", "prog"} {
		code, out, errs := runLint(t, "", filepath.Join(dir, name))
		if code != exitUsage || out != "" || !strings.Contains(errs, name+": is not a batch script") {
			t.Errorf("%s: exit status %d\n%s%s", name, code, out, errs)
		}
	}
	for name, c := range map[string]struct{ text, want string }{
		"none.sbatch": {"", "is empty"},
		"blank.sh":    {" \n\n", "is empty"},
		"job.log":     {"[2026-01-02 10:00:00] start\ntorchrun --nproc_per_node=4 train.py\nepoch 1\n", "a log: ncclinic explain"},
		"nccl.txt":    {"srun torchrun --nproc_per_node=4 train.py\nn1:12:34 [0] NCCL INFO Bootstrap : Using ib0\n", "a log: ncclinic explain"},
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(c.text), 0o666); err != nil {
			t.Fatal(err)
		}
		if code, out, errs := runLint(t, "", filepath.Join(dir, name)); code != exitUsage || out != "" || !strings.Contains(errs, c.want) {
			t.Errorf("%s: exit status %d\n%s%s", name, code, out, errs)
		}
	}
	for _, name := range []string{"part", "lib.sh"} {
		if code, out, errs := runLint(t, "", filepath.Join(dir, name)); code != 0 || errs != "" {
			t.Errorf("%s: exit status %d\n%s%s", name, code, out, errs)
		}
	}
	code, out, errs := runLint(t, "", filepath.Join(dir, "slurm-1.out"), filepath.Join(dir, "good"))
	if code != exitUsage || !strings.Contains(out, "sbatch-after-command") || !strings.Contains(errs, "slurm-1.out") {
		t.Errorf("both: exit status %d\n%s%s", code, out, errs)
	}
}

// A folder for the output that is there needs no warning, beside the script or under --chdir.
func TestLintOutputDir(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "logs"), 0o777); err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]bool{
		"#SBATCH -o logs/%j\n":                                         false,
		"#SBATCH -o late/%j\n":                                         true,
		"#SBATCH -o logs/%j\n#SBATCH -D /nowhere/at/all\n":             true,
		"#SBATCH -o ../logs/%j\n#SBATCH -D " + dir + "/logs\n":         false,
		"#SBATCH -o " + dir + "/logs/%j\n#SBATCH -D /nowhere/at/all\n": false,
	} {
		name := filepath.Join(dir, "t.sbatch")
		if err := os.WriteFile(name, []byte("#!/bin/bash\n"+text+"srun python t.py\n"), 0o666); err != nil {
			t.Fatal(err)
		}
		_, out, _ := runLint(t, "", "--slurm-version", "22.05", name)
		if got := strings.Contains(out, "output-dir-may-not-exist"); got != want {
			t.Errorf("%s: %v\n%s", text, got, out)
		}
	}
}

func TestLintFormats(t *testing.T) {
	code, text, _ := runLint(t, badScript, "-")
	if code != exitFound {
		t.Errorf("exit status %d", code)
	}
	for _, want := range []string{"<stdin>:4:1: error: ", "[sbatch-after-command]", "    4 | #SBATCH --job-name", "\n        ^\n", "2 errors, 1 warning in 1 script; 1 note"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	for _, format := range []string{"text", "json", "sarif", "github", "checkstyle"} {
		code, out, errs := runLint(t, badScript, "--format", format, "-v", "--notes", "-")
		if code != exitFound || errs != "" {
			t.Errorf("%s: exit status %d, %s", format, code, errs)
		}
		if strings.Contains(out, "hf_aB3dE5g") {
			t.Errorf("%s shows the secret:\n%s", format, out)
		}
		for _, id := range []string{"sbatch-after-command", "mem-unit-missing", "secret-in-script", "nccl-debug-hard-coded"} {
			if !strings.Contains(out, id) {
				t.Errorf("%s: no %s", format, id)
			}
		}
	}
}

func TestLintJSON(t *testing.T) {
	_, out, _ := runLint(t, badScript, "--format=json", "-")
	var rep struct {
		Schema, Verdict string
		Cause           *string
		Findings        []struct {
			ID, Cause, Severity, Title, Message string
			Where                               []struct {
				File      string
				Line, Col int
			}
			Fixes []struct{ Note string }
		}
	}
	if err := json.Unmarshal([]byte(out), &rep); err != nil {
		t.Fatal(err)
	}
	if rep.Schema != "ncclinic.report/v1" || rep.Verdict != "broken" || rep.Cause != nil || len(rep.Findings) != 4 {
		t.Errorf("%+v", rep)
	}
	f := rep.Findings[1]
	if f.ID != "sbatch-after-command" || f.Cause != "slurm-directive-ignored" || f.Where[0].Line != 4 || f.Where[0].Col != 1 || f.Title == "" || f.Message == "" || f.Fixes[0].Note == "" {
		t.Errorf("%+v", f)
	}
	if _, out, _ := runLint(t, "#!/bin/bash\n#SBATCH -N 1\ntrue\n", "--format=json", "-"); !strings.Contains(out, `"verdict": "ok"`) || strings.Contains(out, "null,\n \"findings\": null") {
		t.Errorf("%s", out)
	}
}

// TestLintSARIF holds what GitHub's upload asks for.
func TestLintSARIF(t *testing.T) {
	_, out, _ := runLint(t, badScript, "--format=sarif", "--stdin-name=jobs/a b.sbatch", "-")
	type msg struct{ Text string }
	var log struct {
		Version string
		Runs    []struct {
			Tool struct {
				Driver struct {
					Name  string
					Rules []struct {
						ID                                      string
						ShortDescription, FullDescription, Help msg
					}
				}
			}
			Results []struct {
				RuleID, Level string
				RuleIndex     int
				Message       msg
				Locations     []struct {
					PhysicalLocation struct {
						ArtifactLocation struct{ URI string }
						Region           struct{ StartLine, StartColumn int }
					}
				}
			}
		}
	}
	if err := json.Unmarshal([]byte(out), &log); err != nil {
		t.Fatal(err)
	}
	r := log.Runs[0]
	if log.Version != "2.1.0" || len(r.Results) != 4 {
		t.Fatalf("%+v", log)
	}
	for _, x := range r.Results {
		d := r.Tool.Driver.Rules[x.RuleIndex]
		l := x.Locations[0].PhysicalLocation
		if d.ID != x.RuleID || d.ShortDescription.Text == "" || d.FullDescription.Text == "" || d.Help.Text == "" || x.Message.Text == "" ||
			l.ArtifactLocation.URI != "jobs/a%20b.sbatch" || l.Region.StartLine < 1 || l.Region.StartColumn < 1 {
			t.Errorf("%+v %+v", x, d)
		}
		if x.Level != "error" && x.Level != "warning" && x.Level != "note" {
			t.Errorf("level %q", x.Level)
		}
	}
}

func TestLintCheckstyle(t *testing.T) {
	_, out, _ := runLint(t, badScript, "--format=checkstyle", "-")
	var x struct {
		File []struct {
			Name  string `xml:"name,attr"`
			Error []struct {
				Line    int    `xml:"line,attr"`
				Message string `xml:"message,attr"`
			} `xml:"error"`
		} `xml:"file"`
	}
	if err := xml.Unmarshal([]byte(out), &x); err != nil || len(x.File) != 1 || len(x.File[0].Error) != 4 {
		t.Errorf("%v %+v", err, x)
	}
	if _, out, _ := runLint(t, badScript, "--format=github", "-"); !strings.Contains(out, "::error file=<stdin>,line=4,col=1,title=sbatch-after-command::") || strings.Count(out, "\n") != 4 {
		t.Errorf("%s", out)
	}
}

func TestLintFiles(t *testing.T) {
	dir := t.TempDir()
	put := func(name, text string, mode os.FileMode) string {
		p := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
		return p
	}
	bad := put("a/bad.sbatch", "#!/bin/bash\nset -e\n#SBATCH -N 2\ntrue\n", 0o755)
	put("a/good.sh", "#!/bin/bash\n#SBATCH -N 2\ntrue\n", 0o644)
	put("a/other.py", "#SBATCH -N 2\n", 0o644)
	put(".git/x.sbatch", "set -e\n", 0o644)
	put("quiet/.ncclinic.yaml", "rules: {sbatch-after-command: off}\n", 0o644)
	quiet := put("quiet/q.sbatch", "#!/bin/bash\nset -e\n#SBATCH -N 2\ntrue\n", 0o644)
	put("lib/env.sh", "export NP=4\n", 0o644)
	sourced := put("lib/s.sbatch", "#!/bin/bash\n#SBATCH -N 1 --gres=gpu:2\nsource ./env.sh\ntorchrun --standalone --nproc_per_node=$NP t.py\n", 0o644)

	if code, _, _ := runLint(t, "", dir); code != exitUsage {
		t.Errorf("a folder without -r: %d", code)
	}
	if code, out, errs := runLint(t, "", dir, bad); code != exitUsage || !strings.Contains(out, "bad.sbatch:3") || !strings.Contains(errs, "is a folder; -r lints") {
		t.Errorf("a folder beside a script: %d %s%s", code, out, errs)
	}
	bare := t.TempDir()
	for lang, want := range map[string]string{"en": "no batch script in it", "zh": "没有批处理脚本"} {
		if code, out, errs := runLint(t, "", "--lang", lang, "-r", bare); code != exitUnsure || out != "" || !strings.Contains(errs, bare) || !strings.Contains(errs, want) {
			t.Errorf("a folder without scripts: %d %s%s", code, out, errs)
		}
	}
	if code, out, _ := runLint(t, "", "--format=json", "-r", bare); code != exitUnsure || !strings.Contains(out, `"verdict": "unknown"`) {
		t.Errorf("a folder without scripts: %d %s", code, out)
	}
	if code, out, errs := runLint(t, "", "-r", bare, bad); code != exitFound || !strings.Contains(out, "bad.sbatch:3") || !strings.Contains(errs, "no batch script in it") {
		t.Errorf("a folder without scripts beside one: %d %s%s", code, out, errs)
	}
	code, out, _ := runLint(t, "", "-r", dir)
	if code != exitFound || !strings.Contains(out, "in 4 scripts") {
		t.Errorf("%d %s", code, out)
	}
	if code, out, _ := runLint(t, "", quiet); code != exitOK {
		t.Errorf("configuration beside the script: %d %s", code, out)
	}
	if code, out, _ := runLint(t, "", sourced); code != exitFound || !strings.Contains(out, "starts 4 processes per node, but the job has 2") {
		t.Errorf("a sourced file: %d %s", code, out)
	}
	code, out, errs := runLint(t, "", "--diff", bad)
	if code != exitOK || !strings.Contains(errs, "bad.sbatch: would change: sbatch-after-command (line 3)\n") || !strings.Contains(errs, "this changes what is submitted; sbatch would then read: -N 2\n") || !strings.Contains(out, "-set -e\n #SBATCH -N 2\n+set -e") {
		t.Errorf("--diff: %d %s", code, out)
	}
	if code, out, _ := runLint(t, "", "--fix", bad); code != exitOK {
		t.Errorf("--fix: %d %s", code, out)
	}
	got, _ := os.ReadFile(bad)
	st, _ := os.Stat(bad)
	if string(got) != "#!/bin/bash\n#SBATCH -N 2\nset -e\ntrue\n" || st.Mode().Perm() != 0o755 {
		t.Errorf("%q %v", got, st.Mode())
	}
	if code, out, _ := runLint(t, "#!/bin/bash\nset -e\n#SBATCH -N 2\n", "--fix", "-"); code != exitOK || out != "#!/bin/bash\n#SBATCH -N 2\nset -e\n" {
		t.Errorf("--fix of standard input: %d %q", code, out)
	}
	if code, out, errs := runLint(t, "#!/bin/bash\nset -e\n#SBATCH --mem=1\n", "--fix", "-"); code != exitOK || !strings.HasSuffix(out, "#SBATCH --mem=1\n") || errs != "ncclinic: <stdin>: left to you: sbatch-after-command (line 3); the edit would bring up: mem-unit-missing\n" {
		t.Errorf("--fix that would bring a warning: %d %q %q", code, out, errs)
	}
	missing := filepath.Join(dir, "missing")
	for _, args := range [][]string{{missing}, {}, {"--format=x", bad}, {"--slurm-version=new", bad}, {"--disable=no-such", bad}, {"--fail-on=x", bad}, {"--config=" + missing, bad}} {
		if code, _, errs := runLint(t, "", args...); code != exitUsage || errs == "" {
			t.Errorf("%v: exit status %d, %q", args, code, errs)
		}
	}
}

func TestLintGates(t *testing.T) {
	const src = "#!/bin/bash\n#SBATCH -N 1 -c 8 --mem=8\nsrun python train.py\n"
	for _, c := range []struct {
		args string
		want bool
	}{{"", false}, {"--slurm-version=22.05.8", true}, {"--slurm-version=23.11", false}, {"--slurm-version=21.08", false}, {"--enable=srun-cpus-not-forwarded", true}} {
		args := append(strings.Fields(c.args), "-")
		if _, out, _ := runLint(t, src, args...); strings.Contains(out, "srun-cpus-not-forwarded") != c.want {
			t.Errorf("%q: %s", c.args, out)
		}
	}
	if code, _, _ := runLint(t, src, "--fail-on=error", "-"); code != exitOK {
		t.Errorf("--fail-on=error: %d", code)
	}
}

// TestLintDocs holds that the guides show what lint really says.
func TestLintDocs(t *testing.T) {
	src, err := os.ReadFile("../../docs/example/train.sbatch")
	if err != nil {
		t.Fatal(err)
	}
	for lang, doc := range map[string]string{"en": "lint.md", "zh": "lint.zh-CN.md"} {
		page, err := os.ReadFile("../../docs/" + doc)
		if err != nil {
			t.Fatal(err)
		}
		_, out, _ := runLint(t, string(src), "--lang", lang, "--stdin-name=train.sbatch", "-")
		if !strings.Contains(string(page), out) {
			t.Errorf("docs/%s does not show:\n%s", doc, out)
		}
	}
}

// TestLintHidesSecrets: what lint quotes of a script is masked in all forms,
// also where the quote is cut, and where only the place says that it is secret.
func TestLintHidesSecrets(t *testing.T) {
	const token = "hf_abcdefghijklmnopqrstuvwxyzABCDEFGH"
	for name, script := range map[string]string{
		"first command": "#!/bin/bash\n#SBATCH --gpus=1\nexport HF_TOKEN=" + token + "\n#SBATCH --nodes=1\n",
		"long command":  "#!/bin/bash\n#SBATCH --gpus=1\ngit clone https://someone-with-a-name:pa55wordThatIsLong" + strings.Repeat("z", 60) + "@git.example.org/a.git\n#SBATCH --nodes=1\n",
		"bearer":        "#!/bin/bash\n#SBATCH --gpus=1\ncurl -H 'Authorization: Bearer pa55wordThatIsLong' https://example.org\n#SBATCH --nodes=1\n",
		"time":          "#!/bin/bash\n#SBATCH --time=HF_TOKEN=" + token + "\nsrun python t.py\n",
		"comment":       "#!/bin/bash\n#SBATCH --comment=token=pa55wordThatIsLong x\n#SBATCH --nodes=1\nls\n#SBATCH --comment=token=pa55wordThatIsLong\n",
		"export":        "#!/bin/bash\n#SBATCH --export=HF_TOKEN=" + token + ",DB_PASSWORD=pa55wordThatIsLong\nsrun --export=HF_TOKEN=" + token + " python t.py\n",
		"after a name":  "#!/bin/bash\n#SBATCH --password pa55wordThatIsLong\nsrun python t.py\n",
		"elsewhere":     "#!/bin/bash\n#SBATCH --job-name=pa55wordThatIsLong --time=pa55wordThatIsLong\nexport DB_PASSWORD=pa55wordThatIsLong\nTORCH_X=$DB_PASSWORD\npython t.py\n",
	} {
		for _, format := range []string{"text", "json", "sarif", "github", "checkstyle"} {
			code, out, errs := runLint(t, script, "-v", "--notes", "--format", format, "-")
			if code > 1 || out == "" && format == "text" || strings.Contains(out+errs, "abcdefghijkl") || strings.Contains(out+errs, "pa55word") {
				t.Errorf("%s as %s: exit status %d\n%s%s", name, format, code, out, errs)
			}
		}
	}
}

// TestLintFixWords: what was refused was never read, and --diff changes nothing.
func TestLintFixWords(t *testing.T) {
	script := "#!/bin/bash\n#SBATCH --ntask-per-node=4\n#SBATCH --gres =gpu:4\nsrun python t.py\n"
	_, _, errs := runLint(t, script, "--diff", "-")
	for _, want := range []string{"would change: option-typo", "would then read: --ntasks-per-node=4", "gone would be what sbatch refuses: --ntask-per-node=4"} {
		if !strings.Contains(errs, want) || strings.Contains(errs, "mended") || strings.Contains(errs, "no longer") {
			t.Errorf("no %q:\n%s", want, errs)
		}
	}
	if _, out, errs := runLint(t, "#!/bin/bash\n#SBATCH --nodes=1\nset -e\n#SBATCH --nodes=2\nsrun python t.py\n", "--diff", "-"); out != "" || !strings.Contains(errs, "left to you: sbatch-after-command (line 4); --nodes has two values") {
		t.Errorf("%s%s", out, errs)
	}
	if _, _, errs := runLint(t, script, "--fix", "-"); !strings.Contains(errs, "mended: ") || !strings.Contains(errs, "gone is what sbatch refused: ") {
		t.Error(errs)
	}
}
