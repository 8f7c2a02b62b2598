package plan

import (
	"strings"
	"testing"

	"github.com/ncclinic/ncclinic/internal/fact"
)

func one(p *Plan) string {
	if len(p.Options) == 0 {
		return ""
	}
	return p.Options[0].Torch + "+" + p.Options[0].Tag
}

func reasons(rs []Reason) string {
	var ids []string
	for _, r := range rs {
		ids = append(ids, r.ID)
	}
	return strings.Join(ids, " ")
}

// TestDroppedDrivers: a driver that no longer knows the GPU is a contradiction;
// the nearest is what runs on the last branch for it.
func TestDroppedDrivers(t *testing.T) {
	for _, c := range []struct{ driver, gpu, impossible, option string }{
		{"590.44.01", "V100", "driver-dropped-gpu", "2.14.1+cu126"},
		{"595.45.04", "P100", "driver-dropped-gpu", "2.14.1+cu126"},
		{"590.48.01", "M60", "driver-dropped-gpu", "2.14.1+cu126"},
		{"590.48.01", "1080Ti", "driver-dropped-gpu", "2.14.1+cu126"},
		{"580.126.09", "V100", "", "2.14.1+cu126"},
		{"550.54.14", "K80", "driver-dropped-gpu", "2.7.1+cu118"},
		{"475.0", "K80", "driver-dropped-gpu", "2.7.1+cu118"},
		{"470.256.02", "K80", "", "2.7.1+cu118"},
		{"590.44.01", "T4", "", "2.15.0+cu132"},
		{"590.44.01", "H100", "", "2.15.0+cu132"},
	} {
		p := mustMake(t, Input{OS: "linux", Python: "3.12", Nodes: []Node{{Driver: c.driver, GPUs: []GPU{{Name: c.gpu}}}}})
		if c.gpu == "K80" {
			p = mustMake(t, Input{OS: "linux", Python: "3.11", Nodes: []Node{{Driver: c.driver, GPUs: []GPU{{Name: c.gpu}}}}})
		}
		if got := reasons(p.Impossible); got != c.impossible || one(p) != c.option {
			t.Errorf("%s %s: impossible %q, option %s; want %q, %s", c.driver, c.gpu, got, one(p), c.impossible, c.option)
		}
		if len(p.Options) > 0 && (p.Options[0].Certainty == proven) != (c.impossible == "") {
			t.Errorf("%s %s: certainty %s", c.driver, c.gpu, p.Options[0].Certainty)
		}
		if p.Nodes[0].Driver != c.driver {
			t.Errorf("%s: the plan shows driver %s", c.driver, p.Nodes[0].Driver)
		}
	}
}

// TestOtherMakers: accelerators of others get no CUDA wheel.
func TestOtherMakers(t *testing.T) {
	for _, c := range []struct{ gpus, machine, wish, impossible, option string }{
		{"MI250", "", "", "", "2.14.1+rocm7.2"},
		{"MI300X", "", "2.9.1", "", "2.9.1+rocm6.4"},
		{"gfx90a", "", "2.6.0", "", "2.6.0+rocm6.2.4"},
		{"MI250", "", "2.6.0+rocm6.1", "", "2.6.0+rocm6.1"},
		{"MI355X", "", "2.9.1", "arch", "2.10.0+rocm7.1"},
		{"MI250", "", "cu126", "amd-cuda", "2.14.1+rocm7.2"},
		{"MI250", "aarch64", "", "rocm-machine", ""},
		{"MI250", "", "2.15.0", "no-rocm", "2.14.1+rocm7.2"},
		{"RX 7900 XTX", "", "rocm6.3", "", "2.7.1+rocm6.3"},
		{"Radeon", "", "", "", "2.14.1+rocm7.2"},
		{"H100", "", "rocm6.4", "nvidia-rocm", "2.15.0+cu132"},
		{"MI250,H100", "", "", "makers-mixed", ""},
		{"910B", "", "", "maker-ascend", ""},
		{"ascend910b", "aarch64", "", "maker-ascend", ""},
		{"gaudi2", "", "", "maker-gaudi", ""},
		{"Max 1550", "", "", "maker-intel", ""},
		{"Apple M2 Ultra", "", "", "maker-apple", ""},
		{"mlu370", "", "", "maker-other", ""},
		{"H100,910B", "", "", "maker-ascend", ""},
	} {
		in := Input{OS: "linux", Machine: c.machine, Python: "3.12", Wish: c.wish, Nodes: []Node{{Driver: "595.45.04"}}}
		for _, g := range strings.Split(c.gpus, ",") {
			in.Nodes[0].GPUs = append(in.Nodes[0].GPUs, GPU{Name: g})
		}
		p := mustMake(t, in)
		if got := reasons(p.Impossible); got != c.impossible || one(p) != c.option {
			t.Errorf("%s %s %s: impossible %q, option %s; want %q, %s", c.gpus, c.machine, c.wish, got, one(p), c.impossible, c.option)
			continue
		}
		for _, o := range p.Options {
			for _, s := range o.Steps {
				for _, cmd := range s.Commands {
					if o.ROCm != "" && (strings.Contains(cmd, "cuda ==") || strings.Contains(cmd, "/cu1")) {
						t.Errorf("%s: %s", c.gpus, cmd)
					}
				}
			}
			if o.ROCm != "" && o.Certainty != possible {
				t.Errorf("%s: a driver that nobody looked at makes no proven option", c.gpus)
			}
		}
	}
}

// TestEarlyDriver: a driver older than the GPU leaves no option proven.
func TestEarlyDriver(t *testing.T) {
	p := mustMake(t, Input{OS: "linux", Python: "3.11", Nodes: []Node{{Driver: "470.82.01", GPUs: []GPU{{Name: "H100"}}}}})
	if reasons(p.Notes) != "driver-before-gpu" || len(p.Options) == 0 || p.Options[0].Certainty != possible {
		t.Errorf("%+v", p)
	}
}

func TestROCmCommands(t *testing.T) {
	in := Input{OS: "linux", Python: "3.11", Have: Have{Version: "2.9.1+rocm6.4", Accel: "rocm"}, Nodes: []Node{{GPUs: []GPU{{Name: "MI250X"}}}}, Env: Env{Python: "/v/bin/python", Prefix: "/v", Kind: "venv", Tool: Conda}}
	if p := mustMake(t, in); !p.Options[0].Installed || len(p.Options[0].Steps) != 1 {
		t.Errorf("what is there and does is kept: %+v", p.Options[0])
	}
	in.Have = Have{Version: "2.9.1+cu128", CUDA: "12.8", Accel: "cuda"}
	p := mustMake(t, in)
	var all []string
	for _, s := range p.Options[0].Steps {
		all = append(all, s.Commands...)
	}
	text := strings.Join(all, "\n")
	for _, want := range []string{"'torch==2.9.1+rocm6.4' --index-url https://download.pytorch.org/whl/rocm6.4", "torch.version.hip"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	if reasons(p.Notes) != "rocm-tool" {
		t.Errorf("notes %s", reasons(p.Notes))
	}
	in.Env.Tool = Apptainer
	p = mustMake(t, in)
	if s := p.Options[0].Steps; !strings.Contains(s[len(s)-1].Commands[2], "--rocm") {
		t.Errorf("%q", s[len(s)-1].Commands)
	}
}

func TestEmptyWish(t *testing.T) {
	for wish, empty := range map[string]bool{">=2.4,<2.3": true, ">2.6,<=2.6": true, "==2.4,==2.5": true, ">=2.7,==2.6": true, "~=2.8,<2.7": true, ">=2.4,<2.5": false, ">=2.6,<=2.6": false, "==2.6.*,<2.7": false, "!=2.6,>2.5": false} {
		p := mustMake(t, Input{OS: "linux", Python: "3.11", Wish: wish, Nodes: []Node{{Driver: "580.65.06", GPUs: []GPU{{Name: "A100"}}}}})
		if got := reasons(p.Impossible) == "wish-empty"; got != empty {
			t.Errorf("%s: %q", wish, reasons(p.Impossible))
		}
		if len(p.Options) == 0 {
			t.Errorf("%s: no option", wish)
		}
	}
}

// TestOwnPython: an interpreter of pyenv is the user's own, not the system's.
func TestOwnPython(t *testing.T) {
	known := func(s string) fact.Val[string] { return fact.Of(s, fact.Evidence{}) }
	for exe, kind := range map[string]string{"/home/u/.pyenv/versions/3.11.7/bin/python": "pyenv", "/usr/bin/python3": "system", "/apps/python/3.11/bin/python3": "system", "/home/u/.local/share/mise/installs/python/3.12/bin/python": "pyenv"} {
		b := &fact.Bundle{}
		b.Python.Exe, b.Python.Version = known(exe), known("3.11.7")
		b.Python.Prefix = known(strings.TrimSuffix(exe, "/bin/python"))
		in := FromBundle(b)
		if in.Env.Kind != kind {
			t.Errorf("%s: %s, want %s", exe, in.Env.Kind, kind)
		}
		in.Nodes = []Node{{Driver: "580.65.06", GPUs: []GPU{{Name: "A100"}}}}
		in.OS = "linux"
		p := mustMake(t, in)
		venv := false
		for _, s := range p.Options[0].Steps {
			venv = venv || strings.Contains(strings.Join(s.Commands, ""), "-m venv")
		}
		if venv != (kind == "system") {
			t.Errorf("%s: a venv is made: %v", exe, venv)
		}
	}
}
