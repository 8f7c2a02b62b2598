package plan

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestWish(t *testing.T) {
	for _, c := range []struct {
		wish, tag, takes, not string
		bad                   bool
	}{
		{wish: "2.6.0", takes: "2.6.0", not: "2.6.1"},
		{wish: "2.7", takes: "2.7.1", not: "2.8.0"},
		{wish: "==2.6.0+cu124", tag: "cu124", takes: "2.6.0", not: "2.7.0"},
		{wish: "torch>=2.4,<2.8", takes: "2.7.1", not: "2.8.0"},
		{wish: "~=2.5.0", takes: "2.5.1", not: "2.6.0"},
		{wish: "cu126", tag: "cu126", takes: "2.14.1"},
		{wish: "newest", takes: "2.15.0"},
		{wish: "2.6.0+cpu", bad: true},
		{wish: "new", bad: true},
		{wish: "2.x", bad: true},
		{wish: ">=", bad: true},
		{wish: "2.6.0; rm -rf /", bad: true},
	} {
		w, err := parseWish(c.wish)
		if (err != nil) != c.bad {
			t.Errorf("%q: %v", c.wish, err)
			continue
		}
		if c.bad {
			continue
		}
		if w.tag != c.tag || !w.takes(c.takes) || c.not != "" && w.takes(c.not) {
			t.Errorf("%q: tag %q, takes %s %v, takes %s %v", c.wish, w.tag, c.takes, w.takes(c.takes), c.not, w.takes(c.not))
		}
	}
}

func TestImpossible(t *testing.T) {
	node := []Node{{Driver: "470.82.01", GPUs: []GPU{{Name: "A100"}}}}
	for _, c := range []struct {
		name         string
		in           Input
		why, nearest string
	}{
		{"cu12 on an R470 driver", Input{Python: "3.11", Nodes: node, Wish: "2.9.1"}, "driver-compat", "2.7.1+cu118"},
		{"newer than the table", Input{Python: "3.11", Nodes: node, Wish: "2.99"}, "wish-beyond", "2.7.1+cu118"},
		{"newer than the table, exact", Input{Python: "3.11", Nodes: node, Wish: "3.0.0"}, "wish-beyond", "2.7.1+cu118"},
		{"older than the table", Input{Python: "3.11", Nodes: node, Wish: "1.13.1"}, "before-table", "2.6.0+cu118"},
		{"never released", Input{Python: "3.11", Nodes: node, Wish: "2.6.7"}, "no-release", "2.6.0+cu118"},
		{"a build that is not made", Input{Python: "3.11", Nodes: []Node{{Driver: "580.65.06", GPUs: []GPU{{Name: "A100"}}}}, Wish: "2.15.0+cu126"}, "no-build", "2.14.1+cu126"},
		{"no wheel for this Python", Input{Python: "3.14", Nodes: []Node{{Driver: "580.65.06", GPUs: []GPU{{Name: "A100"}}}}, Wish: "2.6.0"}, "python", "2.9.1+cu130"},
		{"glibc of CentOS 7", Input{Python: "3.11", Glibc: "2.17", Nodes: []Node{{Driver: "535.161.08", GPUs: []GPU{{Name: "A100"}}}}, Wish: "2.7.1"}, "glibc", "2.6.0+cu124"},
		{"Blackwell in a release before it", Input{Python: "3.11", Nodes: []Node{{Driver: "580.65.06", GPUs: []GPU{{Name: "B200"}}}}, Wish: "2.6.0"}, "arch", "2.7.1+cu128"},
		{"V100 beside B200", Input{Python: "3.11", Nodes: []Node{{Driver: "580.65.06", GPUs: []GPU{{Name: "V100"}, {Name: "B200"}}}}, Wish: "2.14.1"}, "arch", "2.10.0+cu128"},
		{"macOS", Input{OS: "darwin", Wish: "2.6.0"}, "os", ""},
		{"Jetson", Input{Board: "NVIDIA Orin", Wish: "2.6.0"}, "board", ""},
		{"POWER", Input{Machine: "ppc64le"}, "machine", ""},
		{"a pin in the way", Input{Python: "3.11", Nodes: node, Pins: ParsePins("requirements.txt", "torch>=2.9\n")}, "driver-compat", "2.7.1+cu118"},
	} {
		p := mustMake(t, c.in)
		if len(p.Impossible) == 0 || p.Impossible[0].ID != c.why {
			t.Errorf("%s: impossible %+v, want %s", c.name, p.Impossible, c.why)
			continue
		}
		got := ""
		if len(p.Options) > 0 {
			got = p.Options[0].Torch + "+" + p.Options[0].Tag
		}
		if got != c.nearest {
			t.Errorf("%s: nearest %q, want %q", c.name, got, c.nearest)
		}
	}
}

func TestUnknown(t *testing.T) {
	p := mustMake(t, Input{Python: "3.11", Nodes: []Node{{Driver: "580.65.06", GPUs: []GPU{{Name: "H150"}}}}})
	if len(p.Unknown) != 1 || p.Unknown[0].ID != "ask-gpu-near" || p.Unknown[0].Args["near"] != "H100" {
		t.Errorf("unknown GPU: %+v", p.Unknown)
	}
	if len(p.Options) == 0 || p.Options[0].Certainty != possible {
		t.Errorf("an unknown GPU is not a proven option: %+v", p.Options)
	}
	p = mustMake(t, Input{Python: "3.11"})
	if len(p.Unknown) != 2 || len(p.Options) == 0 || p.Options[0].Certainty != possible || p.Options[0].How != Unsaid {
		t.Errorf("nothing known of the node: %+v %+v", p.Unknown, p.Options)
	}
}

func TestNotes(t *testing.T) {
	ids := func(in Input) string {
		var out []string
		for _, n := range mustMake(t, in).Notes {
			out = append(out, n.ID)
		}
		return strings.Join(out, " ")
	}
	for want, in := range map[string]Input{
		"cap-differs":       {Python: "3.11", Nodes: []Node{{Driver: "580.65.06", GPUs: []GPU{{Name: "A100", Cap: "9.0"}}}}},
		"grace-x86":         {Python: "3.11", Machine: "x86_64", Nodes: []Node{{Driver: "580.65.06", GPUs: []GPU{{Name: "GH200"}}}}},
		"driver-before-gpu": {Python: "3.11", Nodes: []Node{{Driver: "470.82.01", GPUs: []GPU{{Name: "H100"}}}}},
		"nccl-arm-cas":      {Python: "3.11", Machine: "aarch64", Have: Have{Version: "2.12.0+cu130", NCCL: "2.29.2"}, Nodes: []Node{{Driver: "580.65.06", GPUs: []GPU{{Name: "GH200"}}}}},
		"pin-index pin-cpu": {Python: "3.11", Nodes: []Node{{Driver: "580.65.06", GPUs: []GPU{{Name: "A100"}}}},
			Pins: ParsePins("requirements.txt", "--index-url https://download.pytorch.org/whl/cpu\ntorch==2.6.0+cpu\n")},
	} {
		if got := ids(in); got != want {
			t.Errorf("notes %q, want %q", got, want)
		}
	}
}

func TestForward(t *testing.T) {
	in := Input{Python: "3.11", Nodes: []Node{{Driver: "535.161.08", GPUs: []GPU{{Name: "H100"}}}}, Wish: "2.15.0"}
	if p := mustMake(t, in); len(p.Impossible) == 0 || p.Options[0].Torch != "2.14.1" {
		t.Errorf("without leave: %+v", p.Options)
	}
	in.Forward = true
	p := mustMake(t, in)
	if len(p.Options) == 0 || p.Options[0].How != Forward || p.Options[0].Certainty != possible || p.Options[0].Needs[0].Args["package"] != "cuda-compat-13-2" {
		t.Errorf("with leave: %+v", p.Options)
	}
	in.Nodes[0].GPUs[0].Name = "NVIDIA GeForce RTX 4090"
	if p := mustMake(t, in); len(p.Impossible) == 0 || p.Impossible[0].ID != "driver-consumer" {
		t.Errorf("GeForce: %+v", p.Impossible)
	}
	in = Input{Python: "3.11", Nodes: []Node{{Driver: "535.161.08", Compat: "580.95.05", GPUs: []GPU{{Name: "H100"}}}}, Wish: "2.14.1"}
	if p := mustMake(t, in); len(p.Options) == 0 || p.Options[0].Tag != "cu130" {
		t.Errorf("a cuda-compat that is there: %+v", p.Options)
	}
}

func TestPins(t *testing.T) {
	for _, c := range []struct{ file, text, spec string }{
		{"requirements.txt", "numpy\ntorch==2.6.0+cu124  # gpu\n", "==2.6.0"},
		{"requirements.txt", "torch>=2.1,<2.5; python_version < '3.13'\n", ">=2.1,<2.5"},
		{"requirements.txt", "torchvision==0.21.0\ntorch-geometric==2.5\ntorch_scatter\n", "-"},
		{"requirements.txt", "torch\n", ""},
		{"pyproject.toml", "[project]\ndependencies = [\"torch>=2.4\", \"torchmetrics>=1\"]\n", ">=2.4"},
		{"pyproject.toml", "[tool.poetry.dependencies]\ntorch = \"^2.3\"\n", ">=2.3,<3"},
		{"pyproject.toml", "[tool.poetry.dependencies]\ntorch = {version = \"~2.6\", source = \"x\"}\n", ">=2.6,<2.7"},
		{"pixi.toml", "[dependencies]\npytorch = \"2.6.0.*\"\n", "==2.6.0.*"},
		{"environment.yml", "dependencies:\n  - python=3.11\n  - pytorch=2.5.1=*cuda*\n", "==2.5.1.*"},
		{"environment.yml", "dependencies:\n  - pip:\n    - torch==2.6.0\n", "==2.6.0"},
		{"environment.yml", "dependencies:\n  - pytorch-lightning=2.5\n  - conda-forge::pytorch>=2.4\n", ">=2.4"},
	} {
		got := "-"
		for _, p := range ParsePins(c.file, c.text) {
			if p.From == "" {
				got = p.Spec
			}
		}
		if got != c.spec {
			t.Errorf("%s %q: %q, want %q", c.file, c.text, got, c.spec)
		}
	}
}

func TestParseWheel(t *testing.T) {
	for name, want := range map[string]Wheel{
		"torch-2.6.0+cu124-cp311-cp311-linux_x86_64.whl":                                           {"2.6.0", "cu124", "3.11", "x86_64", ""},
		"https://x/whl/cu126/torch-2.9.1%2Bcu126-cp313-cp313t-manylinux_2_28_aarch64.whl#sha256=0": {"2.9.1", "cu126", "3.13t", "aarch64", "2.28"},
		"torch-2.10.0-3-cp310-cp310-manylinux_2_28_x86_64.whl":                                     {"2.10.0", "", "3.10", "x86_64", "2.28"},
		"torch-2.6.0-cp311-none-macosx_11_0_arm64.whl":                                             {},
		"torchvision-0.21.0-cp311-cp311-linux_x86_64.whl":                                          {},
		"torch-2.6.0.whl": {},
	} {
		got, ok := ParseWheel(name)
		if ok != (want != Wheel{}) || ok && got != want {
			t.Errorf("%s: %+v %v", name, got, ok)
		}
	}
}

func TestIndex(t *testing.T) {
	ix := ParseIndex("mirror", `<a href="torch-2.6.0-cp311-cp311-manylinux1_x86_64.whl">x</a> torch-2.16.0+cu134-cp311-cp311-manylinux_2_28_x86_64.whl`)
	p := mustMake(t, Input{Python: "3.11", Machine: "x86_64", Index: ix, Have: Have{Version: "2.6.0+cpu", Accel: "cpu"}, Nodes: []Node{{Driver: "550.54.15", GPUs: []GPU{{Name: "A100"}}}}})
	if len(p.Options) != 1 || p.Options[0].Requirement() != "2.6.0" || p.Options[0].Tag != "cu124" {
		t.Fatalf("%+v", p.Options)
	}
	if c := p.Options[0].Steps[1].Commands; !strings.Contains(c[0], "--force-reinstall --no-deps 'torch==2.6.0'") || len(c) != 2 {
		t.Errorf("over a CPU build of the same version the untagged wheel needs force: %q", c)
	}
	if ParseIndex("x", "numpy-2.0-cp311-cp311-linux_x86_64.whl") != nil {
		t.Error("an index without torch")
	}
}

func TestModules(t *testing.T) {
	avail := "------ /apps/modules ------\n   CUDA/12.4.0    PyTorch/2.1.2-foss-2023a    PyTorch/2.1.2-foss-2023a-CUDA-12.1.1 (D)\n   PyTorch/2.6.0-foss-2024a-CUDA-12.6.0    pytorch-lightning/2.2\n\n  Where:\n   D:  Default Module\n"
	p := mustMake(t, Input{Python: "3.11", Nodes: []Node{{Driver: "535.161.08", GPUs: []GPU{{Name: "A100"}}}}, Wish: "2.6.0",
		Env: Env{Tool: Module, Modules: ParseModules(avail), Loaded: []string{"PyTorch/2.1.2-foss-2023a"}}})
	if len(p.Options) == 0 {
		t.Fatal("no option")
	}
	if d := cmp.Diff([]string{"module unload PyTorch/2.1.2-foss-2023a", "module load PyTorch/2.6.0-foss-2024a-CUDA-12.6.0"}, p.Options[0].Steps[0].Commands); d != "" {
		t.Error(d)
	}
}

func TestEditPyproject(t *testing.T) {
	in := "[project]\nname = \"x\"\ndependencies = [\n  \"torch>=2.1\",\n  \"torch-geometric>=2\",\n  \"torchvision\",\n  \"torchmetrics\",\n]\n\n[tool.uv.sources]\ntorch = [\n  { index = \"pytorch-cpu\" },\n]\nmine = { path = \"../mine\" }\n"
	want := "[project]\nname = \"x\"\ndependencies = [\n  \"torch==2.6.0+cu124\",\n  \"torch-geometric>=2\",\n  \"torchvision==0.21.0+cu124\",\n  \"torchmetrics\",\n]\n\n[tool.uv.sources]\ntorch = { index = \"pytorch-cu124\" }\ntorchvision = { index = \"pytorch-cu124\" }\nmine = { path = \"../mine\" }\n\n[[tool.uv.index]]\nname = \"pytorch-cu124\"\nurl = \"https://download.pytorch.org/whl/cu124\"\nexplicit = true\n"
	reqs := map[string]string{"torch": "2.6.0+cu124", "torchvision": "0.21.0+cu124"}
	got := editPyproject(in, "pytorch-cu124", PyTorchIndex+"/cu124", reqs)
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff(got, editPyproject(got, "pytorch-cu124", PyTorchIndex+"/cu124", reqs)); d != "" {
		t.Errorf("twice: %s", d)
	}
}

// FuzzInputs: no foreign text makes the readers panic or the plan fail.
func FuzzInputs(f *testing.F) {
	f.Add("torch>=2.1,<2.5", "requirements.txt", "torch-2.6.0+cu124-cp311-cp311-linux_x86_64.whl")
	f.Add("[project]\ndependencies=[\"torch\"]", "pyproject.toml", "PyTorch/2.1.2 (D)")
	f.Add("  - pytorch=2.5=*cpu*", "environment.yml", "gpu:a100:4")
	f.Fuzz(func(t *testing.T, text, name, more string) {
		in := Input{Python: more, Pins: ParsePins(name, text), Index: ParseIndex(name, more), Wish: name, Nodes: []Node{{Driver: text, Compat: more, GPUs: []GPU{{Name: more, Cap: name}}}},
			Have: Have{Version: text, Accel: "cuda", CUDA: more, NCCL: name}, Env: Env{Tool: UVProject, Text: text, Modules: ParseModules(more), Python: name}}
		p, err := Make(in)
		if err != nil {
			return
		}
		if _, err := p.JSON("zh"); err != nil {
			t.Error(err)
		}
		editPyproject(text, "x", "y", map[string]string{"torch": "1"})
	})
}
