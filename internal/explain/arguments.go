package explain

import (
	"slices"
	"strings"

	"github.com/ncclinic/ncclinic/internal/diag"
	"github.com/ncclinic/ncclinic/internal/fact"
	"github.com/ncclinic/ncclinic/internal/lazyre"
)

var (
	// launcherProgs are the names under which launchers of ranks report an error of their command line.
	launcherProgs = lazyre.New(`^(?:torchrun|deepspeed|accelerate|composer|Accelerate CLI tool.*|launch\.py|run\.py|runner\.py|python\d?(?:\.\d+)? -m (?:torch\.distributed\.\w+|accelerate\S*))$`)
	// slurmProgs report errors of steps in words that look alike.
	slurmProgs = lazyre.New(`^(?:srun|sbatch|salloc|slurmstepd|slurmd|scontrol|sacct|squeue|sinfo)$`)
	pythonProg = lazyre.New(`\.py$|^python\S* -m `)
)

// decideArguments judges programs that refused their command line: argparse
// prints why, and ends them with status 2. It is asked last, since whatever else
// broke may be why an argument was empty.
func (v *view) decideArguments() {
	var launchers, scripts, others, empty []*fact.Event
	for _, e := range v.ev("log-program-arguments") {
		p := strings.TrimSpace(e.Args["program"])
		switch {
		case slurmProgs.MatchString(p):
		case v.elsewhere(e.Place):
			empty = append(empty, e)
		case launcherProgs.MatchString(p):
			launchers = append(launchers, e)
		case pythonProg.MatchString(p):
			scripts = append(scripts, e)
		default:
			others = append(others, e)
		}
	}
	if len(launchers)+len(scripts) == 0 && len(v.cands) == 0 && len(v.needs) == 0 {
		launchers = empty // nothing tells why it is empty
	}
	es := append(launchers, scripts...)
	if len(es) == 0 {
		es = others
		// A helper's complaint means something only where nothing else does.
		if !v.exited(2) {
			return
		}
	}
	if len(es) == 0 || slices.ContainsFunc(v.cands, func(c cand) bool { return c.tier == 0 }) {
		return
	}
	c := cand{id: "run-exception", cert: diag.Likely, args: diag.Args{"variant": "arguments", "refused": strings.TrimSpace(es[0].Args["program"])},
		over: []string{"run-collective-hang", "rdzv-unreachable", "rdzv-too-few-ranks", "job-cancelled"}}
	if v.exited(2) || len(others) < len(es) && !v.dead {
		c.cert = diag.Proven
	}
	if p := c.args["refused"]; len(launchers) > 0 && !strings.ContainsAny(p, " /") && !strings.HasSuffix(p, ".py") {
		c.args["launcher"] = p
	}
	v.add(c, cap4(es)...)
}

// elsewhere reports that a refused argument has a reason of its own: a variable
// that is empty where it runs, or a launcher that passes --local-rank.
func (v *view) elsewhere(p fact.Place) bool {
	return slices.ContainsFunc(v.peek("log-launcher-empty-argument", "log-local-rank-argument"), func(e *fact.Event) bool { return e.File == p.File && e.Line == p.Line })
}
