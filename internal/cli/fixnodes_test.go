package cli

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const nodesFacts = "../../docs/example/nodes.facts.json"

// TestFixNodesFacts: the facts that check --nodes --save writes are those of the
// nodes in it, for the environment and as --facts.
func TestFixNodesFacts(t *testing.T) {
	code, out, errs := runFix(t, nodesFacts)
	must(t, "the verdict of check", out+errs, "env-differs-between-nodes", "--exclude=gpu017")
	if code != exitFound || strings.Contains(out, "no torch") {
		t.Errorf("exit %d\n%s%s", code, out, errs)
	}
	_, out, errs = runFix(t, nodesFacts, "--torch", "2.6.0")
	must(t, "a plan", oneLine(out+errs), "driver 535.161.08, NVIDIA H100 80GB HBM3 (9.0)", "now torch 2.6.0+cu124", "for Python 3.11, x86_64, glibc 2.35")

	const wheel = "../../docs/example/torch-2.6.0.facts.json"
	code, out, errs = runFix(t, wheel, "--facts", nodesFacts)
	must(t, "--facts", oneLine(out+errs), "driver 535.161.08, NVIDIA H100 80GB HBM3 (9.0)")
	if code == exitUsage {
		t.Errorf("exit %d\n%s", code, errs)
	}

	// Every kind of node counts, the oldest driver included.
	raw, err := os.ReadFile(nodesFacts)
	if err != nil {
		t.Fatal(err)
	}
	at := regexp.MustCompile(`"driver":\s*\{\s*"v":\s*\{\s*"version":\s*"(535\.161\.08)"`).FindAllSubmatchIndex(raw, -1)
	if len(at) < 2 {
		t.Fatal("the example has no two drivers")
	}
	last := at[len(at)-1]
	mixed := put(t, t.TempDir(), "mixed.json", slices.Concat(raw[:last[2]], []byte("470.82.01"), raw[last[3]:]))
	_, out, errs = runFix(t, wheel, "--facts", mixed)
	must(t, "two kinds", oneLine(out+errs), "driver 535.161.08", "driver 470.82.01", "cu124 needs driver 525.60.13 or newer")
}

// TestFixOtherPython: a version alone is planned for, whatever this machine lacks.
func TestFixOtherPython(t *testing.T) {
	for _, args := range [][]string{{"--python", "3.14"}, {"--python", "3.9", "--torch", "2.6.0"}} {
		_, out, errs := runFix(t, args...)
		must(t, strings.Join(args, " "), oneLine(out+errs), "FIX torch 2.", "for Python "+args[1], "Options")
	}
}

// TestFixByHandWins: facts of a login node are no obstacle where driver or GPU are said.
func TestFixByHandWins(t *testing.T) {
	login := put(t, t.TempDir(), "login.json", []byte(`{"schema":"ncclinic.facts/v1","host":{"arch":{"v":"x86_64"},"glibc":{"v":"2.28"}}}`))
	_, out, errs := runFix(t, demoFacts, "--facts", login, "--driver", "570", "--gpu", "A100")
	must(t, "by hand", oneLine(out+errs), "driver 570.86.10, A100 (8.0)", "glibc 2.28")
	if code, out, errs := runFix(t, demoFacts, "--facts", login); code != exitUsage || !strings.Contains(errs, "no NVIDIA driver and no GPU") {
		t.Errorf("exit %d\n%s%s", code, out, errs)
	}
}
