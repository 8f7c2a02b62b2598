package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/ncclinic/ncclinic/internal/testenv"
)

// TestNodesInContainer: the probes start through a real container runtime, in an
// image made from a folder, and see that image instead of the host.
func TestNodesInContainer(t *testing.T) {
	if _, err := exec.LookPath("ch-run"); err != nil {
		testenv.Need(t, "ch-run", "lab/deps.sh packages")
	}
	debian(t)
	c := cluster8(t)
	image := temp(t)
	for _, d := range []string{"bin", "dev", "etc", "home", "mnt", "proc", "run", "sys", "tmp", "usr/bin", "var"} {
		if err := os.MkdirAll(filepath.Join(image, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, f := range []string{"passwd", "group", "hosts", "resolv.conf"} {
		write(t, filepath.Join(image, "etc", f), "")
	}
	write(t, filepath.Join(image, "etc", "os-release"), "ID=clinic\nPRETTY_NAME=\"image of the test\"\n")
	env := []string{"USER=root"} // ch-run wants it
	host := checkNodes(t, c, env, "--no-reach")
	if host.cause() != "torch-cpu-build" {
		t.Fatalf("on the host: %q\n%s", host.cause(), host.text)
	}
	a := checkNodes(t, c, env, "--no-reach", "--prefix", "ch-run -c / "+image+" --")
	if a.Nodes.Reported != len(c.Nodes) || len(a.Nodes.Missing) != 0 {
		t.Fatalf("%+v\n%s", a.Nodes, a.text)
	}
	if slices.Contains(a.ids(), "torch-cpu-build") { // the image has no Python at all
		t.Errorf("the host's torch is seen: %v", a.ids())
	}
}
