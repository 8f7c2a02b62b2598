package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/ncclinic/ncclinic/internal/collect/logs"
	"github.com/ncclinic/ncclinic/internal/collect/slurmjob"
	"github.com/ncclinic/ncclinic/internal/diag"
	"github.com/ncclinic/ncclinic/internal/source"
)

// starting is a site whose job starts, and ends, after the first question.
type starting struct {
	answers
	asked *int
}

func (s starting) Run(ctx context.Context, c source.Cmd) (source.Result, error) {
	if strings.Contains(strings.Join(c.Args, " "), "show job") {
		if *s.asked++; *s.asked == 1 {
			return source.Result{Stdout: []byte("JobId=5 JobName=t\n   UserId=ann(1000) GroupId=g(1)\n   JobState=PENDING Reason=Priority Dependency=(null)\n   WorkDir=/w\n   StdOut=/w/slurm-5.out\n")}, nil
		}
	}
	return s.answers.Run(ctx, c)
}

const endedShow = "JobId=5 JobName=t\n   UserId=ann(1000) GroupId=g(1)\n   JobState=%s Reason=None Dependency=(null)\n   ExitCode=%s\n%s   WorkDir=/w\n   StdOut=%s\n"

// TestJobStartsMeanwhile: what a job wrote shows that it does not wait any more.
func TestJobStartsMeanwhile(t *testing.T) {
	var out bytes.Buffer
	a := &app{Streams: Streams{Out: &out, Err: &out, Getenv: func(string) string { return "" }}, lang: "en"}
	a.out = outputFlags{format: "json", maxEvidence: 8, color: "never"}
	show := fmt.Sprintf(endedShow, "FAILED", "1:0", "   StartTime=2026-11-30T08:00:00 EndTime=2026-11-30T08:31:00\n", "/w/slurm-5.out")
	asked := 0
	m := &source.Machine{UID: 1000, Env: map[string]string{}, Runner: starting{answers{"scontrol --details show job": show, "scontrol write batch_script": "#!/bin/bash\npython t.py\n"}, &asked},
		FS: fstest.MapFS{"w/slurm-5.out": {Data: []byte("Traceback (most recent call last):\n  File \"/w/t.py\", line 3, in <module>\nValueError: bad\n"), ModTime: time.Date(2026, 11, 30, 8, 30, 0, 0, time.Local)}}}
	_ = a.job(t.Context(), m, slurmjob.ID{Job: "5"}, logs.Options{}, 0, "")
	var rep diag.Report
	if err := json.Unmarshal(out.Bytes(), &rep); err != nil || rep.Cause == nil || *rep.Cause != "run-exception" || asked != 2 {
		t.Errorf("asked %d times: %v\n%s", asked, err, out.String())
	}
}

// TestJobWithoutOutput: what would decide about a job of which there is nothing to
// read, and that never had a node.
func TestJobWithoutOutput(t *testing.T) {
	const ran = "   StartTime=2026-11-30T08:00:00 EndTime=2026-11-30T08:31:00\n   NodeList=n1\n   BatchHost=n1\n"
	row := func(state, exit, nodes string) string {
		return "JobID|JobIDRaw|State|ExitCode|NodeList|UID|JobName\n5|5|" + state + "|" + exit + "|" + nodes + "|1000|t\n5.batch|5.batch|" + state + "|" + exit + "|" + nodes + "||batch\n"
	}
	old := time.Date(2026, 11, 30, 8, 30, 0, 0, time.Local)
	for _, tt := range []struct {
		name, state, exit, times, out string
		sacct                         string
		want, not                     string
	}{
		{"device", "FAILED", "1:0", ran, "/dev/null", row("FAILED", "1:0", "n1"), "that of this one went to a device", "sacct -j 5 -o"},
		{"nothing written", "FAILED", "1:0", ran, "/w/empty.out", row("FAILED", "1:0", "n1"), "set -x", "sacct -j 5 -o"},
		{"no steps known", "FAILED", "1:0", ran, "/w/empty.out", "", "sacct -j 5 -o", "the standard error"},
		{"never started", "CANCELLED", "0:0", "   StartTime=2026-11-30T08:00:00 EndTime=2026-11-30T08:00:00\n   NodeList=\n", "/w/slurm-5.out", "", "never started, ended 2026-11-30T08:00:00", "no such file"},
		{"waits", "PENDING", "0:0", "", "/w/slurm-5.out", "JobID|JobIDRaw|State|ExitCode|NodeList|UID|JobName\n", "has not started", "no record"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a := answers{"scontrol --details show job": fmt.Sprintf(endedShow, tt.state, tt.exit, tt.times, tt.out), "scontrol write batch_script": "#!/bin/bash\nfalse\n"}
			if tt.sacct != "" {
				a["sacct --helpformat"], a["sacct "] = "", tt.sacct
			}
			files := fstest.MapFS{"w/empty.out": {ModTime: old}, "dev/null": {Mode: 0o666 | 1<<26 | 1<<21}}
			_, text, _ := explained(t, a, files, "en")
			_, text, _ = strings.Cut(text, "\n}\n")
			if !strings.Contains(strings.Join(strings.Fields(text), " "), tt.want) || strings.Contains(text, tt.not) {
				t.Errorf("want %q and no %q in\n%s", tt.want, tt.not, text)
			}
		})
	}
}
