package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ncclinic/ncclinic/internal/testenv"
)

// TestFixModules: what real Lmod and real Environment Modules print as "module
// avail", terse and in columns, is read, and the printed commands, run in the
// same shell, end with a torch that has NCCL for CUDA 12.
func TestFixModules(t *testing.T) {
	const lmod = "/usr/share/lmod/lmod/init/bash"
	testenv.File(t, lmod, "lab/deps.sh packages")
	tcl := filepath.Join(testenv.Cache(t, "envmodules"), "usr", "lib", "modulecmd.tcl")
	dir := t.TempDir()
	tree := filepath.Join(dir, "modules")
	for name, m := range map[string]struct{ version, cuda string }{
		"PyTorch/1.13.1-foss-2022a-CUDA-11.7.0": {"1.13.1", "'11.7'"},
		"PyTorch/2.1.2-foss-2023a":              {"2.1.2", "None"},
		"PyTorch/2.1.2-foss-2023a-CUDA-12.1.1":  {"2.1.2", "'12.1'"},
		"PyTorch/2.6.0-foss-2024a-CUDA-12.6.0":  {"2.6.0", "'12.6'"},
		"PyTorch/2.9.1-foss-2025b-CUDA-13.0.1":  {"2.9.1", "'13.0'"},
		"PyTorch-bundle/2.6.0-CUDA-12.6.0":      {},
		"pytorch-lightning/2.5.0":               {},
		"CUDA/12.6.0":                           {},
		"GCCcore/13.3.0":                        {},
	} {
		lib := filepath.Join(dir, "sw", name)
		if m.version != "" {
			write(t, filepath.Join(lib, "torch", "__init__.py"), "from . import version\nfrom .version import __version__\n")
			write(t, filepath.Join(lib, "torch", "version.py"), fmt.Sprintf("__version__ = '%s'\ncuda = %s\nhip = None\n", m.version, m.cuda))
			write(t, filepath.Join(lib, "torch", "distributed", "__init__.py"), fmt.Sprintf("def is_nccl_available():\n    return %s\n", map[bool]string{true: "False", false: "True"}[m.cuda == "None"]))
		}
		write(t, filepath.Join(tree, name), "#%Module1.0\nprepend-path PYTHONPATH "+lib+"\n")
	}
	write(t, filepath.Join(tree, "PyTorch", ".version"), "#%Module1.0\nset ModulesVersion \"2.1.2-foss-2023a\"\n")
	for _, c := range []struct{ name, init string }{
		{"lmod", ". " + lmod},
		{"environment-modules", "module() { eval \"$(tclsh " + tcl + " bash \"$@\")\"; }"},
	} {
		for form, avail := range map[string]string{"terse": "module -t avail", "columns": "module avail"} {
			t.Run(c.name+"/"+form, func(t *testing.T) {
				start := c.init + "\nmodule use " + tree + "\nmodule load PyTorch/2.1.2-foss-2023a || exit 9\n"
				sh := func(line string) string {
					cmd := exec.Command("bash", "--norc", "-c", start+line)
					cmd.Env = []string{"PATH=" + filepath.Dir(program) + ":/usr/bin:/bin", "HOME=" + dir, "LANG=C.UTF-8", "MODULES_PAGER=", "COLUMNS=100"}
					out, err := cmd.CombinedOutput()
					if err != nil {
						t.Logf("%s: %v", line, err)
					}
					return string(out)
				}
				list := filepath.Join(dir, c.name+"-"+form)
				sh(avail + " > " + list + " 2>&1")
				out := sh("ncclinic fix --python /usr/bin/python3 --modules " + list + " --driver 535.161.08 --gpu A100 --torch 2.6.0 --format json > " + list + ".json; cat " + list + ".json >/dev/null; ncclinic fix --python /usr/bin/python3 --modules " + list + " --driver 535.161.08 --gpu A100 --torch 2.6.0")
				raw, err := os.ReadFile(list + ".json")
				if err != nil {
					t.Fatal(err, out)
				}
				var plan struct {
					Plan struct {
						Options []struct {
							Steps []struct {
								Kind     string
								Commands []string
							}
						}
					}
				}
				if err := json.Unmarshal(raw, &plan); err != nil || len(plan.Plan.Options) == 0 {
					t.Fatalf("%v\n%s\n%s", err, raw, out)
				}
				var cmds []string
				for _, s := range plan.Plan.Options[0].Steps {
					if s.Kind == "module" || s.Kind == "check" {
						cmds = append(cmds, s.Commands[:min(len(s.Commands), 2)]...)
					}
				}
				text := strings.Join(cmds, "\n")
				seen, _ := os.ReadFile(list)
				if !strings.Contains(text, "module unload PyTorch/2.1.2-foss-2023a\nmodule load PyTorch/2.6.0-foss-2024a-CUDA-12.6.0") {
					t.Fatalf("commands:\n%s\navail:\n%s\n%s", text, seen, out)
				}
				run := "set -e\nalias python=/usr/bin/python3; shopt -s expand_aliases\n" + strings.Join(cmds[:3], "\n")
				if got := sh(run); !strings.Contains(got, "2.6.0 12.6 True") {
					t.Errorf("%s\n%s", run, got)
				}
			})
		}
	}
}
