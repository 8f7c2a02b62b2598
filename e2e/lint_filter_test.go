package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ncclinic/ncclinic/internal/testenv"
	"github.com/ncclinic/ncclinic/lab"
)

// TestCLIFilter submits through the real cli_filter plugin: it warns, does not
// get in the way, and refuses only when the site says so.
func TestCLIFilter(t *testing.T) {
	if m := lab.Missing(); len(m) > 0 {
		testenv.Need(t, strings.Join(m, ", "), "lab/deps.sh packages")
	}
	lua, err := os.ReadFile("../contrib/cli_filter.lua")
	if err != nil {
		t.Fatal(err)
	}
	for _, deny := range []bool{false, true} {
		src := strings.Replace(string(lua), "deny = false", "deny = "+map[bool]string{false: "false", true: "true"}[deny], 1)
		c, err := lab.Start(t.Context(), lab.Options{Nodes: 1, Conf: []string{"CliFilterPlugins=lua"}, Files: map[string]string{"cli_filter.lua": src}})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Stop()
		work := filepath.Join(c.Dir, "work")
		submit := func(name, text string, env ...string) (string, bool) {
			p := filepath.Join(work, name)
			if err := os.WriteFile(p, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
			cmd := c.Command(t.Context(), "sbatch", p)
			cmd.Env = append(append(cmd.Env, "NCCLINIC="+program), env...)
			out, err := cmd.CombinedOutput()
			return string(out), err == nil
		}
		const bad = "#!/bin/bash\n#SBATCH -N 1\nset -e\n#SBATCH --job-name=late\ntrue\n"
		const good = "#!/bin/bash\n#SBATCH -N 1\nset -e\ntrue\n"
		out, ok := submit("it's a job; rm -rf x.sbatch", bad)
		if !strings.Contains(out, "[sbatch-after-command]") || ok == deny {
			t.Errorf("deny %v: %s, submitted %v", deny, out, ok)
		}
		if out, ok := submit("good.sbatch", good); !ok || strings.Contains(out, "lua") {
			t.Errorf("deny %v: a right script: %s, submitted %v", deny, out, ok)
		}
		if out, ok := submit("off.sbatch", bad, "NCCLINIC_LINT=off"); !ok || strings.Contains(out, "[") {
			t.Errorf("deny %v: switched off: %s, submitted %v", deny, out, ok)
		}
		if out, ok := submit("missing.sbatch", bad, "NCCLINIC=/no/such/program"); !ok {
			t.Errorf("deny %v: without ncclinic: %s", deny, out)
		}
		if out, err := c.Command(t.Context(), "sbatch", "--wrap", "true").CombinedOutput(); err != nil {
			t.Errorf("--wrap: %v %s", err, out)
		}
	}
}
