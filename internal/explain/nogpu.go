package explain

import (
	"slices"
	"sort"
	"strings"

	"github.com/ncclinic/ncclinic/internal/diag"
	"github.com/ncclinic/ncclinic/internal/fact"
	"github.com/ncclinic/ncclinic/internal/fact/kind"
	"github.com/ncclinic/ncclinic/internal/lazyre"
)

// nodesSeen lists the hosts that events, exits and facts name.
func (v *view) nodesSeen() []string {
	set := map[string]bool{}
	for _, x := range v.l.Exits {
		if x.Node != "" {
			set[strings.SplitN(x.Node, ".", 2)[0]] = true
		}
	}
	for _, s := range v.l.Listing.Facts {
		if s.Kind == kind.Init && s.Node != "" {
			set[s.Node] = true
		}
	}
	out := make([]string, 0, len(set))
	for n := range set {
		out = append(out, n)
	}
	sort.Strings(out)
	return out
}

// decideNoGPU judges "no GPU": no device is visible, no driver is found.
func (v *view) decideNoGPU() {
	none := v.ev("S011", "S195", "S196", "S187", "S322")
	noDriver := v.ev("S186", "S225", "S232", "S323", "S325")
	cudaNA := v.excWith("Cuda is not available", "Torch is not able to use GPU", "CUDA is not available", "No CUDA runtime is found")
	for _, x := range v.exc {
		if assertsCUDA(x) || dividesByGPUs(x) {
			cudaNA = append(cudaNA, x)
		}
	}
	if len(none)+len(noDriver)+len(cudaNA)+len(v.peek("S421", "S422")) == 0 {
		return
	}
	none = append(none, v.ev("S421", "S422")...)
	for _, id := range []string{"torch-needs-newer-driver", "gpu-driver-library-mismatch", "gpu-fabric-manager", "gpu-init-unknown-error", "torch-cpu-build", "torch-wrong-accelerator", "torch-replaced-by-dependency", "env-user-site-shadows", "gpu-hardware-fault", "gpu-not-in-container", "torch-platform-has-no-nccl"} {
		if v.candidate(id) {
			return
		}
	}
	v.gpuMissing(append(append([]*fact.Event{}, noDriver...), append(none, noBackendEvents(cudaNA)...)...))
}

var (
	containerRe = lazyre.New(`\b(?:singularity|apptainer)\s+(?:-\S+\s+)*(?:exec|run|shell|instance start)\b`)
	dockerRe    = lazyre.New(`\b(?:docker|podman|nerdctl)\s+(?:-\S+\s+)*run\b`)
	nvRe        = lazyre.New(`\s--(?:nv|nvccli|rocm)\b`)
	gpusRe      = lazyre.New(`\s--gpus\b|--device[ =]\S*nvidia|--runtime[ =]nvidia|nvidia\.com/gpu`)
)

// containerWithoutGPU finds the command that starts a container without its GPUs.
func (v *view) containerWithoutGPU() ([]fact.Evidence, bool) {
	check := func(t string) bool {
		return containerRe.MatchString(t) && !nvRe.MatchString(t) && !strings.Contains(t, "APPTAINER_NV") && !strings.Contains(t, "SINGULARITY_NV") ||
			dockerRe.MatchString(t) && !gpusRe.MatchString(t)
	}
	var out []fact.Evidence
	for _, s := range v.scripts {
		for i := range s.f.Commands {
			c := &s.f.Commands[i]
			if b := c.Container; b != nil && c.Pos == b.Pos && !c.Dead && !b.NV && !b.ROCm && !b.Open {
				switch b.Tool {
				case "singularity", "apptainer", "docker", "podman", "nerdctl":
					out = append(out, s.ev(s.stmt(i)))
				}
			}
		}
	}
	for _, c := range v.l.Commands {
		if check(c.Text) {
			out = append(out, v.evidence(c.Place, c.Text))
		}
	}
	for _, s := range v.peek("S323") {
		out = append(out, v.evidence(s.Place, s.Text))
	}
	if len(out) == 0 {
		out = v.recipeWithoutGPU()
	}
	if len(out) == 0 {
		if val, s, ok := v.env("NVIDIA_VISIBLE_DEVICES"); ok && (val == "void" || val == "") {
			out = append(out, v.evidence(s.Place, s.Text))
		}
	}
	return out, len(out) > 0
}

// recipeWithoutGPU finds a compose file or a pod that hands no GPU over.
func (v *view) recipeWithoutGPU() []fact.Evidence {
	by := map[int]fact.Said{}
	for _, s := range v.facts(kind.Recipe) {
		if _, ok := by[s.File]; !ok && s.Name != "gpu" {
			by[s.File] = s
		}
	}
	for _, s := range v.facts(kind.Recipe) {
		// What a node offers is no request: only the recipe's own file hands a GPU over.
		if _, ok := by[s.File]; ok && s.Name == "gpu" {
			return nil
		}
	}
	var out []fact.Evidence
	for _, s := range by {
		out = append(out, v.evidence(s.Place, s.Text))
	}
	return out
}

// gpuMissing chooses why a process sees no GPU.
func (v *view) gpuMissing(es []*fact.Event) {
	v.sortEvents(es)
	noDriver := v.peek("S186", "S225", "S232", "S323", "S325")
	if v.otherMakersGPU(es, noDriver) {
		return
	}
	over := []string{"run-exception", "gpu-driver-missing"}
	if v.driverTooOld(es) {
		return
	}
	// the source sets CUDA_VISIBLE_DEVICES itself
	if ev, val, ok := v.sourceSetsVisible(); ok {
		seen, s, has := v.env("CUDA_VISIBLE_DEVICES")
		if !has || seen != val {
			c := v.add(cand{id: "gpu-visible-devices-wrong", cert: diag.Proven, over: over, args: diag.Args{"value": val}}, cap4(es)...)
			c.ev = append(c.ev, ev)
			if has {
				v.said(c, s)
			}
			v.said(c, first(v.facts(kind.GPU), 1)...)
			return
		}
	}
	if val, s, ok := v.lastEnv("CUDA_VISIBLE_DEVICES"); ok && (val == "NoDevFiles" || val == "" || val == "-1") {
		c := v.add(cand{id: "gpu-not-allocated", cert: diag.Proven, over: over}, cap4(es)...)
		v.said(c, s)
		return
	}
	if ev, ok := v.stepWithoutGPU(); ok {
		c := v.add(cand{id: "gpu-not-allocated", cert: diag.Proven, over: over, args: diag.Args{"variant": "step"}}, cap4(es)...)
		c.ev = append(c.ev, ev)
		v.said(c, first(v.facts(kind.GPU), 1)...)
		return
	}
	tresNone := fact.Said{}
	for _, s := range v.facts(kind.TRES) {
		if !strings.Contains(s.V, "gres/gpu") {
			tresNone = s
		}
	}
	asked := false
	for _, s := range v.batch() {
		asked = asked || s.f.Request.GPUAsked
	}
	for _, s := range v.batch() {
		if late, ok := s.lateGPU(); ok && (tresNone.V != "" || !asked) {
			c := v.add(cand{id: "slurm-directive-ignored", cert: diag.Proven, over: append(over, "gpu-not-allocated")}, cap4(es)...)
			c.ev = append(c.ev, late)
			v.said(c, tresNone)
			return
		}
	}
	void, _, _ := v.env("NVIDIA_VISIBLE_DEVICES")
	if ev, ok := v.containerWithoutGPU(); ok && (len(noDriver) > 0 || void == "void") {
		c := v.add(cand{id: "gpu-not-in-container", cert: diag.Proven, over: over}, cap4(es)...)
		c.ev = append(c.ev, ev...)
		v.said(c, first(v.facts(kind.GPU), 1)...)
		if len(v.facts(kind.GPU)) == 0 && !asked {
			c.cert = diag.Likely
		}
		return
	}
	if tresNone.V != "" && !asked {
		c := v.add(cand{id: "gpu-not-allocated", cert: diag.Proven, over: over}, cap4(es)...)
		v.said(c, tresNone)
		v.noGPULine(c)
		return
	}
	if len(v.facts(kind.GPU)) == 0 {
		for _, s := range v.batch() {
			if r := &s.f.Request; !r.GPUAsked && !r.Exclusive && len(s.f.Directives) > 1 && r.Nodes+r.Tasks+r.TasksPerNode+r.CPUsPerTask > 0 {
				c := v.add(cand{id: "gpu-not-allocated", cert: diag.Likely, over: over}, cap4(es)...)
				v.noGPULine(c)
				c.needs = append(c.needs, "scontrol show job JOBID | grep TRES")
				return
			}
		}
	}
	if cmd, ok := v.allocatedWithoutGPU(); ok && len(v.facts(kind.GPU)) == 0 && !asked {
		c := v.add(cand{id: "gpu-not-allocated", cert: diag.Likely, over: over}, cap4(es)...)
		c.ev = append(c.ev, v.evidence(cmd.Place, cmd.Text))
		c.needs = append(c.needs, "scontrol show job JOBID | grep TRES")
		return
	}
	if len(noDriver) == 0 {
		for _, s := range v.facts(kind.FM) {
			if s.V == "failed" || s.V == "inactive" || s.V == "In" || s.V == "In Progress" {
				c := v.add(cand{id: "gpu-fabric-manager", cert: diag.Likely, over: []string{"run-exception", "gpu-not-allocated"}}, cap4(es)...)
				v.said(c, first(v.facts(kind.FM), 2)...)
				return
			}
		}
	}
	if ms := v.facts(kind.NoModule); len(ms) > 0 {
		c := v.add(cand{id: "gpu-driver-missing", cert: diag.Proven, over: []string{"run-exception", "gpu-not-allocated"}}, cap4(es)...)
		v.said(c, first(ms, 3)...)
		return
	}
	if login := v.loginNode(); len(noDriver) > 0 || login.Line > 0 && v.noSMI() && !asked && !v.ofJob() {
		c := cand{id: "gpu-driver-missing", cert: diag.Likely, over: []string{"run-exception", "gpu-not-allocated"}}
		if login.Line > 0 {
			c.cert = diag.Proven
		} else if asked || len(v.facts(kind.GPU)) > 0 || len(v.facts(kind.Driver)) > 0 {
			v.unknown(es, "nvidia-smi -L", "ls -l /dev/nvidia*", "env | grep -e CUDA_VISIBLE -e NVIDIA -e APPTAINER -e SINGULARITY")
			return
		} else {
			c.needs = append(c.needs, "hostname", "nvidia-smi", "scontrol show job JOBID | grep TRES")
		}
		p := v.add(c, cap4(es)...)
		v.said(p, login)
		return
	}
	v.unknown(es, "scontrol show job JOBID | grep TRES", "srun nvidia-smi -L", "srun env | grep CUDA_VISIBLE_DEVICES",
		"python -c 'import torch; torch.zeros(1).cuda()'")
}

// noSMI reports a machine that has no nvidia-smi.
func (v *view) noSMI() bool {
	return slices.ContainsFunc(v.facts(kind.NoProgram), func(s fact.Said) bool { return s.Name == "nvidia-smi" })
}

func (v *view) lastEnv(name string) (string, fact.Said, bool) {
	ss := v.l.Listing.Facts
	for i := len(ss) - 1; i >= 0; i-- {
		if ss[i].Kind == kind.Env && ss[i].Name == name {
			return ss[i].V, ss[i], true
		}
	}
	return "", fact.Said{}, false
}

func (v *view) noGPULine(c *cand) {
	for _, s := range v.batch() {
		if ev := s.first(); ev != nil {
			c.ev = append(c.ev, ev...)
			return
		}
	}
}

var setVisible = lazyre.New(`os\.environ(?:\[|\.(?:setdefault|update)\()\s*["'](?:CUDA_VISIBLE_DEVICES|HIP_VISIBLE_DEVICES|ROCR_VISIBLE_DEVICES)["']\s*(?:\]\s*=|,)\s*["']([^"']*)["']`)

// sourceSetsVisible finds a program that overwrites CUDA_VISIBLE_DEVICES.
func (v *view) sourceSetsVisible() (fact.Evidence, string, bool) {
	for _, t := range v.sources {
		for i, l := range t.Lines {
			if m := setVisible.FindStringSubmatch(l); m != nil {
				e := fact.Evidence{Source: fact.SrcFile, Path: v.path(t.File), Line: t.From + i, Excerpt: strings.TrimSpace(fact.Clip(l, 200))}
				return e, m[1], true
			}
		}
	}
	for _, s := range v.scripts {
		for _, a := range s.assigns("CUDA_VISIBLE_DEVICES") {
			if val := exportedValue(a); val != "" && strings.Trim(val, "0123456789,") == "" {
				return s.ev(a.Pos), val, true
			}
		}
	}
	return fact.Evidence{}, "", false
}

// stepWithoutGPU finds the srun that starts the program with no GPU.
func (v *view) stepWithoutGPU() (fact.Evidence, bool) {
	for _, s := range v.scripts {
		for i := range s.f.Launches {
			l := &s.f.Launches[i]
			if l.Dead || l.Step < 0 || l.Kind == fact.LaunchPython && !strings.Contains(l.Program, "train") {
				continue // a python of its own may well work without a GPU
			}
			if o := noGPU(&s.f.Steps[l.Step]); o != nil {
				return s.optEv(o), true
			}
		}
	}
	return fact.Evidence{}, false
}

// noGPU returns the option of a step that takes its GPUs away.
func noGPU(t *fact.Step) *fact.Directive {
	if o := t.Opt("gres"); o != nil && (strings.EqualFold(o.Value, "none") || o.Value == "gpu:0") {
		return o
	}
	for _, n := range []string{"gpus", "gpus-per-node", "gpus-per-task"} {
		if o := t.Opt(n); o != nil && o.Value == "0" {
			return o
		}
	}
	return nil
}

// loginNode returns the sign that this is a login node.
func (v *view) loginNode() fact.Said {
	for _, c := range v.l.Commands {
		h := strings.ToLower(c.Host)
		if strings.Contains(h, "login") || strings.Contains(h, "submit") || strings.HasPrefix(h, "front") || strings.Contains(h, "headnode") || strings.HasPrefix(h, "head") {
			return fact.Said{Place: c.Place, Text: c.Host + "$ " + c.Text}
		}
	}
	for _, s := range v.facts(kind.NoProgram) {
		if s.Name == "nvidia-smi" {
			return s
		}
	}
	return fact.Said{}
}
