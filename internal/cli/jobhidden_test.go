package cli

import (
	"fmt"
	"strings"
	"testing"
	"testing/fstest"
	"time"
)

// TestJobHiddenException: a job that Slurm calls completed, whose log holds a
// traceback. What its script hides is told, what a program handled is not.
func TestJobHiddenException(t *testing.T) {
	const uncaught = "Traceback (most recent call last):\n  File \"/w/t.py\", line 9, in <module>\n    main()\n  File \"/w/t.py\", line 4, in main\n    f()\nValueError: bad batch\n"
	const printed = "Traceback (most recent call last):\n  File \"/w/t.py\", line 4, in try_tracker\n    f()\nConnectionError: tracker not reachable\n"
	words := func(n int) string { return strings.Repeat("wrote a shard of the index\n", n) }
	for _, tt := range []struct {
		name, script, log, cause string
	}{
		{"shell in a step", "srun bash -c 'python t.py; sleep 1'\n", uncaught, "run-exception"},
		{"shell in a step, before", "srun bash -c 'cd /w; python t.py; sleep 1'\n", "start\n" + uncaught, "run-exception"},
		{"shell in a step, last", "srun bash -c 'cd /w; python t.py'\n", uncaught, ""},
		{"shell in a step that stops", "srun bash -ec 'python t.py; sleep 1'\n", uncaught, ""},
		{"shell in a step that sets -e", "srun bash -c 'set -e; python t.py; sleep 1'\n", uncaught, ""},
		{"shell in a step, exec", "srun bash -c 'sleep 1; exec python t.py'\n", uncaught, ""},
		{"shell in a step, status kept", "srun bash -c 'python t.py; r=$?; sleep 1; exit $r'\n", uncaught, ""},
		{"shell in a step, pipe", "srun bash -c 'python t.py | tee log'\n", uncaught, "run-exception"},
		{"shell of the script", "bash -c 'python t.py; echo done'\n", uncaught + "done\n", "run-exception"},
		{"script that is not to be had", "srun ./run.sh\n", uncaught, "run-exception"},
		{"program of its own", "srun python t.py\n", uncaught, ""},

		{"printed, and on", "srun bash -c 'python t.py; sleep 1'\n", printed + words(9), ""},
		{"printed, few words", "srun bash -c 'python t.py; sleep 1'\n", printed + words(2), ""},
		{"printed at the top, and on", "srun bash -c 'python t.py; sleep 1'\n", uncaught + words(9), ""},
		{"printed, trained", "srun bash -c 'python t.py; sleep 1'\n", uncaught + "step 1 loss 3.2\nstep 2 loss 3.1\nstep 3 loss 3.0\n", ""},
		{"exit handlers", "srun bash -c 'python t.py; sleep 1'\n", uncaught + words(2), "run-exception"},
		{"the next program", "python t.py\npython u.py\n", uncaught + words(40), "run-exception"},
		{"a script of which nothing is known, and on", "srun ./run.sh\n", printed + words(9), ""},
		{"labelled, another rank trains", "srun -l bash -c 'python t.py; sleep 1'\n",
			"1: " + strings.ReplaceAll(strings.TrimSuffix(uncaught, "\n"), "\n", "\n1: ") + "\n" + strings.Repeat("0: wrote a shard of the index\n", 9), "run-exception"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			show := "JobId=5 JobName=t\n   UserId=ann(1000) GroupId=g(1)\n   JobState=COMPLETED Reason=None Dependency=(null)\n   ExitCode=0:0\n   StartTime=2026-11-30T08:00:00 EndTime=2026-11-30T08:31:00\n   WorkDir=/w\n   StdOut=/w/slurm-5.out\n"
			files := fstest.MapFS{"w/slurm-5.out": {Data: []byte(tt.log), ModTime: time.Date(2026, 11, 30, 8, 30, 0, 0, time.Local)}}
			rep, text, _ := explained(t, answers{"scontrol --details show job": show, "scontrol write batch_script": "#!/bin/bash\n" + tt.script}, files, "en")
			cause := ""
			if top := rep.Top(); top != nil {
				cause = top.ID
			}
			if cause != tt.cause || cause == "" && rep.Verdict != "ok" {
				t.Errorf("%s %q, want %q\n%s", rep.Verdict, cause, tt.cause, fmt.Sprint(text))
			}
		})
	}
}
