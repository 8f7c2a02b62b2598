// Package e2e runs the program as people do, on real parts: a real Slurm
// cluster, real builds of PyTorch, NVIDIA's real user-space files. What it
// needs beyond Go is installed by lab/deps.sh; a test whose part is missing is
// skipped, or fails with NCCLINIC_NO_SKIP=1.
package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/ncclinic/ncclinic/internal/testenv"
	"github.com/ncclinic/ncclinic/lab"
)

var (
	workDir string // readable by every user, removed at the end
	program string // the binary under test
	started atomic.Bool
	cluster = sync.OnceValues(func() (*lab.Cluster, error) {
		started.Store(true)
		return lab.Start(context.Background(), lab.Options{})
	})
)

func TestMain(m *testing.M) { os.Exit(testMain(m)) }

func testMain(m *testing.M) (code int) {
	if err := prepare(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.RemoveAll(workDir)
		return 1
	}
	defer os.RemoveAll(workDir)
	code = m.Run()
	if started.Load() {
		if c, err := cluster(); err == nil {
			if err := c.Stop(); err != nil {
				fmt.Fprintln(os.Stderr, err)
				code = max(code, 1)
			}
		}
	}
	if eightStarted {
		if c, err := eight(); err == nil {
			if err := c.Stop(); err != nil {
				fmt.Fprintln(os.Stderr, err)
				code = max(code, 1)
			}
		}
	}
	return code
}

// prepare builds the program once and then forgets this process's environment:
// the machine's own Python tools, shims and settings must not leak into jobs.
func prepare() error {
	var err error
	if workDir, err = os.MkdirTemp("", "ncclinic-e2e-"); err != nil {
		return err
	}
	if err := os.Chmod(workDir, 0o755); err != nil {
		return err
	}
	program = filepath.Join(workDir, "bin", "ncclinic")
	build := exec.Command("go", "build", "-trimpath", "-o", program, "../cmd/ncclinic")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("go build: %w\n%s", err, out)
	}
	home := filepath.Join(workDir, "home")
	if err := os.Mkdir(home, 0o755); err != nil {
		return err
	}
	keep := []string{"HOME=" + home, "NCCLINIC_CACHE=" + lab.CacheDir(), "NCCLINIC_NO_SKIP=" + os.Getenv("NCCLINIC_NO_SKIP")}
	os.Clearenv()
	for _, kv := range append(loginEnv(), keep...) {
		k, v, _ := strings.Cut(kv, "=")
		if err := os.Setenv(k, v); err != nil {
			return err
		}
	}
	return nil
}

// loginEnv is the environment of a fresh login, without HOME.
func loginEnv() []string {
	return []string{"PATH=/usr/local/bin:/usr/bin:/bin", "LANG=C.UTF-8", "USER=user", "SHELL=/bin/bash"}
}

// slurm returns the cluster that all tests share.
func slurm(t *testing.T) *lab.Cluster {
	t.Helper()
	if m := lab.Missing(); len(m) > 0 {
		testenv.Need(t, strings.Join(m, ", "), "lab/deps.sh packages")
	}
	c, err := cluster()
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// prefix returns a folder that deps.sh makes: cuda, cuda-bare, cuda-no-nccl,
// aarch64 or nvidia.
func prefix(t *testing.T, name string) string {
	t.Helper()
	dir := filepath.Join(lab.CacheDir(), name)
	mark, _, _ := strings.Cut(name, "-")
	if _, err := os.Stat(filepath.Join(lab.CacheDir(), mark+".done")); err != nil {
		testenv.Need(t, dir, "lab/deps.sh")
	}
	return dir
}

const debianTorch = "/usr/lib/python3/dist-packages/torch"

// debian returns the interpreter that has Debian's torch.
func debian(t *testing.T) string {
	t.Helper()
	if _, err := os.Stat(filepath.Join(debianTorch, "version.py")); err != nil {
		testenv.Need(t, "python3-torch", "lab/deps.sh packages")
	}
	return "/usr/bin/python3"
}

// site is the package folder of a virtual environment or a prefix.
func site(prefix string) string { return filepath.Join(prefix, "lib/python3.11/site-packages") }

// write makes a file with its folders; "#!" makes it executable.
func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	mode := os.FileMode(0o644)
	if strings.HasPrefix(text, "#!") {
		mode = 0o755
	}
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
}

func link(t *testing.T, target, path string) {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.Symlink(target, path)); err != nil {
		t.Fatal(err)
	}
}

// temp is a folder that ordinary users can read too, unlike t.TempDir.
func temp(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp(workDir, "t")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// command runs a program that prepares or compares, and returns its output.
func command(t *testing.T, env []string, name string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Env = append(append(loginEnv(), "HOME="+os.Getenv("HOME")), env...)
	cmd.Dir = workDir
	var errOut strings.Builder
	cmd.Stderr = &errOut
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s%s", name, strings.Join(args, " "), err, out, errOut.String())
	}
	return strings.TrimSpace(string(out))
}

// imported asks the real interpreter which torch it would import.
func imported(t *testing.T, env []string, python string) string {
	t.Helper()
	return command(t, env, python, "-c", `import importlib.util as u; s = u.find_spec("torch"); print(s.origin if s else "none")`)
}

// copyDebianTorch puts a copy of Debian's CPU build into a site-packages folder.
func copyDebianTorch(t *testing.T, site string) {
	t.Helper()
	debian(t)
	if err := os.MkdirAll(site, 0o755); err != nil {
		t.Fatal(err)
	}
	command(t, nil, "cp", "-a", debianTorch, site+"/")
	// Its libraries are relative links out of the package.
	links, err := filepath.Glob(filepath.Join(site, "torch", "lib", "*"))
	if err != nil || len(links) == 0 {
		t.Fatalf("no libraries in Debian's torch: %v", err)
	}
	for _, l := range links {
		target, err := filepath.EvalSymlinks(filepath.Join(debianTorch, "lib", filepath.Base(l)))
		if os.IsNotExist(err) {
			continue // Debian's package has a link to a library that it does not ship
		}
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(os.Remove(l), os.Symlink(target, l)); err != nil {
			t.Fatal(err)
		}
	}
}
