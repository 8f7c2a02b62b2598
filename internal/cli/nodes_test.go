package cli

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ncclinic/ncclinic/internal/collect/nodes"
)

func TestWords(t *testing.T) {
	for _, c := range []struct {
		in   string
		want []string
	}{
		{"", nil},
		{"  --gres=gpu:8\t-N 4 ", []string{"--gres=gpu:8", "-N", "4"}},
		{`apptainer exec --env "A=b c" X.sif`, []string{"apptainer", "exec", "--env", "A=b c", "X.sif"}},
		{`--comment='it is' ''`, []string{"--comment=it is", ""}},
	} {
		got, err := words(c.in)
		if err != nil {
			t.Errorf("%q: %v", c.in, err)
		}
		if d := cmp.Diff(c.want, got); d != "" {
			t.Errorf("%q: %s", c.in, d)
		}
	}
	if _, err := words(`a "b`); err == nil {
		t.Error("a quote that is not closed")
	}
}

// TestNodesUsage: what cannot be meant is refused before anything is started.
func TestNodesUsage(t *testing.T) {
	for _, c := range []struct{ args, want string }{
		{"check --jobid 5", "only with --nodes"},
		{"check --bcast /tmp/x", "only with --nodes"},
		{"check --nodes facts.json", "takes no other target"},
		{"check --nodes", "not inside a job"},
		{"check --nodes --jobid 5 --partition gpu", "make one"},
		{"check --nodes --jobid 5x", "not a job id"},
		{"check --nodes --partition gpu --bcast x", "a full path"},
		{"check --nodes --partition gpu --bcast /tmp/x --prefix env", "--prefix"},
		{"check --nodes --nodelist n[1-", "host list"},
		{"check --nodes --nodelist n[1-3] --node-count 2", "3"},
		{"check --nodes --partition gpu --node-timeout 0s", "longer than 0"},
	} {
		t.Setenv("SLURM_JOB_ID", "")
		var out, errs bytes.Buffer
		code := Main(strings.Fields(c.args), Streams{In: strings.NewReader(""), Out: &out, Err: &errs, Getenv: func(string) string { return "" }})
		if code != exitUsage || !strings.Contains(errs.String(), c.want) {
			t.Errorf("%s: exit %d %q, want %q", c.args, code, errs.String(), c.want)
		}
	}
}

func TestProgressLine(t *testing.T) {
	for lang, want := range map[string]string{"en": "3 of 8 nodes have reported, last n3", "zh": "3/8 个节点已报告"} {
		var errs bytes.Buffer
		a := &app{Streams: Streams{Err: &errs, ErrTerminal: func() bool { return true }}, lang: lang}
		a.out.format = "text"
		p := a.newProgress()
		p.update(nodes.PhaseReport, nodes.Progress{Reported: 3, Expected: 8, Slowest: "n3"})
		p.last = time.Time{}
		p.update(nodes.PhaseReach, nodes.Progress{Reported: 8, Reached: 2})
		p.done()
		if !strings.Contains(errs.String(), want) || !strings.HasSuffix(errs.String(), "\r\x1b[K") {
			t.Errorf("%s: %q", lang, errs.String())
		}
		// Not into a file, and not beside JSON.
		a.out.format = "json"
		errs.Reset()
		p = a.newProgress()
		p.update(nodes.PhaseReport, nodes.Progress{Reported: 3})
		p.done()
		if errs.Len() > 0 {
			t.Errorf("progress beside JSON: %q", errs.String())
		}
	}
}
