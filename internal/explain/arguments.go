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
	v.localRank()
	var launchers, scripts, others, empty []*fact.Event
	for _, e := range v.ev("log-program-arguments") {
		p := strings.TrimSpace(e.Args["program"])
		switch {
		case slurmProgs.MatchString(p), v.localRankAt(e.Place):
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
	if click := v.ev("log-click-arguments"); len(launchers)+len(scripts) == 0 && len(v.cands) == 0 && (v.exited(2) || len(v.l.Streams) == 0) {
		scripts = click // whose program stands lines above; beside training it is a helper
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
	program := strings.TrimSpace(es[0].Args["program"])
	if program == "" {
		program = "?" // it refused them, whatever its name
	}
	c := cand{id: "run-exception", cert: diag.Likely, args: diag.Args{"variant": "arguments", "refused": program}, over: overArguments}
	if v.exited(2) || len(others) < len(es) && !v.dead {
		c.cert = diag.Proven
	}
	if p := c.args["refused"]; len(launchers) > 0 && !strings.ContainsAny(p, " /") && !strings.HasSuffix(p, ".py") {
		c.args["launcher"] = p
	}
	v.add(c, cap4(es)...)
}

// overArguments are what a program that refuses its arguments leads to.
var overArguments = []string{"run-collective-hang", "rdzv-unreachable", "rdzv-too-few-ranks", "job-cancelled"}

// localRank judges a script that does not know the option which
// torch.distributed.launch passes to it.
func (v *view) localRank() {
	es := v.ev("log-local-rank-argument")
	if len(es) == 0 {
		return
	}
	v.add(cand{id: "run-exception", cert: diag.Proven, args: diag.Args{"variant": "local-rank", "refused": "--local-rank"}, over: overArguments}, cap4(es)...)
}

func (v *view) localRankAt(p fact.Place) bool { return at(v.peek("log-local-rank-argument"), p) }

// elsewhere reports that a refused argument has a reason of its own: a variable
// that is empty where it runs.
func (v *view) elsewhere(p fact.Place) bool { return at(v.peek("log-launcher-empty-argument"), p) }

// at reports whether one of the events stands on the line.
func at(es []*fact.Event, p fact.Place) bool {
	return slices.ContainsFunc(es, func(e *fact.Event) bool { return e.File == p.File && e.Line == p.Line })
}
