package lint

import (
	"strings"

	"github.com/ncclinic/ncclinic/internal/fact"
)

var _ = Checks.Add("env-var-not-exported", func(c *Ctx) {
	seen := map[string]bool{}
	for i := range c.S.Assigns {
		a := &c.S.Assigns[i]
		if a.Prefix || a.Unset || a.Bare || a.Step >= 0 || a.Dead || a.Sub || a.File != "" || seen[a.Name] || a.IsArr {
			continue
		}
		ok := false
		for _, p := range []string{"NCCL_", "TORCH_", "PYTORCH_", "CUDA_", "OMP_", "GLOO_"} {
			ok = ok || strings.HasPrefix(a.Name, p)
		}
		switch a.Name {
		case "MASTER_ADDR", "MASTER_PORT":
			ok = c.pythonInStep()
		case "CUDA_VISIBLE_DEVICES", "CUDA_HOME", "CUDA_PATH", "CUDA_ROOT", "CUDA_VERSION", "CUDA_DIR", "TORCH_VERSION", "PYTORCH_VERSION":
			ok = false
		}
		if !ok || c.S.Exported(a.Name, 1<<30) || c.S.Option("a", a.Seq) || readAnywhere(c, a.Name) {
			continue
		}
		seen[a.Name] = true
		from := c.offset(a.Pos)
		c.Hit(a.Pos, "name", a.Name, "value", clip(a.Value.Text, 40)).Edit(from, from, "export ")
	}
})

// pythonInStep reports a Python program that srun starts: env:// reads the
// environment there.
func (c *Ctx) pythonInStep() bool {
	for i := range c.S.Launches {
		if l := &c.S.Launches[i]; l.Kind == fact.LaunchPython && l.Step >= 0 && !l.Dead && !l.Guessed && c.inSrun(l) {
			return true
		}
	}
	return false
}
