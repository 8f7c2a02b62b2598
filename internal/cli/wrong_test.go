package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestWrongWords: what is misspelt is named with what was meant, in words of this
// program and in the language of the user.
func TestWrongWords(t *testing.T) {
	dir := t.TempDir()
	put := func(name, text string) string {
		p := filepath.Join(dir, name)
		if err := os.WriteFile(p, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return p
	}
	script := put("a.sbatch", "#!/bin/bash\n#SBATCH --gres=gpu:1\nsrun python t.py\n")
	cfg := put("c.yaml", "foo: 1\nrules: [a]\n")
	for _, c := range []struct {
		args   string
		en, zh string
	}{
		{"chekc", "did you mean check?", "是否想用 check？"},
		{"expalin a b c", "did you mean explain?", "是否想用 explain？"},
		{"help lnit", "did you mean lint?", "是否想用 lint？"},
		{"xyzzy", "no such command, file or folder (ncclinic --help lists the commands)", "没有这个命令、文件或目录"},
		{"check --fomat json", "unknown flag: --fomat; did you mean --format?", "未知选项：--fomat；是否想用 --format？"},
		{"check --verb", "did you mean --verbose?", "是否想用 --verbose？"},
		{"check --zzz", "unknown flag: --zzz", "未知选项：--zzz"},
		{"check -Z", "unknown flag: -Z", "未知选项：-Z"},
		{"check --max-evidence x", `--max-evidence: "x" is not a whole number`, `--max-evidence: "x" 不是整数`},
		{"check --timeout x", `--timeout: "x" is not a duration such as 30s or 5m`, `不是 30s、5m 这样的时长`},
		{"check --verbose=x", `--verbose: "x" is neither true nor false`, "既不是 true 也不是 false"},
		{"check --format jsn", `--format: "jsn" is not text or json; did you mean json?`, `--format："jsn" 无效，可用的有 text、json`},
		{"explain --format xml " + script, "is not text, json or sarif", "可用的有 text、json、sarif"},
		{"fix --with poety", "did you mean poetry?", "无效，可用的有 pip、"},
		{"fix --torch abc", `"abc" is no version, specifier or CUDA build`, "不是版本号、版本限定或 CUDA 构建：可写成 2.6.0"},
		{"explain --since foo " + script, "is neither a time nor an age", "既不是时间，也不是时长"},
		{"explain --limit foo " + script, "is not a size", "不是大小"},
		{"explain --max-evidence -1 " + script, "-1 is less than 1", "-1 小于 1"},
		{"lint --slurm-version abc " + script, "is no version such as 23.11", "不是 23.11 这样的版本号"},
		{"completion foo", "is not bash, zsh or fish", "可用的有 bash、zsh、fish"},
		{"lint " + dir + "/nofile", "ncclinic: " + dir + "/nofile: no such file or directory", "ncclinic: " + dir + "/nofile：没有该文件或目录"},
		{"lint --config " + cfg + " " + script, `line 1: "foo" is no key of it; line 2: not the kind of value`, "line 1"},
		{"check " + script, "check takes", "不是 wheel、conda 包、归档、镜像、环境或动态库（开头为"},
		{"check --nodes --jobid abc", "is not a job id", "不是作业号"},
	} {
		for lang, want := range map[string]string{"en": c.en, "zh": c.zh} {
			var out bytes.Buffer
			args := strings.Fields(c.args)
			code, errs := try(&out, append(args, "--lang", lang)...)
			if code != exitUsage || !strings.Contains(errs, want) {
				t.Errorf("%s --lang %s: exit %d, want %q in\n%s", c.args, lang, code, want, errs)
			}
			for _, not := range []string{"strconv", "lint.Config", "unmarshal", "stat /", "open /"} {
				if strings.Contains(errs, not) {
					t.Errorf("%s: Go's words: %s", c.args, errs)
				}
			}
		}
	}
}

func TestHelpCommand(t *testing.T) {
	var a, b bytes.Buffer
	if code, errs := try(&a, "help", "lint"); code != exitOK {
		t.Errorf("exit %d %s", code, errs)
	}
	try(&b, "lint", "--help")
	if a.String() != b.String() || a.Len() == 0 {
		t.Error("help lint is not lint --help")
	}
	a.Reset()
	if code, _ := try(&a, "help"); code != exitOK || !strings.Contains(a.String(), "Commands:") {
		t.Errorf("help: exit %d\n%s", code, &a)
	}
}

// TestLintOneMissing: one name that is wrong does not hide what the others say.
func TestLintOneMissing(t *testing.T) {
	f := inDir(t, map[string]string{"a.sbatch": wrongScript, "b.sbatch": wrongScript})
	code, out, errs := runLint(t, "", f["a.sbatch"], f["a.sbatch"]+"x", f["b.sbatch"])
	if code != exitUsage || !strings.Contains(out, f["a.sbatch"]+":") || !strings.Contains(out, f["b.sbatch"]+":") || !strings.Contains(errs, "no such file or directory") {
		t.Errorf("exit %d\n%s%s", code, out, errs)
	}
}

// TestCompareFitsTheTerminal: long values stand below each other.
func TestCompareFitsTheTerminal(t *testing.T) {
	var out, errs bytes.Buffer
	Main([]string{"check", demoFacts, "../../docs/example/torch-2.11.0.facts.json"}, Streams{In: strings.NewReader(""), Out: &out, Err: &errs,
		Getenv: func(string) string { return "" }, Terminal: func() (bool, int) { return true, 70 }})
	if !strings.Contains(out.String(), "torch folder\n  A  /home/zhang/") || !strings.Contains(out.String(), "torch version") {
		t.Errorf("%s%s", &out, &errs)
	}
	for _, l := range strings.Split(out.String(), "\n") {
		if len([]rune(l)) > 70 && strings.Count(strings.TrimSpace(l), " ") > 3 {
			t.Errorf("%d columns: %s", len([]rune(l)), l)
		}
	}
}
