package cli

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/klauspost/compress/zstd"
	"github.com/ulikunitz/xz"

	"github.com/ncclinic/ncclinic/internal/diag"
	"github.com/ncclinic/ncclinic/internal/fact"
)

const oomLine = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79.25 GiB\n"

// packed writes text through a compressor.
func packed(t *testing.T, kind, text string) []byte {
	t.Helper()
	var b bytes.Buffer
	var err error
	switch kind {
	case "gz":
		z := gzip.NewWriter(&b)
		_, err = z.Write([]byte(text))
		z.Close()
	case "xz":
		z, e := xz.NewWriter(&b)
		if e != nil {
			t.Fatal(e)
		}
		_, err = z.Write([]byte(text))
		z.Close()
	case "zst":
		z, e := zstd.NewWriter(&b)
		if e != nil {
			t.Fatal(e)
		}
		_, err = z.Write([]byte(text))
		z.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// filler is text that does not compress to nothing and says nothing.
func filler(form string, lines int) string {
	var b strings.Builder
	x := uint64(1)
	for i := range lines {
		x = x*6364136223846793005 + 1442695040888963407
		fmt.Fprintf(&b, form, i, x, x*0x9e3779b97f4a7c15, x*0xff51afd7ed558ccd)
	}
	return b.String()
}

const (
	stack = "frame #%d: <unknown function> + 0x%016x (0x%016x in 0x%016x)\n"
	steps = "step %d loss 0.%020d tokens %020d seconds %020d\n"
)

// TestExplainCompressed: compressed logs are read, and of half a one, what is
// there; a clean half is no clean bill.
func TestExplainCompressed(t *testing.T) {
	dir := t.TempDir()
	for _, c := range []struct {
		kind  string
		lines int
		half  bool
	}{{"gz", 100, false}, {"xz", 100, false}, {"zst", 100, false}, {"gz", 1000, true}, {"gz", 70000, true}, {"zst", 70000, true}} {
		raw := packed(t, c.kind, oomLine+filler(stack, c.lines))
		if c.half {
			raw = raw[:len(raw)*3/4]
		}
		p := filepath.Join(dir, "a.out."+c.kind)
		if err := os.WriteFile(p, raw, 0o644); err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		code, errs := try(&out, "explain", p)
		got := strings.Join(strings.Fields(out.String()+errs), " ")
		if code != exitFound || !strings.Contains(got, "gpu-out-of-memory · proven") || strings.Contains(got, "ends in the middle") != c.half {
			t.Errorf("%+v: status %d:\n%s", c, code, got)
		}
	}
	for _, kind := range []string{"gz", "zst"} {
		p := filepath.Join(dir, "ok.out."+kind)
		raw := packed(t, kind, filler(steps, 20000))
		if err := os.WriteFile(p, raw[:len(raw)*3/4], 0o644); err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		if code, errs := try(&out, "explain", p); code != exitUnsure || !strings.Contains(out.String(), " -t "+p) {
			t.Errorf("half of a good %s: status %d\n%s%s", kind, code, out.String(), errs)
		}
	}
}

// TestExplainLimit: an endless stream ends at the limit, and the report says so.
func TestExplainLimit(t *testing.T) {
	run := func(in string, args ...string) (int, string) {
		var out, errs bytes.Buffer
		code := Main(append([]string{"explain", "--limit", "256K"}, args...), Streams{In: &endless{text: in}, Out: &out, Err: &errs, Getenv: func(string) string { return "" }})
		return code, strings.Join(strings.Fields(out.String()+errs.String()), " ")
	}
	if code, out := run("step 1 loss 0.1\n", "-"); code != exitUnsure || !strings.Contains(out, "(--limit): 262144") || !strings.Contains(out, "tail -n 2000") {
		t.Errorf("status %d\n%s", code, out)
	}
	if code, out := run(oomLine, "-"); code != exitFound || !strings.Contains(out, "--limit") {
		t.Errorf("status %d\n%s", code, out)
	}
	if code, out := run("\x00", "-"); code != exitUsage || !strings.Contains(out, "not a text file") {
		t.Errorf("status %d\n%s", code, out)
	}
}

// endless repeats a text for ever.
type endless struct {
	text string
	at   int
}

func (e *endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = e.text[e.at]
		e.at = (e.at + 1) % len(e.text)
	}
	return len(p), nil
}

// TestExplainSince leaves out what happened before, whatever form the stamps
// have, and says when they have none.
func TestExplainSince(t *testing.T) {
	const (
		full     = "2026-11-29 10:00:00 rank 3: " + oomLine + "2026-11-29 10:00:01 srun: error: n1: task 3: Exited with exit code 1\n2026-11-30 08:00:00 step 1 loss 0.1\n2026-11-30 08:00:01 training finished successfully\n"
		yearless = "E1129 10:00:00.000000 17 x.py:3] " + oomLine + "I1130 08:00:00.000000 17 x.py:3] step 1 loss 0.1\n"
	)
	for _, c := range []struct {
		text, since string
		want        string
		problem     bool
	}{
		{full, "2026-11-29", diag.Broken, false},
		{full, "2026-11-30T00:00", diag.OK, false},
		{full, "2026-11-30 00:00:00", diag.OK, false},
		{yearless, "2026-11-29", diag.Broken, false},
		{yearless, "2026-11-30", diag.OK, false},
		{oomLine, "2026-11-30", diag.Broken, true},
	} {
		rep, _ := explainFiles(t, map[string]string{"a.out": c.text}, "--since", c.since)
		if rep.Verdict != c.want || slices.ContainsFunc(rep.Problems, func(p fact.Problem) bool { return p.What == "--since" }) != c.problem {
			t.Errorf("since %s of %q: %s %+v", c.since, c.text, rep.Verdict, rep.Problems)
		}
	}
	zone := time.FixedZone("CST", 8*3600)
	now := time.Date(2026, 11, 30, 10, 30, 0, 0, zone)
	for s, want := range map[string]string{"2h": "2026-11-30T08:30:00Z", "3d": "2026-11-27T10:30:00Z", "2026-11-30T01:00:00Z": "2026-11-30T09:00:00Z", "2026-11-30T10:00": "2026-11-30T10:00:00Z"} {
		got, err := when(s, now)
		if err != nil || got.Format(time.RFC3339) != want {
			t.Errorf("%s: %v %v, want %s", s, got, err, want)
		}
	}
	for _, s := range []string{"-2h", "yesterday", "-3d", "2026-13-01"} {
		if _, err := when(s, now); err == nil {
			t.Errorf("%q is taken", s)
		}
	}
}

// TestExplainPattern: patterns as sbatch and srun write them name the task and
// the node of each file.
func TestExplainPattern(t *testing.T) {
	dir := t.TempDir()
	oomLine := "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB\n" // names no GPU
	for name, text := range map[string]string{"run-77-0.out": "step 1\n", "run-77-5.out": oomLine, "run-77-5.out.bak": "x\n", "gpu06.log": "step 1\n", "gpu07.log": oomLine, "100%.txt": oomLine, "run-9_2-003.err": oomLine} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		pattern string
		rank    int // -1: none
		node    string
	}{
		{"run-%j-%t.out", 5, ""}, {"run-%j-*.out", -1, ""}, {"%N.log", -1, "gpu07"}, {"run-%A_%a-%3t.err", 3, ""}, {"100%%.txt", -1, ""},
	} {
		var out bytes.Buffer
		code, errs := try(&out, "explain", "--format", "json", filepath.Join(dir, c.pattern))
		var rep diag.Report
		if err := json.Unmarshal(out.Bytes(), &rep); err != nil || code != exitFound {
			t.Fatalf("%s: %d %s %v", c.pattern, code, errs, err)
		}
		w := rep.Top().Where[0]
		if (w.Rank == nil) != (c.rank < 0) || w.Rank != nil && *w.Rank != c.rank || w.Node != c.node {
			t.Errorf("%s: %+v", c.pattern, w)
		}
	}
	var out bytes.Buffer
	if code, errs := try(&out, "explain", filepath.Join(dir, "none-%j.out")); code != exitUsage || !strings.Contains(errs, "no file has such a name") {
		t.Errorf("%d %s", code, errs)
	}
}

// TestExplainOwnReport: a report of the program itself is shown again when it is
// JSON, and never judged as a log.
func TestExplainOwnReport(t *testing.T) {
	dir := t.TempDir()
	log := filepath.Join(dir, "a.out")
	write := func(name, text string) string {
		p := filepath.Join(dir, name)
		if err := os.WriteFile(p, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return p
	}
	write("a.out", "[rank3]: "+oomLine)
	report := func(args ...string) string {
		var out bytes.Buffer
		try(&out, append([]string{"explain"}, args...)...)
		return out.String()
	}
	js := report("--format", "json", log)
	own := write("own.json", js)
	for _, lang := range []string{"en", "zh"} {
		if got, want := report("--lang", lang, own), report("--lang", lang, log); got != want {
			t.Errorf("%s: shown again:\n%s\nwant:\n%s", lang, got, want)
		}
	}
	if got := report("--format", "json", own); got != js {
		t.Errorf("again as JSON:\n%s", got)
	}
	for name, text := range map[string]string{"own.txt": report(log), "own-v.txt": report("-v", log), "own.zh.txt": report("--lang", "zh", log), "own.sarif": report("--format", "sarif", log), "mail.txt": "> " + strings.ReplaceAll(report(log), "\n", "\n> ") + "\n"} {
		var out bytes.Buffer
		if code, _ := try(&out, "explain", write(name, text)); code != exitUnsure || !strings.Contains(strings.Join(strings.Fields(out.String()), " "), "a report of ncclinic, not a log: not used") {
			t.Errorf("%s: status %d\n%s", name, code, out.String())
		}
	}
	healthy := write("ok.out", "step 1 loss 0.2\nstep 2 loss 0.1\n")
	var out bytes.Buffer
	if code, _ := try(&out, "explain", healthy, own); code != exitOK || !strings.Contains(oneLine(out.String()), "not used") {
		t.Errorf("status %d\n%s", code, out.String())
	}
	for name, text := range map[string]string{"newer.json": strings.Replace(js, "ncclinic.report/v1", "ncclinic.report/v9", 1), "cut.json": js[:len(js)/2], "odd.json": `{"schema":"ncclinic.report/v1","verdict":"fine"}`} {
		var out bytes.Buffer
		if code, errs := try(&out, "explain", write(name, text)); code != exitUsage || !strings.Contains(errs, name) {
			t.Errorf("%s: status %d, %s", name, code, errs)
		}
	}
	evil := `{"schema":"ncclinic.report/v1","verdict":"broken","cause":"x","findings":[{"id":"x","role":"cause","args":{"a":"\u001b[31m"},"evidence":[{"source":"log","path":"p","line":1,"excerpt":"\u001b]52;c;aGk=\u0007 token=hunter2hunter2"}],"where":null,"fixes":[{"commands":["\u001b[2J"]}]}]}`
	out.Reset()
	try(&out, "explain", write("evil.json", evil))
	if strings.ContainsAny(out.String(), "\x1b\x07") || strings.Contains(out.String(), "hunter2") {
		t.Errorf("%q", out.String())
	}
}

// TestExplainHostile holds that what stands in logs cannot act on the terminal
// that shows the report, or on a page that shows its JSON.
func TestExplainHostile(t *testing.T) {
	dir := t.TempDir()
	p := filepath.Join(dir, "esc.out")
	text := "\x1b]0;pwned\x07\x1b[2J\x1b]8;;http://evil\x07x\n" + strings.TrimSuffix(oomLine, "\n") + " \x1b]52;c;aGk=\x07\x9b31m\u009b31m\u202e\u2066\u200b\x00 </script><b>\n"
	if err := os.WriteFile(p, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, f := range []string{"text", "json", "sarif"} {
		var out bytes.Buffer
		try(&out, "explain", "-v", "--format", f, p)
		if strings.ContainsAny(out.String(), "\x1b\x07\x00\u009b\u202e\u2066\u200b") || !utf8.ValidString(out.String()) || !strings.Contains(oneLine(out.String()), "CUDA out of memory") {
			t.Errorf("%s: %q", f, out.String())
		}
	}
}

// TestExplainManyErrors: a million different errors are bounded, and the last
// one counts.
func TestExplainManyErrors(t *testing.T) {
	var b strings.Builder
	for i := range 12000 {
		fmt.Fprintf(&b, "Traceback (most recent call last):\n  File \"/home/u/a%d.py\", line %d, in f\n    boom_%d()\nValueError: thing %d\n", i, i, i, i*7919)
	}
	rep, raw := explainFiles(t, map[string]string{"a.out": b.String()})
	if rep.Verdict == diag.OK || len(raw) > 1<<17 {
		t.Errorf("%s, %d bytes", rep.Verdict, len(raw))
	}
}

// TestExplainFlags: what cannot be meant is wrong usage, before anything is read.
func TestExplainFlags(t *testing.T) {
	p := filepath.Join(t.TempDir(), "a.out")
	if err := os.WriteFile(p, []byte(strings.Repeat(oomLine, 2)), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"--max-evidence", "0"}, {"--max-evidence=-1"}, {"--format", "xml"}, {"--limit", "0"}, {"--limit", "x"}, {"--since", "soon"}} {
		var out bytes.Buffer
		if code, errs := try(&out, append(append([]string{"explain"}, args...), p)...); code != exitUsage || !strings.Contains(errs, strings.SplitN(args[0], "=", 2)[0]) || out.Len() > 0 {
			t.Errorf("%q: status %d, %q", args, code, errs)
		}
	}
	var log strings.Builder
	for r := range 6 {
		fmt.Fprintf(&log, "[rank%d]: %s", r, oomLine)
	}
	for n, flag := range map[int]string{1: "1", 3: "3"} {
		rep, _ := explainFiles(t, map[string]string{"a.out": log.String()}, "--max-evidence", flag)
		if len(rep.Top().Evidence) != n {
			t.Errorf("--max-evidence %s: %d lines", flag, len(rep.Top().Evidence))
		}
	}
}

// TestCutOff: a log that stops in the middle of a progress bar is no clean bill,
// unless it is known how the job ended.
func TestCutOff(t *testing.T) {
	const bars = "{'loss': 1.4}\n  7%|##        | 430/6000 [19:21<4:10:39, 2.70s/it]\r  7%|##        | 431/6000 [19:23<4:10:36"
	for _, x := range []struct {
		lang, text, word string
		code             int
	}{
		{"en", bars, "UNKNOWN  The output ends in the middle of the work", exitUnsure},
		{"zh", bars, "无法判断  输出在运行中途中断", exitUnsure},
		{"en", bars, "sacct -j 77 -o", exitUnsure},
		{"en", strings.ReplaceAll(bars, "431/6000", "6000/6000"), "OK", exitOK},
		{"en", bars + "\nTraining completed.\n", "OK", exitOK},
		{"en", bars + "\n\n\n \n\n", "UNKNOWN  The output ends in the middle of the work", exitUnsure},
		{"en", "{'loss': 1.4}\n  7%|##        | 43", "UNKNOWN  The output ends in the middle of the work", exitUnsure},
		{"en", "{'loss': 1.4}\n  0it [00:00, ?it/s]\r  431it [19:23, 2.70it/s]", "UNKNOWN  The output ends in the middle of the work", exitUnsure},
		{"en", "{'loss': 1.4}\n  0it [00:00, ?it/s]\r  431it [19:23, 2.70it/s]\n", "OK", exitOK},
		{"en", strings.Repeat("{'loss': 1.4}\n", 400000) + bars + "\n\n\n\n", "UNKNOWN  The output ends in the middle of the work", exitUnsure},
		{"en", bars + "\nsaved to /scratch/out\nbye\nbye\n", "OK", exitOK},
	} {
		path := filepath.Join(t.TempDir(), "slurm-77.out")
		if err := os.WriteFile(path, []byte(x.text), 0o600); err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		if code, errs := try(&out, "explain", "--lang", x.lang, path); code != x.code || !strings.Contains(out.String(), x.word) {
			t.Errorf("%q: exit %d, want %d and %q in\n%s%s", x.text, code, x.code, x.word, &out, errs)
		}
	}
}

// TestNoOutputOfAJob: text in which nothing is known from jobs is no clean bill.
func TestNoOutputOfAJob(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "hello.txt")
	if err := os.WriteFile(path, []byte("hello world\n\nshopping list: milk, bread\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for lang, words := range map[string][]string{
		"en": {"UNKNOWN  Nothing in what was given looks like the output of a job", "- the output of the job: the files that --output"},
		"zh": {"无法判断  所给内容看起来不是作业的输出", "- 作业的输出：sbatch 的 --output 和 --error 所指的文件"},
	} {
		var out bytes.Buffer
		code, errs := try(&out, "explain", "--lang", lang, path)
		for _, w := range words {
			if !strings.Contains(out.String(), w) {
				t.Errorf("%s: no %q in\n%s%s", lang, w, &out, errs)
			}
		}
		if code != exitUnsure {
			t.Errorf("exit %d, want %d", code, exitUnsure)
		}
	}
	log := filepath.Join(dir, "slurm-7.out")
	if err := os.WriteFile(log, []byte("epoch 0 step 10 loss 2.3\nepoch 0 step 20 loss 2.2\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if code, _ := try(&out, "explain", path, log); code != exitOK {
		t.Errorf("with the log of a run: exit %d\n%s", code, &out)
	}
}
