package explain_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/ncclinic/ncclinic/internal/diag"
)

// TestUndecided holds what an unknown verdict still says: the meaning of the
// message that says most, the causes that it may have, and what would decide.
func TestUndecided(t *testing.T) {
	e := newEngine(t)
	const text = `/home/li/envs/llm/lib/python3.10/site-packages/torch/distributed/distributed_c10d.py:613: UserWarning: Attempted to get default timeout for nccl backend, but NCCL support is not compiled
  warnings.warn("Attempted to get default timeout for nccl backend, but NCCL support is not compiled")
Traceback (most recent call last):
  File "/home/li/proj/train.py", line 88, in main
    dist.init_process_group("nccl")
  File "/home/li/envs/llm/lib/python3.10/site-packages/torch/distributed/distributed_c10d.py", line 1331, in _new_process_group_helper
    raise RuntimeError("Distributed package doesn't have NCCL built in")
RuntimeError: Distributed package doesn't have NCCL built in
`
	rep := e.run(t, []file{{"a.out", []byte(text)}})
	if rep.Verdict != diag.Unknown || len(rep.Findings) != 1 {
		t.Fatalf("%+v", rep)
	}
	f := rep.Findings[0]
	if f.Rule != "log-nccl-not-built-in" || !slices.Contains(f.Suggests, "torch-cpu-build") {
		t.Errorf("rule %s suggests %s", f.Rule, f.Suggests)
	}
	if len(f.Needs) == 0 || f.Needs[0] != "srun --gres=gpu:1 ncclinic check --python /home/li/envs/llm" {
		t.Errorf("needs %q", f.Needs)
	}
	for _, user := range []string{"/home/li/.local", "/usr", "/home/li/my envs/llm"} {
		rep := e.run(t, []file{{"a.out", []byte(strings.ReplaceAll(text, "/home/li/envs/llm", user))}})
		for _, n := range rep.Findings[0].Needs {
			if strings.Contains(n, "--python") {
				t.Errorf("%s: %q", user, n)
			}
		}
	}
}

// TestEvidenceOnce: two signatures that hit one line quote it once.
func TestEvidenceOnce(t *testing.T) {
	e := newEngine(t)
	rep := e.run(t, []file{{"a.out", []byte("srun: error: Unable to create step for job 555: More processors requested than permitted\n")}})
	if top := rep.Top(); top == nil || len(top.Evidence) != 1 {
		t.Errorf("%+v", rep.Findings)
	}
}
