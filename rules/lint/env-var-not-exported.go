package lint

import (
	"strings"

	"github.com/ncclinic/ncclinic/internal/fact"
)

var _ = Checks.Add("env-var-not-exported", func(c *Ctx) {
	seen := map[string]bool{}
	c.emptyInTasks(seen)
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

// emptyInTasks reports variables of the batch shell that a shell in the tasks
// reads, as in srun bash -c '… $MASTER_ADDR …', and that are not exported.
func (c *Ctx) emptyInTasks(seen map[string]bool) {
	for i := range c.S.Reads {
		r := &c.S.Reads[i]
		if r.Step < 0 || r.Set || r.Maybe || r.Default || r.Tested || r.Dead || r.Func != "" || r.File != "" || seen[r.Name] || !c.assigned(r.Name) || inherited[r.Name] {
			continue
		}
		st := &c.S.Steps[r.Step]
		a := c.S.Var(r.Name, c.S.Commands[st.Cmd].Seq)
		if a == nil || a.Step >= 0 || a.Prefix || a.Unset || a.Bare || a.Dead || a.Sub || a.File != "" || a.IsArr || a.Func != "" || st.Opt("export") != nil || st.Tool != "srun" {
			continue
		}
		if c.S.Exported(r.Name, 1<<30) || c.S.Option("a", a.Seq) || c.S.Option("k", a.Seq) || c.handedOver(r.Name) {
			continue
		}
		seen[r.Name] = true
		h := c.Hit(a.Pos, "variant", "tasks", "name", r.Name, "value", clip(a.Value.Text, 40), "line", itoa(r.Line))
		if from := c.offset(a.Pos); strings.HasPrefix(string(c.S.Src[from:]), a.Name+"=") {
			h.Edit(from, from, "export ")
		}
	}
}

// handedOver reports that the script hands a variable to a container or another
// program by name: SINGULARITYENV_X, --env X=…, -e X.
func (c *Ctx) handedOver(name string) bool {
	for n := range c.shared.sets {
		if strings.HasSuffix(n, "ENV_"+name) {
			return true
		}
	}
	return c.says("--env ", "--env=", " -e "+strings.ToLower(name), "--container-env", "env "+strings.ToLower(name)+"=")
}

// inherited are variables that are exported already when a job begins: a new
// value is, too.
var inherited = set(`PATH LD_LIBRARY_PATH LIBRARY_PATH CPATH PYTHONPATH MANPATH HOME USER LOGNAME SHELL TMPDIR TMP TEMP SCRATCH WORK LANG LC_ALL CUDA_VISIBLE_DEVICES
CUDA_HOME CUDA_PATH CUDA_ROOT CONDA_PREFIX CONDA_DEFAULT_ENV VIRTUAL_ENV HF_HOME HF_TOKEN WANDB_API_KEY XDG_RUNTIME_DIR XDG_CACHE_HOME DISPLAY PS1 IFS`)
