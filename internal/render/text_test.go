package render

import (
	"bytes"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ncclinic/ncclinic/internal/diag"
	"github.com/ncclinic/ncclinic/internal/fact"
)

// texts is a knowledge base of two rules, as the renderer sees it.
type texts map[string]map[string]diag.Text

func (t texts) Text(id, lang string) (diag.Text, bool) { x, ok := t[id][lang]; return x, ok }

var sampleTexts = texts{
	"cpu": {
		"en": {Title: "The PyTorch of {python} is a CPU build", Message: "{python} imports torch {version}.\nIt has no CUDA.",
			Sections: map[string]string{"why": "NCCL is compiled in.\n\n- one\n- two", "fix:pip": "Replace the build:"}},
		"zh": {Title: "{python} 的 PyTorch 是纯 CPU 版本", Message: "{python} 导入的是 torch {version}，其中没有编入 CUDA，因此也没有 NCCL，任何需要 GPU 的训练都无法在这里启动，即使节点上有 GPU 也一样。",
			Sections: map[string]string{"why": "NCCL 是编译进 PyTorch 的。", "fix:pip": "更换版本："}},
	},
	"memlock": {"en": {Title: "The limit of locked memory is low"}, "zh": {Title: "锁定内存上限过低"}},
}

func sampleReport() diag.Report {
	rank := 3
	cause := "cpu"
	rep := diag.Report{Schema: diag.ReportSchema, Tool: "0", Rules: "0", Verdict: diag.Broken, Cause: &cause,
		Findings: []diag.Finding{
			{ID: "cpu", Rule: "cpu", Role: diag.Cause, Severity: diag.Error, Certainty: diag.Proven, Actor: "user", Count: 1,
				Args:     diag.Args{"python": "/opt/\x1b[31mpy", "version": "2.6.0+cpu"},
				Evidence: []fact.Evidence{fact.FileLine("/x/torch/version.py", 4, "cuda = None"), fact.EnvVarAt("PATH", "/opt"), {Source: fact.SrcLog, Path: "a.log", Line: 7, Rank: &rank, Node: "n1", Excerpt: "boom"}},
				Fixes:    []diag.Fix{{ID: "pip", Kind: diag.FixCommand, Commands: []string{"pip install x"}}}},
			{ID: "memlock", Rule: "memlock", Role: diag.Contributing, Severity: diag.Warning, Certainty: diag.Likely, Actor: "admin", Count: 2, Needs: []string{"ulimit -l"}},
		},
		Ran:      []diag.Ran{{Rule: "a", Status: diag.Skipped, Reason: "not inside a Slurm job"}, {Rule: "b", Status: diag.Clean}},
		Problems: []fact.Problem{{What: "/x", Why: "permission denied"}}}
	return rep.Normal()
}

func TestTextGolden(t *testing.T) {
	rep := sampleReport()
	for _, lang := range []string{"en", "zh"} {
		var b bytes.Buffer
		if err := Text(&b, &rep, sampleTexts, TextOptions{Lang: lang, Style: Style{Width: 70}, Summary: []string{"Python  /opt/py"}}); err != nil {
			t.Fatal(err)
		}
		golden := "testdata/report." + lang + ".txt"
		if os.Getenv("UPDATE_GOLDEN") != "" {
			if err := os.WriteFile(golden, b.Bytes(), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(golden)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(string(want), b.String()); d != "" {
			t.Errorf("%s (-want +got), UPDATE_GOLDEN=1 rewrites:\n%s", golden, d)
		}
		if strings.ContainsRune(b.String(), 0x1b) {
			t.Errorf("%s: an escape of the input reached the terminal", lang)
		}
	}
}

func TestColourOnlyWhenAsked(t *testing.T) {
	rep := sampleReport()
	var b bytes.Buffer
	if err := Text(&b, &rep, sampleTexts, TextOptions{Lang: "en", Style: Style{Color: true}}); err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(b.String(), "\x1b[1;31mBROKEN") {
		t.Errorf("no colour: %q", b.String()[:40])
	}
}

func TestJSONNeverHasNullLists(t *testing.T) {
	ok := diag.Report{Schema: diag.ReportSchema, Verdict: diag.OK}
	ok = ok.Normal()
	full := sampleReport()
	for _, rep := range []*diag.Report{&ok, &full} {
		var b bytes.Buffer
		if err := JSON(&b, rep, sampleTexts, "en"); err != nil {
			t.Fatal(err)
		}
		var v any
		if err := json.Unmarshal(b.Bytes(), &v); err != nil {
			t.Fatal(err)
		}
		var walk func(path string, v any)
		walk = func(path string, v any) {
			switch x := v.(type) {
			case nil:
				if path != ".cause" {
					t.Errorf("%s is null", path)
				}
			case map[string]any:
				for k, e := range x {
					walk(path+"."+k, e)
				}
			case []any:
				for _, e := range x {
					walk(path+"[]", e)
				}
			}
		}
		walk("", v)
	}
	var got struct {
		Findings []struct {
			Title, Message string
			Evidence       []map[string]any
			Fixes          []struct{ Note string }
		}
	}
	var b bytes.Buffer
	JSON(&b, &full, sampleTexts, "zh")
	if err := json.Unmarshal(b.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	if got.Findings[0].Fixes[0].Note != "更换版本：" || !strings.Contains(got.Findings[0].Title, "纯 CPU") {
		t.Errorf("prose is missing: %+v", got.Findings[0])
	}
	if _, has := got.Findings[0].Evidence[0]["rank"]; has {
		t.Error("an absent rank is written")
	}
	if got.Findings[0].Evidence[2]["rank"] != 3.0 {
		t.Error("rank is lost")
	}
}

func TestClean(t *testing.T) {
	for in, want := range map[string]string{
		"plain":               "plain",
		"a\x1b[31mred":        "a␛[31mred",
		"a\tb":                "a    b",
		"a\nb":                "a␊b",
		"a\x00b\x7f":          "a␀b�",
		"rtl\u202egnp.exe":    "rtl�gnp.exe",
		"zero\u200bwidth":     "zero�width",
		"bad\xff":             "bad�",
		"中文":                  "中文",
		"c1 \u009b31m":        "c1 �31m",
		"line\u2028sep\ufeff": "line�sep�",
	} {
		if got := Clean(in, false); got != want {
			t.Errorf("Clean(%q) = %q, want %q", in, got, want)
		}
	}
	if got := Clean("a\nb", true); got != "a\nb" {
		t.Errorf("newlines are not kept: %q", got)
	}
}

func FuzzClean(f *testing.F) {
	f.Add("a\x1b[31m\u202e中")
	f.Fuzz(func(t *testing.T, s string) {
		out := Clean(s, false)
		for _, r := range out {
			if r < 0x20 || r == 0x7f || r >= 0x80 && r < 0xa0 {
				t.Fatalf("control character %U in %q", r, out)
			}
		}
	})
}

func TestWrap(t *testing.T) {
	got := wrap("这是一段很长的中文文本，它需要在标点之前不换行。NCCL 编译进 PyTorch。", 20)
	for _, l := range got {
		if strings.HasPrefix(l, "，") || strings.HasPrefix(l, "。") {
			t.Errorf("a line starts with punctuation: %q", got)
		}
	}
	if joined := strings.Join(got, ""); !strings.Contains(joined, "文本，它") {
		t.Errorf("text is lost: %q", got)
	}
	if got := wrap("a verylongwordthatdoesnotfitintothewidthofaline b", 20); len(got) != 3 {
		t.Errorf("%q", got)
	}
}

func TestLang(t *testing.T) {
	env := func(kv ...string) func(string) string {
		return func(k string) string {
			for i := 0; i < len(kv); i += 2 {
				if kv[i] == k {
					return kv[i+1]
				}
			}
			return ""
		}
	}
	for _, c := range []struct {
		flag string
		env  func(string) string
		want string
	}{
		{"", env(), "en"}, {"", env("LANG", "zh_CN.UTF-8"), "zh"}, {"", env("LC_ALL", "C", "LANG", "zh_CN.UTF-8"), "en"},
		{"zh", env("LANG", "en_US"), "zh"}, {"en", env("LANG", "zh_CN"), "en"}, {"", env("LC_MESSAGES", "zh_CN", "LANG", "en_US"), "zh"},
	} {
		if got := Lang(c.flag, c.env); got != c.want {
			t.Errorf("Lang(%q) = %s, want %s", c.flag, got, c.want)
		}
	}
}

// TestUndecided: a failure without a cause is shown with what would decide it,
// and is not called free of faults.
func TestUndecided(t *testing.T) {
	rep := &diag.Report{Verdict: diag.Unknown, Findings: []diag.Finding{{
		ID: "unknown", Role: diag.Context, Severity: diag.Error, Certainty: diag.Possible, Needs: []string{"sacct -j 1"},
		Evidence: []fact.Evidence{{Source: "log", Path: "a.out", Line: 9, Excerpt: "RuntimeError: x"}},
	}}}
	for lang, title := range map[string]string{"en": english.undecidedTitle, "zh": chinese.undecidedTitle} {
		var b strings.Builder
		if err := Text(&b, rep, sampleTexts, TextOptions{Lang: lang, Style: Style{Width: 80}}); err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{title, "a.out:9: RuntimeError: x", "sacct -j 1"} {
			if !strings.Contains(b.String(), want) {
				t.Errorf("%s: no %q in\n%s", lang, want, b.String())
			}
		}
	}
}

// TestPageDirective: a paragraph that begins with #SBATCH is no heading.
func TestPageDirective(t *testing.T) {
	var b strings.Builder
	if err := Page(&b, "# Title\n\n#SBATCH must start in column 1, "+strings.Repeat("and so on ", 20)+"\n", Style{Width: 80}); err != nil {
		t.Fatal(err)
	}
	got := b.String()
	if !strings.HasPrefix(got, "Title\n\n#SBATCH must") || strings.Count(got, "\n") < 4 {
		t.Error(got)
	}
}
