package lint

import (
	"strings"

	"github.com/ncclinic/ncclinic/internal/fact"
)

var _ = Checks.Add("foreign-scheduler-var", func(c *Ctx) {
	if !c.submitted() {
		return
	}
	seen := map[string]bool{}
	for _, r := range c.S.Reads {
		if r.Set || r.Default || r.Tested || r.Dead || r.Cond > 0 || r.Maybe && !strings.HasPrefix(r.Name, "PBS_") && !strings.HasPrefix(r.Name, "LSB_") || seen[r.Name] || c.assigned(r.Name) {
			continue
		}
		if inDefault(c.S.Line(r.Line), r.Col) {
			continue // ${SLURM_SUBMIT_DIR:-$PBS_O_WORKDIR}
		}
		for p, n := range map[string]string{"PBS_": "PBS", "LSB_": "LSF", "KUBERNETES_": "Kubernetes", "COBALT_": "Cobalt", "SGE_": "Grid Engine"} {
			if strings.HasPrefix(r.Name, p) && !c.says("#pbs ", "#bsub ", "#cobalt", "qsub") {
				seen[r.Name] = true
				c.Hit(r.Pos, "name", r.Name, "scheduler", n)
			}
		}
	}
	c.live(func(l *fact.Launch, _ *fact.ScriptCmd) {
		if !elastic(l) || c.sourcedUnknown() {
			return
		}
		for _, w := range []fact.Word{l.Nnodes, l.NodeRank, l.Nproc} {
			for _, h := range c.S.HolesOf(w.Val) {
				if (h.Name == "RANK" || h.Name == "WORLD_SIZE") && h.Kind == "var" && !h.Def && !c.assigned(h.Name) && !seen[h.Name] {
					seen[h.Name] = true
					c.Hit(w.Pos, "variant", "launcher", "name", h.Name, "scheduler", "")
				}
			}
		}
	})
})

// inDefault reports whether an expansion at a column stands where a default of
// another one begins: ${A:-$B}, ${A-"${B}"}.
func inDefault(line string, col int) bool {
	if col < 3 || col > len(line) {
		return false
	}
	before := strings.TrimRight(line[:col-1], `"`)
	return strings.HasSuffix(before, "-") && strings.LastIndex(before, "${") > strings.LastIndex(before, "}")
}
