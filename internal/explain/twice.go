package explain

import (
	"strconv"
	"strings"

	"github.com/ncclinic/ncclinic/internal/diag"
	"github.com/ncclinic/ncclinic/internal/fact"
	"github.com/ncclinic/ncclinic/internal/lazyre"
)

// launcherRe matches the launchers that start a process for each GPU themselves.
var launcherRe = lazyre.New(`\btorchrun\b|\btorch\.distributed\.(?:run|launch)\b|\baccelerate launch\b|(?:^|\s)deepspeed\s|(?:^|\s)composer\s|\bcolossalai run\b|\bhorovodrun\b|\bmpirun\b|\blitgpt\b|\btune run\b`)

// decideTwice judges a launcher that runs in each of several tasks of a node,
// and starts all local ranks in each of them. Its marks besides a port in use:
// several tasks announce the same rank, or the processes crowd the GPUs.
func (v *view) decideTwice() {
	if v.candidate("rdzv-launched-twice") {
		return
	}
	dup := v.duplicateRanks()
	oom := v.peek("S206", "S207")
	crowd := append(v.peek("S121", "S122"), v.crowded()...)
	if !v.dead && len(oom) == 0 && len(crowd) == 0 {
		return
	}
	sc, cmd, n := v.launcherPerTask()
	var ev []*fact.Event
	switch {
	case len(crowd) > 0 && (cmd.line > 0 || len(dup) > 0):
		ev = crowd
	case len(dup) > 0 && cmd.line > 0:
	default:
		return
	}
	c := v.add(cand{id: "rdzv-launched-twice", cert: diag.Likely, over: []string{"gpu-shared-by-ranks", "gpu-out-of-memory", "rdzv-port-in-use", "run-exception", "rdzv-stale-store"}}, cap4(ev)...)
	if cmd.line > 0 {
		c.cert = diag.Proven
		c.ev = append(c.ev, v.scriptEv(sc, cmd.line, cmd.text))
		for _, o := range sc.opts {
			if o.name == "ntasks-per-node" || o.name == "ntasks" {
				c.ev = append(c.ev, v.scriptEv(sc, o.line, o.text))
			}
		}
		c.args = mergeArgs(c.args, diag.Args{"tasks": itoa(n)})
	}
	v.said(c, first(dup, 2)...)
	if len(c.where) == 0 {
		c.where = append(c.where, v.where(c.at))
	}
}

// crowded returns out-of-memory errors that name other big processes on the GPU.
func (v *view) crowded() []*fact.Event {
	var out []*fact.Event
	for _, x := range v.excTyped("OutOfMemoryError") {
		n := 0
		for _, p := range others.FindAllStringSubmatch(x.Message, -1) {
			if mib(p[2], p[3]) >= 2048 {
				n++
			}
		}
		if n > 0 {
			out = append(out, &fact.Event{Place: x.Place, Text: x.Type + ": " + fact.Clip(x.Message, 300)})
		}
	}
	return out
}

var ntasksRe = lazyre.New(`--ntasks-per-node[= ](\d+)|(?:--ntasks[= ]|\s-n ?)(\d+)`)

// launcherPerTask returns the command that starts a launcher in several tasks
// of a node, and how many.
func (v *view) launcherPerTask() (*script, srcCmd, int) {
	for _, s := range v.scripts {
		for _, c := range s.cmds {
			t := s.expand(c.text)
			if !srunRe.MatchString(t) || !launcherRe.MatchString(t[strings.Index(t, "srun"):]) || onePerNode(t) {
				continue
			}
			n := s.tasksPerNode()
			if m := ntasksRe.FindStringSubmatch(t[:launcherRe.FindStringIndex(t)[0]]); m != nil {
				n, _ = strconv.Atoi(m[1] + m[2])
				if m[1] == "" && s.nodes() > 1 {
					n = (n + s.nodes() - 1) / s.nodes()
				}
			}
			if n > 1 {
				return s, c, n
			}
		}
	}
	return nil, srcCmd{}, 0
}
