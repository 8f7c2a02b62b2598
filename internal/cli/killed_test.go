package cli

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/ncclinic/ncclinic/internal/fact"
	"github.com/ncclinic/ncclinic/internal/run"
	"github.com/ncclinic/ncclinic/internal/source"
)

// TestKiller: who ended a command, as far as signals, counters and the controller tell.
func TestKiller(t *testing.T) {
	by := func(sig int, heard ...run.Heard) run.Ended { return run.Ended{Code: -1, Signal: sig, Heard: heard} }
	slurm := func(sig int) run.Ended {
		return by(sig, run.Heard{Signal: 18, From: run.Stepd, All: true}, run.Heard{Signal: sig, From: run.Stepd, All: true})
	}
	job := func(state, reason string, ran, limit int64) *fact.Job {
		at := fact.Command("scontrol show job 7", "")
		return &fact.Job{ID: "7", State: fact.Of(state, at), Reason: fact.Of(reason, at), Seconds: fact.Of(ran, at), Limit: fact.Of(limit, at)}
	}
	none := oomKills{hereOK: true, nodeOK: true}
	for _, tt := range []struct {
		name   string
		end    run.Ended
		oom    oomKills
		j      *fact.Job
		en, zh string
	}{
		{"kill -9", by(9), none, nil, "nor by the kernel for want of memory (its cgroup", "不是 Slurm"},
		{"kill -9, another job ran out of memory", by(9), oomKills{hereOK: true, nodeOK: true, node: 3}, nil, "nor by the kernel", "也不是内核"},
		{"kill -9, no memory cgroup", by(9), oomKills{nodeOK: true}, nil, "it killed nothing on this node", "没有进程被它终止"},
		{"OOM without a memory cgroup", by(9), oomKills{nodeOK: true, node: 2}, nil, "the kernel killed 2 process(es)", "2 个进程"},
		{"nothing to be seen", by(9), oomKills{}, nil, "cannot be seen here", "看不到"},
		{"itself", by(15), none, nil, "sent to this command alone", "只发给了该命令"},
		{"another signal came", by(15, run.Heard{Signal: 1, From: "bash"}), none, nil, "sent to this command alone", "只发给了该命令"},
		{"timeout", by(15, run.Heard{Signal: 15, From: "timeout"}), none, nil, "the process timeout sent it", "进程 timeout"},
		{"a hostile name", by(15, run.Heard{Signal: 15, From: "a\x1b[31mb"}), none, nil, "the process a", "进程 a"},
		{"a process that is gone", by(15, run.Heard{Signal: 15}), none, nil, "a process that is gone", "已退出"},
		{"terminal", by(2, run.Heard{Signal: 2, From: run.Terminal, All: true}), none, nil, "Ctrl-C", "Ctrl-C"},
		{"warned", slurm(10), none, nil, "--signal warns", "--signal"},
		{"time limit", slurm(15), none, job("COMPLETING", "TimeLimit", 60, 60), "time limit (00:01:00)", "时间上限（00:01:00）"},
		{"time limit without a reason", slurm(15), none, job("COMPLETING", "None", 61, 60), "time limit", "时间上限"},
		{"preempted", slurm(15), none, job("PREEMPTED", "None", 9, 60), "preempted", "被抢占"},
		{"node", slurm(15), none, job("NODE_FAIL", "NodeDown", 9, 60), "a node of the job failed", "发生故障"},
		{"cancelled", slurm(15), none, job("CANCELLED", "None", 9, 60), "the job was cancelled", "被取消"},
		{"the step alone", slurm(15), none, job("RUNNING", "None", 9, 60), "another task failed", "另一个任务失败"},
		{"the whole job", slurm(15), none, job("COMPLETING", "None", 9, 60), "ncclinic job 7 tells", "ncclinic job 7"},
		{"no answer", slurm(15), none, nil, "the line of slurmstepd", "slurmstepd"},
	} {
		for lang, want := range map[string]string{"en": tt.en, "zh": tt.zh} {
			if got := (&app{lang: lang}).killer(tt.end, tt.oom, tt.j); !strings.Contains(got, want) || strings.ContainsAny(got, "\x1b\n") {
				t.Errorf("%s, %s: %q, want %q in it", tt.name, lang, got, want)
			}
		}
	}
}

func TestOOMCounters(t *testing.T) {
	file := func(s string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(s)} }
	for _, tt := range []struct {
		name string
		fs   fstest.MapFS
		want oomKills
	}{
		{"nothing", fstest.MapFS{}, oomKills{}},
		{"node alone", fstest.MapFS{"proc/vmstat": file("nr_free 3\noom_kill 23\n"), "proc/self/cgroup": file("0::/\n")}, oomKills{node: 23, nodeOK: true}},
		{"version 1", fstest.MapFS{"proc/vmstat": file("oom_kill 5\n"), "proc/self/cgroup": file("4:memory:/slurm/step_0\n"), "sys/fs/cgroup/memory/slurm/step_0/memory.oom_control": file("oom_kill_disable 0\nunder_oom 0\noom_kill 2\n")},
			oomKills{here: 2, hereOK: true, node: 5, nodeOK: true}},
		{"version 2", fstest.MapFS{"proc/self/cgroup": file("0::/job/step\n"), "sys/fs/cgroup/job/step/memory.events": file("low 0\noom 1\noom_kill 1\noom_group_kill 0\n")}, oomKills{here: 1, hereOK: true}},
		{"no number", fstest.MapFS{"proc/vmstat": file("oom_kill many\n")}, oomKills{}},
	} {
		if got := readOOM(&source.Machine{FS: tt.fs}); got != tt.want {
			t.Errorf("%s: %+v, want %+v", tt.name, got, tt.want)
		}
	}
	a, b := oomKills{here: 3, hereOK: true, node: 9, nodeOK: true}, oomKills{here: 2, hereOK: true, node: 4}
	if got := a.since(b); got != (oomKills{here: 1, hereOK: true}) {
		t.Errorf("%+v", got)
	}
}
