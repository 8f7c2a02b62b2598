package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ncclinic/ncclinic/internal/testenv"
)

// TestFixPoetry: the printed commands, run by real poetry, put the CUDA build into
// a project whose lock file holds the CPU build; poetry sync keeps it, and a
// second run changes nothing.
func TestFixPoetry(t *testing.T) {
	l := newFixLab(t)
	poetry := filepath.Join(testenv.Cache(t, "poetry"), "bin", "poetry")
	bin := filepath.Join(l.dir, "pbin")
	if err := os.Mkdir(bin, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(poetry, filepath.Join(bin, "poetry")); err != nil {
		t.Fatal(err)
	}
	env := []string{"PATH=" + bin + ":" + filepath.Dir(program) + ":/usr/bin:/bin", "POETRY_VIRTUALENVS_IN_PROJECT=true", "POETRY_NO_INTERACTION=1", "POETRY_KEYRING_ENABLED=false",
		"POETRY_CACHE_DIR=" + filepath.Join(l.dir, "poetry-cache"), "POETRY_INSTALLER_NO_BINARY=", "PYTHON_KEYRING_BACKEND=keyring.backends.null.Keyring"}
	dir := filepath.Join(l.dir, "project")
	write(t, filepath.Join(dir, "pyproject.toml"), `[project]
name = "train"
version = "0.1"
requires-python = "==3.11.*"
dependencies = ["helper-lib (==1.0)", "torch (==2.6.0)"]

[tool.poetry]
package-mode = false

[[tool.poetry.source]]
name = "mirror"
url = "https://packages.invalid/simple"
priority = "primary"

[[tool.poetry.source]]
name = "pytorch-cpu"
url = "https://download.pytorch.org/whl/cpu"
priority = "explicit"

[tool.poetry.dependencies]
torch = { source = "pytorch-cpu" }
`)
	sh := func(line string) (string, int) { return l.sh(dir, line, env...) }
	if out, code := sh("poetry install -q"); code != 0 {
		t.Fatal(out)
	}
	py := filepath.Join(dir, ".venv", "bin", "python")
	if got := l.imports(py); !strings.HasPrefix(got, "2.6.0+cpu ") {
		t.Fatalf("the project starts with %s", got)
	}
	// What people type: it is gone with the next sync.
	sh("poetry run python -m ensurepip -q; poetry run python -m pip install -q 'torch==2.6.0+cu124' --index-url https://download.pytorch.org/whl/cu124")
	if got := l.imports(py); !strings.HasPrefix(got, "2.6.0+cu124 ") {
		t.Errorf("pip in the project's environment: %s", got)
	}
	if out, code := sh("poetry sync -q"); code != 0 || !strings.HasPrefix(l.imports(py), "2.6.0+cpu ") {
		t.Errorf("poetry sync kept %s\n%s", l.imports(py), out)
	}
	script, code := sh("ncclinic fix --python .venv/bin/python --project pyproject.toml --driver 550.54.15 --gpu A100 --format sh")
	if code != 1 || !strings.Contains(script, "poetry ") {
		t.Fatalf("fix: exit %d\n%s", code, script)
	}
	write(t, filepath.Join(dir, "fix.sh"), script)
	for run := 1; run <= 2; run++ {
		if out, code := sh("sh fix.sh && poetry sync"); code != 0 {
			text, _ := os.ReadFile(filepath.Join(dir, "pyproject.toml"))
			t.Fatalf("run %d: exit %d\n%s\n%s\n%s", run, code, out, script, text)
		}
		if got := l.imports(py); !strings.HasPrefix(got, "2.6.0+cu124 ") {
			t.Fatalf("run %d: imports %s\n%s", run, got, script)
		}
	}
}
