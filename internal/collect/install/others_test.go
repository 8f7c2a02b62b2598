package install

import (
	"context"
	"testing"
	"testing/fstest"

	"github.com/ncclinic/ncclinic/internal/fact"
	"github.com/ncclinic/ncclinic/internal/source"
)

// TestOthersTorch holds that an environment that a variable names is asked for
// its torch, and that one without any is told apart from one nobody looked at.
func TestOthersTorch(t *testing.T) {
	exe := &fstest.MapFile{Data: []byte("\x7fELF"), Mode: 0o755}
	m := &source.Machine{
		FS: fstest.MapFS{
			"usr/bin/python3":              exe,
			"usr/bin/python3.11":           exe,
			"usr/lib/python3.11/os.py":     &fstest.MapFile{},
			"home/u/venv/bin/python":       exe,
			"home/u/venv/pyvenv.cfg":       &fstest.MapFile{Data: []byte("home = /usr/bin\nversion = 3.11.2\n")},
			"home/u/venv/lib/python3.11/x": &fstest.MapFile{},
			"home/u/venv/lib/python3.11/site-packages/torch/version.py": &fstest.MapFile{
				Data: []byte("__version__ = '2.6.0+cu124'\ncuda: Optional[str] = '12.4'\n")},
			"home/u/conda/bin/python":           exe,
			"home/u/conda/conda-meta/history":   &fstest.MapFile{},
			"home/u/conda/lib/python3.12/os.py": &fstest.MapFile{},
		},
		Env:  map[string]string{"PATH": "/usr/bin", "VIRTUAL_ENV": "/home/u/venv", "CONDA_PREFIX": "/home/u/conda"},
		Home: "/home/u",
	}
	var b fact.Bundle
	if err := Collect(context.Background(), m, Options{}, &b); err != nil {
		t.Fatal(err)
	}
	got := map[string]fact.PythonRef{}
	for _, o := range b.Python.Others {
		got[o.By] = o
	}
	if o := got[fact.ByVirtualEnv]; o.Torch.Or("") != "2.6.0+cu124" || o.Accel != fact.AccelCUDA {
		t.Errorf("venv: torch %+v, accel %q", o.Torch, o.Accel)
	}
	if o := got[fact.ByCondaPrefix]; !o.Torch.IsAbsent() {
		t.Errorf("conda: torch %+v, want absent", o.Torch)
	}
}
