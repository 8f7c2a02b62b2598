package explain

import (
	"slices"
	"strings"

	"github.com/ncclinic/ncclinic/internal/diag"
	"github.com/ncclinic/ncclinic/internal/fact"
	"github.com/ncclinic/ncclinic/internal/fact/kind"
	"github.com/ncclinic/ncclinic/internal/lazyre"
)

// decideSlurm judges submission, steps and the service.
func (v *view) decideSlurm() {
	if es := v.ev("S285", "S347", "S348"); len(es) > 0 {
		v.add(cand{id: "slurm-script-line-endings", cert: diag.Proven, over: []string{"slurm-script-shell", "env-not-activated", "env-program-missing", "torch-not-installed", "run-exception"}}, cap4(es)...)
	}
	if es := v.ev("S286", "S287"); len(es) > 0 {
		v.add(cand{id: "slurm-script-shell", cert: diag.Proven}, cap4(es)...)
	}
	mem := v.ev("S280", "S281")
	if len(mem) > 0 {
		if s, ok := v.innerSlurm(mem); ok {
			c := v.add(cand{id: "env-inherited-from-outer-job", cert: diag.Proven, over: []string{"slurm-memory-options-conflict"}}, cap4(mem)...)
			v.said(c, s)
		} else {
			v.add(cand{id: "slurm-memory-options-conflict", cert: diag.Proven, over: []string{"slurm-request-impossible"}}, cap4(mem)...)
		}
	}
	if es := v.ev("S282"); len(es) > 0 {
		v.add(cand{id: "env-inherited-from-outer-job", cert: diag.Proven}, cap4(es)...)
	}
	if es := v.ev("S283", "S284"); len(es) > 0 {
		v.add(cand{id: "slurm-options-conflict", cert: diag.Proven}, cap4(es)...)
	}
	if es := v.ev("S264", "S265", "S266", "S543", "S270", "S271"); len(es) > 0 {
		var hard []*fact.Event
		for _, e := range es {
			if e.Sig != "S270" && e.Sig != "S271" {
				hard = append(hard, e)
			}
		}
		if len(hard) > 0 {
			c := v.add(cand{id: "slurm-step-does-not-fit", cert: diag.Proven, over: []string{"slurm-request-impossible"}}, cap4(hard)...)
			for _, e := range es {
				if e.Sig == "S270" || e.Sig == "S271" {
					c.ev = append(c.ev, v.evidence(e.Place, e.Text))
					break
				}
			}
		} else if n := len(es); n > 0 && es[0].Count+n > 3 && !v.trained() {
			v.add(cand{id: "slurm-step-does-not-fit", cert: diag.Likely, tier: 1}, cap4(es)...)
		}
	}
	if es := v.ev("S272", "S269", "S267", "S268"); len(es) > 0 && !v.candidate("slurm-step-does-not-fit") && !v.candidate("slurm-memory-options-conflict") {
		if s, ok := v.inheritedOption(); ok {
			v.said(v.add(cand{id: "env-inherited-from-outer-job", cert: diag.Likely, over: []string{"slurm-request-impossible"}, needs: []string{"env | grep -e ^SBATCH_ -e ^SLURM_", "env -u SBATCH_PARTITION sbatch job.sbatch"}}, cap4(es)...), s)
		}
		v.add(cand{id: "slurm-request-impossible", cert: diag.Proven}, cap4(es)...)
	}
	v.submission()
	if es := v.ev("S292"); len(es) > 0 {
		v.add(cand{id: "slurm-output-path", cert: diag.Proven}, cap4(es)...)
	}
	if es := v.ev("S301", "S302"); len(es) > 0 {
		v.add(cand{id: "slurm-service-fault", cert: diag.Proven, over: []string{"rdzv-host-unresolvable", "rdzv-unreachable"}}, cap4(es)...)
	}
	if es := v.ev("S298"); len(es) > 0 && !v.candidate("slurm-service-fault") {
		c := cand{id: "env-inherited-from-outer-job", cert: diag.Likely}
		for _, e := range es {
			if strings.Contains(e.Text, "Unable to contact") {
				c.id = "slurm-service-fault"
			}
		}
		v.add(c, cap4(es)...)
	}
	v.cpus()
	v.oneNode()
	v.bashed()
	if s, ok := v.sacctState("NODE_FAIL"); ok && !v.has("S263", "S243") {
		c := v.add(cand{id: "node-failed", cert: diag.Proven, over: []string{"run-collective-hang", "run-exception", "job-cancelled", "rdzv-unreachable"}})
		v.said(c, s)
		c.where = append(c.where, v.where(s.Place))
	}
	if es := v.ev("S263", "S243"); len(es) > 0 {
		c := v.add(cand{id: "node-failed", cert: diag.Proven, over: []string{"run-collective-hang", "run-exception", "job-cancelled", "rdzv-unreachable"}}, cap4(es)...)
		if m := nodeFail.FindStringSubmatch(es[0].Text); m != nil {
			c.where[0].Node = m[1]
		}
		for _, e := range es {
			if m := nodeFail.FindStringSubmatch(e.Text); m != nil && c.where[0].Node == "" {
				c.where[0].Node = m[1]
			}
		}
	}
}

var nodeFail = lazyre.New(`Node failure on (\S+)`)

// innerSlurm returns the sign that the command was given inside of another job
// whose variables it inherits.
func (v *view) innerSlurm(es []*fact.Event) (fact.Said, bool) {
	flags := false
	for _, e := range es {
		if strings.Contains(e.Text, "SLURM_MEM_PER") {
			flags = true
		}
	}
	if !flags {
		return fact.Said{}, false
	}
	for _, s := range v.facts(kind.Env) {
		if strings.HasPrefix(s.Name, "SLURM_MEM_PER_") || s.Name == "SLURM_JOB_ID" || s.Name == "SLURM_JOB_NAME" {
			if s.Name == "SLURM_MEM_PER_NODE" || s.Name == "SLURM_MEM_PER_CPU" {
				return s, true
			}
		}
	}
	for _, s := range v.facts(kind.Env) {
		if s.Name == "SLURM_JOB_ID" {
			return s, true
		}
	}
	return fact.Said{}, false
}

var suggested = lazyre.New(`suggested max number of worker in current system is (\d+)`)

// cpus judges a step that got one CPU per task although the job has more.
func (v *view) cpus() {
	es := v.warned("S313")
	if len(es) == 0 {
		return
	}
	m := suggested.FindStringSubmatch(es[0].Text)
	for _, s := range v.batch() {
		asked, steps := s.f.Request.CPUsPerTask, s.steps()
		if asked <= 1 || len(steps) == 0 {
			continue
		}
		forwarded := len(s.assigns("SRUN_CPUS_PER_TASK")) > 0
		for _, t := range steps {
			forwarded = forwarded || t.Unknown || t.Opt("cpus-per-task") != nil
		}
		if forwarded || m == nil || atoi(m[1]) >= asked {
			continue
		}
		cert := diag.Likely
		vs := v.facts(kind.SlurmVer)
		if len(vs) > 0 && (strings.HasPrefix(vs[0].V, "22.05") || strings.HasPrefix(vs[0].V, "23.02")) || len(v.facts(kind.Affinity)) > 0 {
			cert = diag.Proven
		}
		x := v.add(cand{id: "slurm-cpus-not-forwarded", cert: cert, tier: 1, forced: true}, cap4(es)...)
		x.ev = append(append(x.ev, s.opts("cpus-per-task")...), s.ev(s.stmt(steps[0].Cmd)))
		v.said(x, append(first(vs, 1), first(v.facts(kind.Affinity), 1)...)...)
		return
	}
}

func atoi(s string) int {
	n := 0
	for i := 0; i < len(s) && s[i] >= '0' && s[i] <= '9'; i++ {
		n = n*10 + int(s[i]-'0')
	}
	return n
}

// oneNode judges several nodes of which one works.
func (v *view) oneNode() {
	local := v.warned("S362")
	fewer := v.warned("S304")
	if len(fewer) > 0 {
		v.add(cand{id: "slurm-one-node-used", cert: diag.Likely, tier: 1, forced: true}, cap4(fewer)...)
		return
	}
	for _, s := range v.batch() {
		ls := s.launchers()
		if s.f.Request.Nodes < 2 || s.blind() || len(s.f.Steps) > 0 || len(ls) == 0 || ls[0].Hostfile.Val != "" {
			continue
		}
		if n := ls[0].Nnodes; len(local) == 0 && !ls[0].Standalone && n.Val != "1" && (n.Val != "" || ls[0].Open) {
			continue
		}
		if explicit := (ls[0].Nnodes.Val == "1" || ls[0].Standalone) && len(v.l.Streams) > 0; len(local) == 0 && !v.trained() && !explicit {
			continue
		}
		cert := diag.Proven
		if len(local) == 0 {
			cert = diag.Likely
		}
		x := v.add(cand{id: "slurm-one-node-used", cert: cert, tier: 2, forced: true}, cap4(local)...)
		at := s.stmt(ls[0].Cmd)
		x.ev = append(append(x.ev, s.opts("nodes")...), s.ev(at))
		if x.at.Line == 0 {
			x.at = s.place(at)
		}
		return
	}
}

// ranByShell returns the base name of the script that a command runs with the
// shell of the terminal: bash job.sh, ./job.sh.
func ranByShell(cmd string) string {
	f := strings.Fields(cmd)
	if len(f) == 0 {
		return ""
	}
	name := f[0]
	if name == "bash" || name == "sh" || name == "source" || name == "." {
		i := 1
		for i < len(f) && strings.HasPrefix(f[i], "-") {
			i++
		}
		if i == len(f) {
			return ""
		}
		name = f[i]
	} else if !strings.HasPrefix(name, "./") {
		return ""
	}
	return name[strings.LastIndexByte(name, '/')+1:]
}

// isBatch reports whether a name is that of a batch script: of one that was
// given, of one that the session shows, or by its ending.
func (v *view) isBatch(name string) bool {
	if strings.HasSuffix(name, ".sbatch") || strings.HasSuffix(name, ".slurm") {
		return true
	}
	for _, s := range v.batch() {
		if s.path[strings.LastIndexByte(s.path, '/')+1:] == name {
			return true
		}
		for _, c := range v.l.Commands {
			if c.File == s.File && c.Line == s.From-1 && slices.Contains(strings.Fields(c.Text), name) {
				return true
			}
		}
	}
	return false
}

// bashed judges a batch script that was run with bash inside of an allocation
// that is smaller than its directives ask for.
func (v *view) bashed() {
	var run fact.ShellCmd
	for _, c := range v.l.Commands {
		for _, part := range strings.FieldsFunc(c.Text, func(r rune) bool { return r == ';' || r == '&' || r == '|' }) {
			if name := ranByShell(part); name != "" && v.isBatch(name) {
				run = c
			}
		}
	}
	if run.Line == 0 || v.candidate("slurm-not-submitted") {
		return
	}
	oom := v.peek("S249", "S250", "S251", "S252")
	if len(oom) == 0 {
		v.bashedOutside(run)
		return
	}
	c := v.add(cand{id: "slurm-not-submitted", cert: diag.Likely, over: []string{"host-out-of-memory"}}, cap4(oom)...)
	c.ev = append(c.ev, v.evidence(run.Place, run.Text))
	c.at = run.Place
	for _, s := range v.facts(kind.TRES) {
		v.said(c, s)
		c.cert = diag.Proven
		break
	}
	for _, s := range v.batch() {
		c.ev = append(c.ev, s.opts("mem")...)
	}
}

// emptySlurm matches the shell's words for a variable that Slurm sets in every job.
var emptySlurm = lazyre.New(`\bSLURM_(?:JOB_?ID|JOB_NODELIST|NODELIST|NNODES|JOB_NUM_NODES|NTASKS|PROCID|NODEID): unbound variable`)

// bashedOutside judges a batch script that was run with bash where no job is:
// the variables that Slurm sets in a job are empty.
func (v *view) bashedOutside(run fact.ShellCmd) {
	var sign []fact.Evidence
	for _, e := range v.peek("log-scontrol-empty-hostlist") {
		sign = append(sign, v.evidence(e.Place, e.Text))
	}
	for _, x := range v.peek("log-launcher-empty-argument") {
		sign = append(sign, v.evidence(x.Place, x.Text))
	}
	for _, e := range v.peek("S458") {
		if emptySlurm.MatchString(e.Text) {
			sign = append(sign, v.evidence(e.Place, e.Text))
		}
	}
	if len(sign) == 0 {
		return
	}
	// Inside of an allocation the script runs in a job; an argument may be empty for another reason.
	if slices.ContainsFunc(v.l.Commands, func(c fact.ShellCmd) bool { return allocates.MatchString(c.Text) }) {
		v.unknown(v.peek("log-launcher-empty-argument", "log-scontrol-empty-hostlist"), "env | grep ^SLURM_")
		return
	}
	for _, s := range v.facts(kind.Env) {
		if (s.Name == "SLURM_JOB_ID" || s.Name == "SLURM_JOBID") && s.V != "" {
			return
		}
	}
	c := v.add(cand{id: "slurm-not-submitted", cert: diag.Likely, at: run.Place, over: []string{"gpu-driver-missing", "gpu-not-allocated", "run-exception", "rdzv-host-unresolvable", "torch-cpu-build", "slurm-service-fault"}})
	c.ev = append(append(c.ev, v.evidence(run.Place, run.Text)), sign...)
	c.where = append(c.where, v.where(run.Place))
	for _, s := range v.batch() {
		c.ev = append(c.ev, s.first()...)
	}
}

// submission judges a submission that failed because the controller did not
// answer, when nothing says that a later try went through.
func (v *view) submission() {
	var last *fact.Event
	es := v.peek("S297")
	for _, e := range es {
		if strings.Contains(e.Text, "ubmission failed") || strings.Contains(e.Text, "Unable to allocate resources") {
			last = e
		}
	}
	if last == nil || v.trained() || len(v.facts("success")) > 0 {
		return
	}
	for _, s := range v.facts(kind.Submitted) {
		if s.File != last.File || s.Line > last.Line {
			return
		}
	}
	v.used["S297"] = true
	v.add(cand{id: "slurm-service-fault", cert: diag.Likely, tier: 1, needs: []string{"scontrol ping", "sdiag"}}, cap4(es)...)
}
