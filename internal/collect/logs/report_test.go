package logs

import (
	"strings"
	"testing"

	"github.com/ncclinic/ncclinic/internal/fact"
)

// TestReportInLog: a report of this program says nothing about the run into
// whose log it was written, and what stands behind it is read.
func TestReportInLog(t *testing.T) {
	const (
		oom  = "RuntimeError: CUDA out of memory. Tried to allocate 1 GiB"
		text = "BROKEN  GPU memory is exhausted\ngpu-out-of-memory · proven · you can fix this\n\nThis rank ran out of memory.\n\nEvidence\n  a.out:1: " + oom + "\n\nWhy\n  One rank.\n"
		hint = "\nncclinic -v lists the facts; ncclinic rules gpu-out-of-memory explains the cause\n"
		json = "{\n \"schema\": \"ncclinic.report/v1\",\n \"findings\": [\n  {\n   \"evidence\": [{\"excerpt\": \"" + oom + "\"}],\n   \"rank\": null\n  }\n ]\n}\n"
		zh   = "无法判断  仅凭所给内容无法判断原因\n\n证据\n  a.out:1: " + oom + "\n"
	)
	quote := func(s string) string {
		return "> " + strings.ReplaceAll(strings.TrimSuffix(s, "\n"), "\n", "\n> ") + "\n"
	}
	for _, c := range []struct {
		name, log string
		events    int
		kind      string
	}{
		{"text", text + hint, 0, fact.KindReport},
		{"with facts", text + hint + "\nFacts\n  torch  " + oom + "\n", 0, fact.KindReport},
		{"in a mail", quote(text + hint), 0, fact.KindReport},
		{"with words around", "Hi, this is what it says:\n" + text, 0, fact.KindLog},
		{"undecided", zh, 0, fact.KindReport},
		{"json", json, 0, fact.KindReport},
		{"json in a mail", quote(json), 0, fact.KindReport},
		{"sarif", "{\n  \"$schema\": \"https://json.schemastore.org/sarif-2.1.0.json\",\n  \"text\": \"" + oom + "\"\n}\n", 0, fact.KindReport},
		{"one line", `{"schema":"ncclinic.report/v1","excerpt":"` + oom + `"}` + "\n", 0, fact.KindReport},
		{"one long line", `{"schema":"ncclinic.report/v1","excerpt":"` + strings.Repeat(oom+" ", 2000) + `"}` + "\n", 0, fact.KindReport},
		{"log behind text", text + hint + oom + "\n", 1, fact.KindLog},
		{"log behind cut text", text + oom + "\n", 1, fact.KindLog},
		{"log behind json", json + oom + "\n", 1, fact.KindLog},
		{"log behind cut json", json[:60] + "\n" + oom + "\n", 1, fact.KindLog},
		{"log before", oom + "\n" + text + hint, 1, fact.KindLog},
		{"words that look like it", "UNKNOWN  device\n" + oom + "\n", 1, fact.KindLog},
		{"only the name of the schema", "wrote ncclinic.report/v1 to x.json\n" + oom + "\n", 1, fact.KindLog},
		{"a long document of another tool", `{"level":"info","items":["` + strings.Repeat("x", 9000) + " " + oom + " " + strings.Repeat("y", 9000) + `"]}` + "\n", 0, fact.KindLog},
	} {
		l := read(t, Options{}, c.log)
		n := 0
		for _, e := range l.Events {
			if !e.Quoted {
				n++
			}
		}
		if n != c.events || l.Files[0].Kind != c.kind {
			t.Errorf("%s: %d events, want %d; %s, want %s", c.name, n, c.events, l.Files[0].Kind, c.kind)
		}
	}
}

// TestLongLines finds what stands anywhere in a line that is longer than people see.
func TestLongLines(t *testing.T) {
	const oom = " RuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB "
	for _, c := range []struct{ before, after int }{{0, 20 << 10}, {20 << 10, 20 << 10}, {100 << 10, 100}, {100, 100 << 10}, {2 << 20, 900 << 10}, {100, 5 << 20}, {5 << 20, 2 << 20}} {
		for _, fill := range []string{"x", "step 5 | 10% |" + strings.Repeat("#", 300) + "\r"} {
			for _, end := range []string{"", "\n", "\nmore\n"} {
				text := strings.Repeat(fill, c.before/len(fill)) + oom + strings.Repeat(fill, c.after/len(fill)) + end
				l := read(t, Options{}, text)
				if len(l.Events) != 1 || l.Events[0].Line != 1 || !strings.Contains(l.Events[0].Text, "out of memory") {
					t.Errorf("%d+%d of %q, end %q: %+v", c.before, c.after, fill, end, l.Events)
				}
				if want := strings.Count(end, "more") + 1; l.Files[0].Lines != want {
					t.Errorf("%d+%d of %q, end %q: %d lines, want %d", c.before, c.after, fill, end, l.Files[0].Lines, want)
				}
			}
		}
	}
}
