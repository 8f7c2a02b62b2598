package e2e

import (
	"errors"
	"os/exec"
	"strings"
	"testing"

	"github.com/ncclinic/ncclinic/lab"
)

// startedBy runs a command of the cluster and returns its output, errors and status.
func startedBy(t *testing.T, c *lab.Cluster, name string, args ...string) (string, string, int) {
	t.Helper()
	cmd := c.Command(t.Context(), name, args...)
	var out, errs strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return out.String(), errs.String(), cmd.ProcessState.ExitCode()
}

// TestNodesNotStarted: what keeps probes from starting is named, for all nodes or
// for those where it is so.
func TestNodesNotStarted(t *testing.T) {
	c := cluster8(t)
	for _, x := range []struct {
		name, program, variant, nodes string
		args                          []string
	}{
		{"python", "/opt/nowhere/bin/python", "python", "n[1-8]", []string{"--python", "/opt/nowhere/bin/python"}},
		{"prefix", "/opt/nowhere/apptainer", "prefix", "n[1-8]", []string{"--prefix", "/opt/nowhere/apptainer exec x.sif"}},
		{"prefix by name", "nowhere-exec", "prefix", "n[1-8]", []string{"--prefix", "nowhere-exec x.sif"}},
		{"one node", "/opt/nowhere/apptainer", "prefix", "n3", []string{"--prefix", wrapper(t, "[ $N = n3 ] && exec /opt/nowhere/apptainer")}},
		{"two nodes", "nowhere-exec", "prefix", "n[3,7]", []string{"--prefix", wrapper(t, "case $N in n3|n7) exec env nowhere-exec;; esac")}},
	} {
		t.Run(x.name, func(t *testing.T) {
			a := checkNodes(t, c, nil, append(x.args, "--no-reach")...)
			f := a.finding(t, "env-program-missing")
			if f.Args["program"] != x.program || f.Args["variant"] != x.variant || f.Args["nodes"] != x.nodes {
				t.Errorf("%+v", f.Args)
			}
			if x.nodes != "n[1-8]" && a.Nodes.Exclude != x.nodes {
				t.Errorf("exclude %q", a.Nodes.Exclude)
			}
		})
	}
}

// TestNodesOnce: started in every task of a step there is one fan-out, and one
// that is started from within a fan-out is none.
func TestNodesOnce(t *testing.T) {
	c := cluster8(t)
	out, errs, code := startedBy(t, c, "srun", "-N3", program, "check", "--nodes", "--no-reach", "--format", "json", "--lang", "en")
	if n := strings.Count(out, `"schema"`); n != 1 || code != 1 || strings.Count(errs, "task 0 does it, the other 2") != 1 || !strings.Contains(out, `"n[1-3]"`) {
		t.Errorf("%d reports, exit %d\n%s", n, code, errs)
	}
	// A prolog that starts it again, in each task of each step.
	prolog(t, program+" check --nodes --no-reach --lang en >/dev/null 2>>"+workDir+"/nested.$N")
	out, errs, _ = startedBy(t, c, "salloc", "-N2", program, "check", "--nodes", "--no-reach", "--format", "json")
	if strings.Count(out, `"schema"`) != 1 {
		t.Errorf("%s%s", out, errs)
	}
	if said := command(t, nil, "sh", "-c", "cat "+workDir+"/nested.*"); !strings.Contains(said, "not started once more") {
		t.Errorf("the prolog's own said %q", said)
	}
	prolog(t, "")
	nothingLeft(t, c, true)
}

// TestNodesQueue: an allocation that does not come says why.
func TestNodesQueue(t *testing.T) {
	c := cluster8(t)
	if _, errs, code := startedBy(t, c, program, "check", "--nodes", "--partition", "gpu", "--node-count", "0", "--lang", "en"); code != 2 || !strings.Contains(errs, "1 or more") {
		t.Errorf("%d, %s", code, errs)
	}
	if _, errs, code := startedBy(t, c, program, "check", "--nodes", "--partition", "gpu", "--node-count", "99", "--lang", "en"); code != 2 || !strings.Contains(errs, "will never start") {
		t.Errorf("%d, %s", code, errs)
	}
	id, err := c.Submit(t.Context(), "#!/bin/bash\nsleep 600\n", "-N8", "--exclusive")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Command(t.Context(), "scancel", id).Run() }()
	state(t, c, id, "RUNNING")
	if _, errs, code := startedBy(t, c, program, "check", "--nodes", "--partition", "gpu", "--node-count", "2", "--wait", "4s", "--lang", "en"); code != 3 || !strings.Contains(errs, "reason Resources") && !strings.Contains(errs, "reason Priority") {
		t.Errorf("%d, %s", code, errs)
	}
	if out, err := c.Command(t.Context(), "squeue", "--noheader", "--format=%j").Output(); err != nil || strings.Contains(string(out), "ncclinic") {
		t.Errorf("%v, %s is left in the queue", err, out)
	}
}
