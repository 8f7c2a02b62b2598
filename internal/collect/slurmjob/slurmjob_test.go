package slurmjob

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/ncclinic/ncclinic/internal/collect/script"
	"github.com/ncclinic/ncclinic/internal/fact"
	"github.com/ncclinic/ncclinic/internal/source"
)

func TestParseID(t *testing.T) {
	for s, want := range map[string]string{"4711": "4711", " 4711\n": "4711", "4711_3": "4711_3", "4711+1": "4711+1", "4711.batch": "4711", "4711_3.0": "4711_3"} {
		if id, err := ParseID(s); err != nil || id.String() != want {
			t.Errorf("%q: %v, %v", s, id, err)
		}
	}
	for _, s := range []string{"", "0", "-1", "x", "4711_", "4711_x", "4711_[1-3]", "4711 4712", "4711,4712", "99999999999", "4294967295", "4711;id", "$(id)", "--help", "4711\x1b", "1/../2"} {
		if id, err := ParseID(s); !errors.Is(err, ErrID) && !errors.Is(err, ErrSeveral) {
			t.Errorf("%q: %v, %v", s, id, err)
		}
	}
}

// slurm answers as the recorded commands of one site.
type slurm struct {
	t       *testing.T
	show    string // scontrol --details show job
	showErr string
	help    string // sacct --helpformat
	rows    string // sacct; "|" stands for the delimiter
	sacct   source.Result
	script  string // scontrol write batch_script
	stored  string // sacct --batch-script
	queue   string // squeue: number, user id, user
	without string // commands that are not there
}

func (s *slurm) LookPath(name string) (string, error) {
	if strings.Contains(s.without, name) {
		return "", fs.ErrNotExist
	}
	return "/usr/bin/" + name, nil
}

func (s *slurm) Run(_ context.Context, c source.Cmd) (source.Result, error) {
	line := c.Path[len("/usr/bin/"):] + " " + strings.Join(c.Args, " ")
	for _, kv := range c.Env {
		if strings.HasPrefix(kv, "SLURM_TIME_FORMAT=") || strings.HasPrefix(kv, "LC_ALL=") && kv != "LC_ALL=C" {
			s.t.Errorf("%s gets %s", line, kv)
		}
	}
	out := func(text string) (source.Result, error) { return source.Result{Stdout: []byte(text)}, nil }
	switch {
	case strings.HasPrefix(line, "scontrol --details show job"):
		if s.showErr != "" {
			return source.Result{Stderr: []byte(s.showErr), Code: 1}, nil
		}
		return out(s.show)
	case line == "sacct --helpformat":
		return out(s.help)
	case strings.HasPrefix(line, "sacct --allusers --batch-script"):
		return out(s.stored)
	case strings.HasPrefix(line, "sacct "):
		if s.sacct.Code != 0 || s.sacct.TimedOut {
			return s.sacct, nil
		}
		for _, arg := range c.Args {
			if mark, ok := strings.CutPrefix(arg, "--delimiter="); ok {
				return out(strings.ReplaceAll(s.rows, "|", mark))
			}
		}
		return out(s.rows)
	case strings.HasPrefix(line, "squeue "):
		return out(s.queue)
	case strings.HasPrefix(line, "scontrol write batch_script"):
		if s.script == "" {
			return source.Result{Stderr: []byte("job script retrieval failed: Access/permission denied\n"), Code: 1}, nil
		}
		return out(s.script)
	}
	s.t.Errorf("unexpected: %s", line)
	return source.Result{}, errors.New("unexpected")
}

func ask(t *testing.T, s *slurm, id string) (*Answer, error) {
	t.Helper()
	s.t = t
	want, err := ParseID(id)
	if err != nil {
		t.Fatal(err)
	}
	m := &source.Machine{FS: fstest.MapFS{}, Env: map[string]string{"SLURM_TIME_FORMAT": "relative", "LC_ALL": "zh_CN.UTF-8"}, Runner: s}
	return Ask(t.Context(), m, want)
}

// Shapes of answers by release. 22.05 was recorded on the cluster of lab; the
// others are in the form of published outputs, with names of our own: 18.08 and
// 20.11 from READMEs of job monitors (ReqMem=16Gn, PreemptTime, "TRES="), 21.08
// from an issue of a job wrapper, 23.02 and later from courses of computing
// centres (ReqTRES and AllocTRES, SubmitLine).
func TestReleases(t *testing.T) {
	tests := []struct {
		name  string
		s     slurm
		id    string
		check func(*fact.Job) string
	}{
		{"20.11, memory per node", slurm{help: "JobID JobIDRaw State ExitCode DerivedExitCode Start End ElapsedRaw TimelimitRaw NNodes NTasks NodeList ReqMem MaxRSS AllocTRES User UID JobName",
			showErr: "slurm_load_jobs error: Invalid job id specified\n",
			rows: "JobID|JobIDRaw|State|ExitCode|DerivedExitCode|Start|End|ElapsedRaw|TimelimitRaw|NNodes|NTasks|NodeList|ReqMem|MaxRSS|AllocTRES|User|UID|JobName\n" +
				"123456|123456|OUT_OF_MEMORY|0:125|0:0|2021-03-22T22:18:55|2021-03-22T22:31:26|751|60|1||node001|16Gn||billing=8,cpu=8,mem=16G,node=1|ann|1001|train\n" +
				"123456.batch|123456.batch|OUT_OF_MEMORY|0:125||2021-03-22T22:18:55|2021-03-22T22:31:26|751||1|1|node001|16Gn|15700M|cpu=8,mem=16G,node=1|||batch\n" +
				"123456.extern|123456.extern|COMPLETED|0:0||2021-03-22T22:18:55|2021-03-22T22:31:26|751||1|1|node001|16Gn|1200K|billing=8,cpu=8,mem=16G,node=1|||extern\n"},
			"123456", func(j *fact.Job) string {
				if j.State.V != "OUT_OF_MEMORY" || j.MemMiB.V != 16384 || len(j.Steps) != 2 || j.Steps[0].MaxRSS.V != 15700<<20 || j.Limit.V != 3600 || j.Seconds.V != 751 || j.GPUs.Looked() {
					return "wrong"
				}
				return ""
			}},
		{"20.11, memory per CPU", slurm{showErr: "slurm_load_jobs error: Invalid job id specified\n",
			rows: "JobID|JobIDRaw|State|ExitCode|ReqMem|NNodes|JobName\n1002|1002|FAILED|1:0|2Gc|1|bad\n"},
			"1002", func(j *fact.Job) string {
				if j.MemMiB.IsKnown() || j.State.V != "FAILED" {
					return "memory per CPU is not that of a node"
				}
				return ""
			}},
		{"21.08, cancelled", slurm{showErr: "slurm_load_jobs error: Invalid job id specified\n",
			rows: "JobID|JobIDRaw|State|ExitCode|NNodes|ReqMem|AllocTRES|UID|JobName\n7611224|7611224|CANCELLED by 1000|0:0|2|60150M|billing=10,cpu=10,mem=60150M,node=2|1000|somejob\n7611224.0|7611224.0|CANCELLED by 1000|0:15|2|||| python\n"},
			"7611224", func(j *fact.Job) string {
				if j.State.V != "CANCELLED" || j.CancelledBy.V != "1000" || j.MemMiB.V != 30075 || j.Steps[0].CancelledBy != "1000" {
					return "wrong"
				}
				return ""
			}},
		{"22.05, scontrol", slurm{sacct: source.Result{Code: 1, Stderr: []byte("Slurm accounting storage is disabled\n")}, script: "#!/bin/bash\necho\n",
			show: "JobId=8 ArrayJobId=4 ArrayTaskId=2 JobName=wrap with = and blanks\n   UserId=root(0) GroupId=root(0) MCS_label=N/A\n   JobState=FAILED Reason=NonZeroExitCode Dependency=(null)\n" +
				"   Requeue=1 Restarts=0 BatchFlag=1 Reboot=0 ExitCode=3:0\n   DerivedExitCode=0:0\n   RunTime=00:00:01 TimeLimit=365-00:00:00 TimeMin=N/A\n" +
				"   SubmitTime=2026-11-30T08:07:03 EligibleTime=2026-11-30T08:07:04\n   StartTime=2026-11-30T08:07:04 EndTime=2026-11-30T08:07:04 Deadline=N/A\n   NodeList=n[1-2]\n   BatchHost=n1\n" +
				"   NumNodes=2 NumCPUs=2 NumTasks=2 CPUs/Task=1 ReqB:S:C:T=0:0:*:*\n   TRES=cpu=2,mem=120M,node=2,billing=2,gres/gpu=4\n   JOB_GRES=gpu:a100:4\n     Nodes=n[1-2] CPU_IDs=15 Mem=60 GRES=gpu:a100:2(IDX:0-1)\n" +
				"   Command=/tmp/a b.sbatch\n   WorkDir=/tmp/jw\n   StdErr=/tmp/jw/arr-4_2.out\n   StdIn=/dev/null\n   StdOut=/tmp/jw/arr-4_2.out\n   Power=\n   \n\n"},
			"4_2", func(j *fact.Job) string {
				if j.ID != "4_2" || j.Raw != "8" || j.Name.V != "wrap with = and blanks" || j.GPUs.V != 4 || j.MemMiB.V != 60 || j.Command.V != "/tmp/a b.sbatch" ||
					j.PerNode[0].GPUs != 2 || j.PerNode[0].IDs != "0-1" || j.Limit.V != 365*86400 || j.Exit.V.Code != 3 || j.Script.From != "scontrol write batch_script 8 -" {
					return "wrong"
				}
				return ""
			}},
		{"23.02 and later, scontrol without GPUs", slurm{sacct: source.Result{TimedOut: true},
			show: "JobId=3495069 JobName=job.01\n   UserId=carl(1344122) GroupId=carl(1344122) MCS_label=N/A\n   JobState=RUNNING Reason=None Dependency=(null)\n   Requeue=1 Restarts=0 BatchFlag=1 Reboot=0 ExitCode=0:0\n" +
				"   RunTime=00:00:04 TimeLimit=UNLIMITED TimeMin=N/A\n   NodeList=tc-intel[002-004]\n   BatchHost=tc-intel002\n   NumNodes=3 NumCPUs=3 NumTasks=3 CPUs/Task=1 ReqB:S:C:T=0:0:*:*\n" +
				"   ReqTRES=cpu=3,mem=5832M,node=3,billing=3\n   AllocTRES=cpu=3,mem=5832M,node=3,billing=3\n   JOB_GRES=(null)\n     Nodes=tc-intel002 CPU_IDs=32 Mem=1944 GRES=\n     Nodes=tc-intel[003-004] CPU_IDs=12 Mem=1944 GRES=\n" +
				"   Command=/p/job.01\n   SubmitLine=sbatch -o x.out job.01\n   WorkDir=/p\n   StdErr=\n   StdIn=/dev/null\n   StdOut=/p/x.out\n   TresPerTask=cpu=1\n"},
			"3495069", func(j *fact.Job) string {
				if !j.GPUs.IsAbsent() || j.Limit.V != -1 || j.MemMiB.V != 1944 || j.UID.V != 1344122 || j.StdOut.V != "/p/x.out" || j.StdErr.IsKnown() || len(j.PerNode) != 2 {
					return "wrong"
				}
				return ""
			}},
		{"24.05 and later, sacct with paths and GPU types", slurm{help: strings.Join(columns, " "), without: "scontrol", stored: "Batch Script for 4\n" + strings.Repeat("-", 80) + "\n#!/bin/bash\nsrun x\n\n",
			rows: "JobID|JobIDRaw|State|ExitCode|NNodes|AllocTRES|FailedNode|StdOut|StdErr|WorkDir|SubmitLine|JobName\n" +
				"4|4|NODE_FAIL|1:0|2|billing=2,cpu=2,gres/gpu:h100=8,gres/gpu=8,mem=120G,node=2|gpu07|/p/%x-%j.out||/p|sbatch t.sbatch|train\n"},
			"4", func(j *fact.Job) string {
				if j.GPUs.V != 8 || j.FailedNode.V != "gpu07" || j.StdOut.V != "/p/%x-%j.out" || j.Script.From != "sacct -B -j 4" || j.MemMiB.V != 60*1024 {
					return "wrong"
				}
				return ""
			}},
		{"a site's banner, names with line ends, a row that is cut", slurm{showErr: "slurm_load_jobs error: Invalid job id specified\n",
			rows: "*** maintenance on Friday | please log out ***\nJobID|JobIDRaw|State|ExitCode|JobName\n5|5|FAILED|4:0|evil\n1.0\x1b[31m||x\n5.batch|5.batch|FAILED|4:0|batch\n5.0|5.0|FAI"},
			"5", func(j *fact.Job) string {
				if j.ID != "5" || !strings.HasPrefix(j.Name.V, "evil\n1.0") || len(j.Steps) != 1 || j.Steps[0].ID != "batch" {
					return "wrong"
				}
				return ""
			}},
		{"requeued", slurm{showErr: "Invalid job id specified",
			rows: "JobID|JobIDRaw|State|ExitCode|Submit|Start|NodeList|JobName\n9|9|NODE_FAIL|0:0|2026-01-01T00:00:00|2026-01-01T00:00:01|n4|t\n9.0|9.0|CANCELLED|0:9||2026-01-01T00:00:01|n4|x\n9|9|FAILED|1:0|2026-01-01T01:00:00|2026-01-01T01:00:01|n5|t\n9.batch|9.batch|FAILED|1:0|||n5|batch\n"},
			"9", func(j *fact.Job) string {
				if len(j.Before) != 1 || j.Before[0].State != "NODE_FAIL" || j.Nodes.V != "n5" || len(j.Steps) != 1 {
					return "wrong"
				}
				return ""
			}},
		{"array: the first that failed", slurm{showErr: "Invalid job id specified",
			rows: "JobID|JobIDRaw|State|ExitCode|End|JobName\n7_0|8|COMPLETED|0:0|2026-01-01T00:00:09|t\n7_1|9|FAILED|1:0|2026-01-01T00:00:07|t\n7_2|10|TIMEOUT|0:0|2026-01-01T00:00:05|t\n7_[3-9%2]|7|PENDING|0:0|Unknown|t\n"},
			"7", func(j *fact.Job) string {
				if j.ID != "7_2" || j.Array != "7" || j.Task != "2" || len(j.Others) != 3 {
					return "wrong"
				}
				return ""
			}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			ans, err := ask(t, &tt.s, tt.id)
			if err != nil {
				t.Fatal(err, ans)
			}
			if why := tt.check(ans.Job); why != "" {
				t.Errorf("%s: %+v", why, ans.Job)
			}
		})
	}
}

func TestWhatIsNotToBeHad(t *testing.T) {
	gone := "slurm_load_jobs error: Invalid job id specified\n"
	for _, tt := range []struct {
		name           string
		s              slurm
		err            error
		control, sacct string
	}{
		{"no Slurm", slurm{without: "scontrol sacct"}, ErrNoSlurm, NoTool, NoTool},
		{"unknown", slurm{showErr: gone, rows: "JobID|JobIDRaw|State|ExitCode|JobName\n"}, ErrUnknown, Forgot, Forgot},
		{"accounting off", slurm{showErr: gone, sacct: source.Result{Code: 1, Stderr: []byte("Slurm accounting storage is disabled\n")}}, ErrUnknown, Forgot, Off},
		{"both hang or refuse", slurm{showErr: "slurm_load_jobs error: Unable to contact slurm controller (connect failure)\n", sacct: source.Result{TimedOut: true}}, ErrNobody, Failing, Failing},
		{"only a banner", slurm{showErr: gone, rows: "Welcome!\n"}, ErrUnknown, Forgot, Failing},
	} {
		t.Run(tt.name, func(t *testing.T) {
			ans, err := ask(t, &tt.s, "4711")
			if !errors.Is(err, tt.err) || ans.Sides[SideScontrol] != tt.control || ans.Sides[SideSacct] != tt.sacct {
				t.Errorf("%v, %v, %v", err, ans.Sides, ans.Why)
			}
		})
	}
}

// TestHostileAnswers: what users write into names and comments is no answer of Slurm's.
func TestHostileAnswers(t *testing.T) {
	const gone = "slurm_load_jobs error: Invalid job id specified\n"
	show := func(name, comment string) string {
		return "JobId=5 JobName=" + name + "\n   UserId=ann(1000) GroupId=g(1)\n   JobState=FAILED Reason=NonZeroExitCode Dependency=(null)\n   ExitCode=1:0\n" +
			"   Command=/w/t.sh\n   WorkDir=/w\n   Comment=" + comment + "\n   StdErr=/w/o\n   StdIn=/dev/null\n   StdOut=/w/o\n   Power=\n\n"
	}
	const evil = "a\n   JobState=COMPLETED Reason=None\n   UserId=root(0)\n   ExitCode=0:0\n   StdOut=/etc/passwd\nJobId=6 JobName=x\n   JobState=COMPLETED\n   ExitCode=0:0\n"
	rows := func(lines ...string) string {
		return "JobID|JobIDRaw|State|ExitCode|NodeList|UID|JobName\n" + strings.Join(lines, "\n") + "\n"
	}
	job := "5|5|FAILED|1:0|n1|1000|train"
	for _, tt := range []struct {
		name string
		s    slurm
		want string // state, exit status, user, name
		why  string // what is said of sacct
	}{
		// What the answer says in two ways is not known; squeue tells the owner, or sacct all of it.
		{"a comment with lines", slurm{show: show("train", evil), without: "sacct", queue: "5 1000 ann\n"}, " 0 1000 train", ""},
		{"a comment with lines, nobody else knows", slurm{show: show("train", evil), without: "sacct"}, " 0 0 train", ""},
		{"a comment with lines, and accounting", slurm{show: show("train", evil), rows: rows(job)}, "FAILED 1 1000 train", ""},
		{"a name with lines", slurm{show: show("train\n   JobState=COMPLETED\n   UserId=root(0)", "x"), without: "sacct", queue: "5 1000 ann\n"}, " 1 1000 train", ""},
		{"a name with lines and a comment", slurm{show: show("train\n   JobState=COMPLETED\n   UserId=root(0)\n   Comment=x", "x"), without: "sacct", queue: "5 1000 ann\n"}, " 1 1000 train", ""},
		{"a name with a whole record", slurm{show: show("train\nJobId=5 JobName=x\n   UserId=root(0)\n   JobState=COMPLETED", "x"), without: "sacct", queue: "5 1000 ann\n"}, " 1 1000 train", ""},
		{"a folder with lines", slurm{show: strings.Replace(show("train", "x"), "/w\n", "/w\n   UserId=root(0) x\n", 1), without: "sacct", queue: "5 1000 ann\n"}, "FAILED 1 1000 train", ""},
		{"a name with rows", slurm{showErr: gone, rows: rows(job + "\n5\x1f5\x1fCOMPLETED\x1f0:0\x1fn1\x1f0\x1fx")}, "FAILED 1 1000 train\n5 5 COMPLETED 0:0 n1 0 x", ""},
		{"a comment that names its own job", slurm{show: show("train", "JobId=5 JobState=COMPLETED"), without: "sacct"}, "FAILED 1 1000 train", ""},
		{"a row that is cut at the end", slurm{showErr: gone, rows: rows(job, "5.0|5.0|FAI")}, "FAILED 1 1000 train", "1 rows could not be read"},
		{"fewer columns than asked for", slurm{showErr: gone, rows: "JobID|State|JobName\n5|FAILED|train\n"}, "FAILED 0 0 train", ""},
		{"a name of many lines and columns", slurm{showErr: gone, rows: rows(job+"\n6|6|COMPLETED|0:0|n1|0", "5.0|5.0|FAILED|0:9|n1||python")}, "FAILED 1 1000 train", ""},
		{"a banner on both sides", slurm{showErr: gone, rows: "Welcome|to|us\n" + rows(job) + "Bye\n"}, "FAILED 1 1000 train", ""},
		{"no UTF-8", slurm{showErr: gone, rows: rows("5|5|FAILED|1:0|n1|1000|\xff\xfe")}, "FAILED 1 1000 \xff\xfe", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			ans, err := ask(t, &tt.s, "5")
			if err != nil {
				t.Fatal(err, ans.Sides, ans.Why)
			}
			j := ans.Job
			name := strings.TrimSuffix(j.Name.V, "\nBye")
			if got := fmt.Sprintf("%s %d %d %s", j.State.V, j.Exit.V.Code, j.UID.V, name); got != tt.want || j.ID != "5" || len(j.Others) > 0 || ans.Why[SideSacct] != tt.why {
				t.Errorf("%q of %s, %q", got, j.ID, ans.Why)
			}
		})
	}
}

// TestOwnerInDispute: files of a job that nobody knows the owner of are not read.
func TestOwnerInDispute(t *testing.T) {
	st, err := fs.Stat(fstest.MapFS{"a": {Data: []byte("x")}}, "a")
	if err != nil {
		t.Fatal(err)
	}
	m := &source.Machine{UID: 0}
	if !foreign(m, &fact.Job{UID: fact.Fail[int]("several", fact.Evidence{})}, st) {
		t.Error("it would be read")
	}
	if foreign(m, &fact.Job{}, st) {
		t.Error("it would not be read")
	}
}

// closed is a file system of which one file may be seen and not be read.
type closed struct {
	fstest.MapFS
	name string
}

func (c closed) Open(name string) (fs.File, error) {
	if name == c.name {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrPermission}
	}
	return c.MapFS.Open(name)
}

func TestOutputThatIsClosed(t *testing.T) {
	m := &source.Machine{Env: map[string]string{}, FS: closed{fstest.MapFS{"w/o": {Data: []byte("x"), ModTime: time.Now()}}, "w/o"}}
	j := &fact.Job{ID: "5", Raw: "5", State: fact.Of("FAILED", fact.Evidence{}), WorkDir: fact.Of("/w", fact.Evidence{}), StdOut: fact.Of("/w/o", fact.Evidence{})}
	Outputs(m, j, nil)
	if len(j.Outputs) != 1 || j.Outputs[0].Unread != fact.OutDenied {
		t.Errorf("%+v", j.Outputs)
	}
}

func TestExpand(t *testing.T) {
	n := Names{Job: "123", Array: "120", Task: "7", Name: "a b/c", User: "ann"}
	for pattern, want := range map[string]string{
		"slurm-%j.out": "slurm-123.out", "%A_%a": "120_7", "%5j|%05j|%20j": "00123|00123|0000000123", "%x-%u": "a b/c-ann", "100%%": "100%",
		"%t.%n.%N.%s": "*.*.*.*", `a\%j`: "a%j", "%q": "%q", "end%": "end%", "%4": "%4", "%3a": "007", "%J": "*", "%b": "7",
	} {
		if got := Expand(pattern, n); got != want {
			t.Errorf("%q: %q, want %q", pattern, got, want)
		}
	}
	if got := Expand("%N-%n-%s-%t-%J", n.batch("n1.cluster")); got != "n1-0-batch-0-123" {
		t.Errorf("batch: %q", got)
	}
}

func TestOutputs(t *testing.T) {
	start := time.Date(2026, 11, 30, 8, 0, 0, 0, time.Local)
	file := func(age time.Duration) *fstest.MapFile {
		return &fstest.MapFile{Data: []byte("text\n"), ModTime: start.Add(age)}
	}
	m := &source.Machine{FS: fstest.MapFS{
		"w/slurm-5.out": file(time.Minute), "w/rank-0.log": file(time.Minute), "w/rank-1.log": file(time.Minute), "w/rank-x.log": file(time.Minute), "w/rank-10.log": file(time.Minute),
		"w/old.log": file(-24 * time.Hour), "w/later.log": file(24 * time.Hour), "w/tee-5.txt": file(time.Minute), "w/e.err": file(time.Minute),
		"w/fifo": {Mode: fs.ModeNamedPipe | 0o600, ModTime: start}, "dev/null": {Mode: fs.ModeDevice | fs.ModeCharDevice | 0o666}, "etc/shadow": file(time.Minute),
	}, Env: map[string]string{}}
	job := func() *fact.Job {
		return &fact.Job{ID: "5", Raw: "5", Name: fact.Of("t", fact.Evidence{}), State: fact.Of("FAILED", fact.Evidence{}), WorkDir: fact.Of("/w", fact.Evidence{}),
			Start: fact.Of(start.Format("2006-01-02T15:04:05"), fact.Evidence{}), End: fact.Of(start.Add(time.Hour).Format("2006-01-02T15:04:05"), fact.Evidence{})}
	}
	for _, tt := range []struct {
		name, script string
		out          string // StdOut
		want         []string
	}{
		{"the default", "", "", []string{"/w/slurm-5.out"}},
		{"steps, one file per task", "srun -o rank-%t.log python t.py\n", "", []string{"/w/slurm-5.out", "/w/rank-0.log", "/w/rank-1.log", "/w/rank-10.log"}},
		{"redirections and tee", "python t.py > old.log\npython t.py 2>&1 | tee tee-$SLURM_JOB_ID.txt\npython t.py &> later.log\n", "", []string{"/w/slurm-5.out", "/w/tee-5.txt", "/w/later.log later"}},
		{"a device", "", "/dev/null", []string{"/dev/null device"}},
		{"a pipe", "", "/w/fifo", []string{"/w/fifo special"}},
		{"older than the job", "", "/w/old.log", []string{"/w/old.log earlier"}},
		{"written by a later job", "", "/w/later.log", []string{"/w/later.log later"}},
		{"no folder", "", "/w/no/%j.out", []string{"/w/no/5.out no-folder"}},
		{"dots", "", "../w/./slurm-%j.out", []string{"/w/slurm-5.out"}},
		{"a host that is not known", "", "/w/rank-%n.log", []string{"/w/rank-0.log"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			j := job()
			if tt.out != "" {
				j.StdOut = fact.Of(tt.out, fact.Evidence{})
			}
			s := script.Parse("s", []byte("#!/bin/bash\n#SBATCH -N1\n"+tt.script), script.Options{})
			Outputs(m, j, s)
			var got []string
			for _, o := range j.Outputs {
				got = append(got, strings.TrimSpace(o.Path+" "+o.Unread))
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("%q, want %q", got, tt.want)
			}
		})
	}
}

// An administrator who explains somebody's job must not read for them what is
// not theirs.
func TestFilesOfOthersAreNotRead(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(dir+"/log", []byte("x\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	m := &source.Machine{FS: os.DirFS("/"), UID: os.Getuid(), Env: map[string]string{}}
	j := &fact.Job{UID: fact.Of(os.Getuid()+1, fact.Evidence{})}
	if _, why := look(m, dir+"/log", j); why != fact.OutForeign {
		t.Errorf("%q", why)
	}
	if f, err := Open(m, j, dir+"/log"); err == nil {
		f.Close()
		t.Error("opened")
	}
	j.UID = fact.Of(os.Getuid(), fact.Evidence{})
	if _, why := look(m, dir+"/log", j); why != "" {
		t.Errorf("%q", why)
	}
}

func TestSubmitLine(t *testing.T) {
	for line, want := range map[string][2]string{
		"sbatch -o a.out -e b.err t.sbatch": {"a.out", "b.err"}, "sbatch --output=a --error b t.sh -o no": {"a", "b"}, "sbatch -oa t.sh": {"a", ""},
		"sbatch t.sbatch -o program": {"", ""}, "sbatch -p gpu -o x --wrap python -o y": {"x", ""}, "": {"", ""}, "sbatch": {"", ""}, "sbatch -o": {"", ""},
	} {
		if o, e := submitted(line); o != want[0] || e != want[1] {
			t.Errorf("%q: %q %q", line, o, e)
		}
	}
}

func TestValues(t *testing.T) {
	for s, want := range map[string]int64{"13300K": 13300 << 10, "1.50G": 3 << 29, "12390400": 12390400, "0": 0, "16Gn": 16 << 30, "": -1, "x": -1, "16?": -1, "-1K": -1, "1e400": -1, "9999999999999P": -1} {
		n, _, ok := bytesOf(s, 1)
		if !ok {
			n = -1
		}
		if n != want {
			t.Errorf("%q: %d, want %d", s, n, want)
		}
	}
	for s, want := range map[string]int64{"00:05:00": 300, "1-00:00:00": 86400, "UNLIMITED": -1, "05:01": 301, "x": -2, "": -2, "1:2:3:4": -2, "-1:00": -2} {
		n, ok := seconds(s)
		if !ok {
			n = -2
		}
		if n != want {
			t.Errorf("%q: %d, want %d", s, n, want)
		}
	}
}

func FuzzAnswers(f *testing.F) {
	f.Add("JobID|State|JobName\n5|FAILED|x\n5.0|FAILED|y\n", "JobId=5 JobName=x\n   JobState=FAILED Reason=None\n     Nodes=n1 CPU_IDs=0 Mem=1 GRES=gpu:1(IDX:0)\n", "%5t-%x/%N")
	f.Fuzz(func(t *testing.T, rows, show, pattern string) {
		got, _ := parseRows(strings.ReplaceAll(rows, "|", delimiter))
		for _, r := range records(got) {
			r.fill(&fact.Job{}, "sacct")
		}
		for _, s := range parseShow(show) {
			s.fill(&fact.Job{}, "scontrol")
		}
		Expand(pattern, Names{Job: "1"})
		submitted(rows)
		batchScript(show)
	})
}
