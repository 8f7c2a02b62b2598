package cli

import (
	"strings"
	"testing"
)

// TestDriverBranch: the number of a branch alone is no driver that is too old for
// what the first driver of the branch runs.
func TestDriverBranch(t *testing.T) {
	const facts = "../../docs/example/torch-2.6.0.facts.json"
	code, out, errs := ncclinic(t, nil, "check", facts, "--driver", "525", "--gpu", "V100")
	must(t, "check", out, "OK", "driver 525.60.13")
	if code != exitOK {
		t.Errorf("check: exit %d\n%s%s", code, out, errs)
	}
	_, out, errs = runFix(t, facts, "--driver", "525", "--gpu", "V100", "--python", "3.11", "--torch", "newest")
	must(t, "fix", oneLine(out), "driver 525.60.13", "cu126")
	if strings.Contains(out, "cu118") {
		t.Errorf("fix: an older CUDA than the driver runs:\n%s%s", out, errs)
	}
	_, out, errs = runFix(t, facts, "--driver", "570", "--gpu", "H100", "--python", "3.11", "--torch", "2.7.1+cu128")
	must(t, "fix", oneLine(out), "driver 570.86.10", "CUDA 12.8", "the driver is as new as its CUDA")
	if strings.Contains(out, "570.26") {
		t.Errorf("a driver that is called too old:\n%s%s", out, errs)
	}
}
