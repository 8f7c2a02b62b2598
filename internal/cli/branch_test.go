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

// TestCheckPlatform: a platform that is none is refused, whatever the target is.
func TestCheckPlatform(t *testing.T) {
	for platform, want := range map[string]int{"foo": exitUsage, "linux/foo": exitUsage, "windows/amd64": exitUsage, "linux/amd64": exitOK, "arm64": exitOK, "linux/arm64/v8": exitOK} {
		if code, _, errs := ncclinic(t, nil, "check", "../../docs/example/torch-2.6.0.facts.json", "--platform", platform); code != want || code == exitUsage && !strings.Contains(errs, "is no platform") {
			t.Errorf("%s: exit %d, %s", platform, code, errs)
		}
	}
}

// TestGres: the forms in which sites write a GPU are taken.
func TestGres(t *testing.T) {
	for _, g := range []string{"gpu", "gpu:4", "gpu:a100:4(S:0-1),nvme:1", "nvme:1,gpu:2", "Gres=gpu:h100:8", "gres/gpu:h100=8", "gres:gpu:2", "a100:4", "v100"} {
		if code, _, errs := runFix(t, demoFacts, "--gres", g); code == exitUsage {
			t.Errorf("%s: %s", g, errs)
		}
	}
}

// TestCheckKnowsWhatFixKnows: a driver that dropped the GPU, accelerators of other
// makers, and names as GRES types write them.
func TestCheckKnowsWhatFixKnows(t *testing.T) {
	const facts = "../../docs/example/torch-2.6.0.facts.json"
	for _, c := range []struct {
		code int
		args []string
		says []string
	}{
		{exitFound, []string{"--gpu", "H100,V100", "--driver", "590"}, []string{"BROKEN", "gpu-unknown-to-driver", "R580 is the last branch for it"}},
		{exitOK, []string{"--gpu", "H100,V100", "--driver", "580"}, []string{"OK"}},
		{exitFound, []string{"--gpu", "K80", "--driver", "525"}, []string{"R470 is the last branch"}},
		{exitFound, []string{"--gpu", "MI250"}, []string{"torch-wrong-accelerator", "for     MI250", "this node has AMD GPUs"}},
		{exitUsage, []string{"--gpu", "910B"}, []string{"Huawei Ascend NPU"}},
		{exitUsage, []string{"--gpu", "910B", "--lang", "zh"}, []string{"昇腾"}},
		{exitUsage, []string{"--gpu", "MI250,H100"}, []string{"GPUs of several makers"}},
		{exitUsage, []string{"--gpu", "H150"}, []string{"is not known here"}},
		{exitOK, []string{"--gpu", "gpu:a100:4"}, []string{"(8.0)"}},
		{exitOK, []string{"--gpu", "NEW=9.0"}, []string{"NEW (9.0)"}},
	} {
		code, out, errs := ncclinic(t, nil, append([]string{"check", facts}, c.args...)...)
		if code != c.code {
			t.Errorf("%v: exit %d, want %d\n%s%s", c.args, code, c.code, out, errs)
		}
		must(t, strings.Join(c.args, " "), out+errs, c.says...)
	}
}
