package listing

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ncclinic/ncclinic/internal/fact"
	"github.com/ncclinic/ncclinic/internal/fact/kind"
)

// feed reads lines; those that begin with "$ " are commands.
func feed(path, text string) *fact.Listing {
	out := &fact.Listing{}
	p := NewParser(path)
	for i, l := range strings.Split(text, "\n") {
		pl := fact.Place{Line: i + 1, Rank: -1, Local: -1, Task: -1}
		if c, ok := strings.CutPrefix(l, "$ "); ok {
			p.Command(fact.ShellCmd{Place: pl, Text: c})
			continue
		}
		p.Feed(l, l, pl, false, out, func(s string) string { return s })
	}
	return out
}

// TestForms reads each kind of listing; a fact is shown as kind name version origin @node.
func TestForms(t *testing.T) {
	for _, c := range []struct{ name, path, in, want string }{
		{"prints", "a", "$ python -c 'import torch; print(torch.__version__); print(torch.version.cuda, torch.cuda.is_available())'\nsome warning\n2.4.0\nNone False", "torch  2.4.0;torch-cuda  None;cuda-available  False"},
		{"print with words", "a", "$ python -c 'import torch; print(\"x\", torch.version.cuda)'\n12 7.5", ""},
		{"session", "a", ">>> torch.version.cuda\n'12.1'\n>>> torch.version.cuda\n>>> x", "torch-cuda  12.1;torch-cuda  None"},
		{"pip show", "a", "Name: torch\nVersion: 2.4.0\nSummary: x", "pkg torch 2.4.0"},
		{"another package", "a", "Name: requests\nVersion: 2.4.0", ""},
		{"uv.lock", "uv.lock", "name = \"torch\"\nversion = \"2.4.0\"\nsource = { registry = \"https://download.pytorch.org/whl/cpu\" }", "pkg torch 2.4.0 lock;pkg torch 2.4.0 lock+cpu"},
		{"explicit", "a", "https://conda.anaconda.org/conda-forge/linux-64/pytorch-2.4.1-cpu_x_0.conda", "pkg pytorch 2.4.1 cpu_x_0"},
		{"recipe", "Dockerfile", "RUN pip install torch --index-url https://download.pytorch.org/whl/cpu", "pkg torch  image+cpu"},
		{"command in a log", "job.log", "pip install torch --index-url https://download.pytorch.org/whl/cpu", ""},
		{"clush", "a", "$ clush -b python -c 'import torch; print(torch.__version__)'\n---------------\nn[1-2]\n---------------\n2.4.0\n", "torch  2.4.0 @n[1-2]"},
		{"a ruler", "a", "----------------\nSummary\n----------------\n", ""},
		{"sacct -P", "a", "81|OUT_OF_MEMORY|0:125", "sacct 81 OUT_OF_MEMORY 0:125"},
		{"scontrol", "a", "   JobState=NODE_FAIL Reason=NodeDown", "sacct  NODE_FAIL"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got []string
			for _, s := range feed(c.path, c.in).Facts {
				if s.Kind == kind.PkgEnv {
					continue
				}
				g := strings.TrimRight(s.Kind+" "+s.Name+" "+s.V+" "+s.Aux, " ")
				if s.Node != "" {
					g += " @" + s.Node
				}
				got = append(got, g)
			}
			if d := cmp.Diff(c.want, strings.Join(got, ";")); d != "" {
				t.Error(d)
			}
		})
	}
}

func FuzzFeed(f *testing.F) {
	f.Add("Name: torch\nVersion: 2\nLocation: /x/lib/python3/site-packages")
	f.Add("$ python -c 'print(torch.__file__, torch.cuda.nccl.version())'\n/a/torch/__init__.py (2, 1, 5)")
	f.Add(">>> torch.version.cuda\n>>> \nIn [1]: torch.__version__\nOut[1]: '2'")
	f.Add("------\nn1\n------\nn1 | CHANGED | rc=0 >>\n== n2 ==")
	f.Add("name = \"torch\"\nsource = { registry = \"https://x/whl/cpu\" }")
	f.Add(" - torch==1\nUninstalled 1 package in 1ms\n + torch==2\n  pytorch a::pytorch-1-b --> c::pytorch-2-d")
	f.Fuzz(func(t *testing.T, in string) {
		for _, s := range feed("uv.lock", in).Facts {
			if len(s.Text) > 400 || len(s.V) > 600 {
				t.Fatalf("fact of %d bytes", len(s.Text)+len(s.V))
			}
		}
	})
}
