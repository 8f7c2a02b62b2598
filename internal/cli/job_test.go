package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/ncclinic/ncclinic/internal/collect/logs"
	"github.com/ncclinic/ncclinic/internal/collect/slurmjob"
	"github.com/ncclinic/ncclinic/internal/diag"
	"github.com/ncclinic/ncclinic/internal/source"
)

// answers are what scontrol and sacct of a site print; a command that is not
// listed is not there.
type answers map[string]string

func (a answers) LookPath(name string) (string, error) {
	for k := range a {
		if strings.HasPrefix(k, name+" ") {
			return "/usr/bin/" + name, nil
		}
	}
	return "", fs.ErrNotExist
}

func (a answers) Run(_ context.Context, c source.Cmd) (source.Result, error) {
	line := strings.TrimPrefix(c.Path, "/usr/bin/") + " " + strings.Join(c.Args, " ")
	for k, v := range a {
		if strings.HasPrefix(line, k) {
			if strings.HasPrefix(k, "sacct") {
				for _, arg := range c.Args {
					if mark, ok := strings.CutPrefix(arg, "--delimiter="); ok {
						v = strings.ReplaceAll(v, "|", mark)
					}
				}
			}
			return source.Result{Stdout: []byte(v)}, nil
		}
	}
	return source.Result{Code: 1, Stderr: []byte("Invalid job id specified")}, nil
}

func explained(t *testing.T, a answers, files fstest.MapFS, lang string) (diag.Report, string, error) {
	t.Helper()
	var out bytes.Buffer
	app := &app{Streams: Streams{Out: &out, Err: &out, Getenv: func(string) string { return "" }}, lang: lang}
	app.out = outputFlags{format: "json", maxEvidence: 8, color: "never"}
	m := &source.Machine{FS: files, Env: map[string]string{}, Runner: a, UID: 1000}
	err := app.job(t.Context(), m, slurmjob.ID{Job: "5"}, logs.Options{}, 0, "")
	var rep diag.Report
	if e := json.Unmarshal(out.Bytes(), &rep); e != nil && out.Len() > 0 {
		t.Fatalf("%v\n%s", e, out.String())
	}
	js := out.String()
	out.Reset()
	app.out.format = "text"
	_ = app.job(t.Context(), m, slurmjob.ID{Job: "5"}, logs.Options{}, 0, "")
	return rep, js + out.String(), err
}

const sacctHead = "JobID|JobIDRaw|State|ExitCode|Start|End|UID|NNodes|AllocTRES|MaxRSS|MaxRSSNode|WorkDir|JobName\n"

func TestJobVerdicts(t *testing.T) {
	log := func(text string) fstest.MapFS {
		return fstest.MapFS{"w/slurm-5.out": {Data: []byte(text), ModTime: time.Date(2026, 11, 30, 8, 30, 0, 0, time.Local)}}
	}
	row := func(state, exit string) string {
		return "5|5|" + state + "|" + exit + "|2026-11-30T08:00:00|2026-11-30T08:31:00|1000|1|cpu=1,mem=4G,node=1|||/w|train\n"
	}
	boom := "Traceback (most recent call last):\n  File \"/w/t.py\", line 3, in <module>\n    step()\nValueError: bad batch\n"
	for _, tt := range []struct {
		name  string
		rows  string
		files fstest.MapFS
		cause string // "": none
		want  string
		exit  int
	}{
		{"exception", row("FAILED", "1:0"), log(boom), "run-exception", diag.Broken, 1},
		{"nothing is known of a failure", row("FAILED", "1:0"), log("fine\n"), "", diag.Unknown, 3},
		{"it completed", row("COMPLETED", "0:0"), log("fine\n"), "", diag.OK, 0},
		{"it is running", row("RUNNING", "0:0"), log("fine\n"), "", diag.OK, 0},
		{"time limit", row("TIMEOUT", "0:0"), log("fine\n"), "job-time-limit", diag.Broken, 1},
		{"time limit, and srun speaks of its own end", row("TIMEOUT", "0:0"), log("begin\nsrun: Job step aborted: Waiting up to 4 seconds for job step to finish.\nsrun: forcing job termination\n"), "job-time-limit", diag.Broken, 1},
		{"an exception before somebody cancelled it", row("CANCELLED by 1000", "0:0"), log(boom), "run-exception", diag.Broken, 1},
		{"cancelled", row("CANCELLED by 1000", "0:0"), log("fine\n"), "job-cancelled", diag.Broken, 1},
		{"preempted", row("PREEMPTED", "0:0"), log("fine\n"), "job-preempted", diag.Broken, 1},
		{"a node failed", row("NODE_FAIL", "0:0"), log("fine\n"), "node-failed", diag.Broken, 1},
		{"memory, as only a step tells", row("FAILED", "1:0") + "5.0|5.0|OUT_OF_MEMORY|0:125|||||||||python\n", log("fine\n"), "host-out-of-memory", diag.Broken, 1},
		{"killed at the limit", row("FAILED", "9:0") + "5.0|5.0|FAILED|0:9||||||4180000K|n1||python\n", log("fine\n"), "host-out-of-memory", diag.Broken, 1},
		{"killed below it", row("FAILED", "9:0") + "5.0|5.0|FAILED|0:9||||||1180000K|n1||python\n", log("fine\n"), "", diag.Unknown, 3},
		{"no folder for the output", row("FAILED", "0:53"), fstest.MapFS{}, "slurm-output-path", diag.Broken, 1},
		{"a launch that failed otherwise", row("FAILED", "0:53"), log("fine\n"), "", diag.Unknown, 3},
		{"a state of the future", row("ON_HOLIDAY", "0:0"), log("fine\n"), "", diag.Unknown, 3},
	} {
		t.Run(tt.name, func(t *testing.T) {
			rep, text, err := explained(t, answers{"sacct --helpformat": "", "sacct ": sacctHead + tt.rows, "scontrol write": ""}, tt.files, "en")
			var code exitError
			errors.As(err, &code)
			cause := ""
			if rep.Cause != nil {
				cause = *rep.Cause
			}
			if cause != tt.cause || rep.Verdict != tt.want || int(code) != tt.exit || rep.Subject.Kind != "job" || rep.Subject.Name != "5" {
				t.Errorf("%s %q, exit %d, %+v\n%s", rep.Verdict, cause, code, rep.Subject, text)
			}
			if rep.Job == nil || rep.Job.ID != "5" {
				t.Errorf("no facts of the job: %+v", rep.Job)
			}
		})
	}
}

func TestJobSaysWhatIsNotToBeHad(t *testing.T) {
	_, en, _ := explained(t, answers{"scontrol --details show job": "JobId=5 JobName=evil \x1b[31m\n   UserId=ann(1000) GroupId=g(1)\n   JobState=FAILED Reason=NonZeroExitCode Dependency=(null)\n   ExitCode=1:0\n   WorkDir=/w\n   StdOut=/w/fifo\n"},
		fstest.MapFS{"w/fifo": {Mode: fs.ModeNamedPipe | 0o600}}, "en")
	for _, want := range []string{"sacct: not on PATH", "batch script: not to be had", "/w/fifo: not a regular file"} {
		if !strings.Contains(en, want) {
			t.Errorf("no %q in\n%s", want, en)
		}
	}
	if strings.Contains(en, "\x1b") {
		t.Error("an escape reaches the terminal")
	}
	_, zh, _ := explained(t, answers{"scontrol --details show job": "JobId=5 JobName=x\n   JobState=PENDING Reason=Resources Dependency=(null)\n"}, fstest.MapFS{}, "zh")
	for _, want := range []string{"作业 5 尚未开始", "不在 PATH 中"} {
		if !strings.Contains(zh, want) {
			t.Errorf("no %q in\n%s", want, zh)
		}
	}
}

func TestJobUsage(t *testing.T) {
	for _, args := range [][]string{{"job"}, {"job", "x"}, {"job", "1", "2"}, {"job", "4711", "--interval", "1s"}, {"job", "4711", "--silence", "0s"}, {"job", "4711", "--limit", "x"}, {"run"}, {"run", "--"}, {"run", "--tail", "x", "--", "true"}} {
		for _, lang := range []string{"en", "zh"} {
			var out, errs bytes.Buffer
			code := Main(append(args, "--lang", lang), Streams{In: strings.NewReader(""), Out: &out, Err: &errs, Getenv: func(string) string { return "" }})
			if args[0] == "run" { // what stands behind the command is its own
				code = Main(append([]string{"--lang", lang}, args...), Streams{In: strings.NewReader(""), Out: &out, Err: &errs, Getenv: func(string) string { return "" }})
			}
			if code != exitUsage || errs.Len() == 0 {
				t.Errorf("%v: %d, %s", args, code, errs.String())
			}
		}
	}
}
