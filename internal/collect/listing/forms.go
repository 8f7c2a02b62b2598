package listing

import (
	"strings"

	"github.com/ncclinic/ncclinic/internal/fact/kind"
	"github.com/ncclinic/ncclinic/internal/lazyre"
)

type adder func(kind, name, v, aux string)

var (
	showLine  = lazyre.New(`^\s*(?i:(name|version|location|build))\s*: (\S.*?)\s*$`)
	jsonDist  = lazyre.New(`"dist_name": "([a-z][\w.-]*?)-(\d[\w.!]*)-([\w.]+)"`)
	jsonPair  = lazyre.New(`"name": "([\w.-]+)", "version": "([^"]+)"`)
	condaURL  = lazyre.New(`/(?:linux-64|linux-aarch64|linux-ppc64le|noarch)/([a-z][\w.-]*?)-(\d[\w.!]*)-([\w.]+?)\.(?:conda|tar\.bz2)\b`)
	envPlain  = lazyre.New(`^\s*-\s+(?:[\w-]+::)?(cpuonly|pytorch-cpu)\b`)
	lockIndex = lazyre.New(`^source = \{ registry = "https?://\S*/whl/(cpu|cu\d+|rocm[\d.]+|xpu)/?" \}`)
	lockWheel = lazyre.New(`/torch-(\d[\w.]*)(?:%2B|\+)(cpu|cu\d+|rocm[\d.]+)-`)
	dpkgRow   = lazyre.New(`^(?:ii|hi)\s+(?:python3-|lib)?torch\S*?(?::amd64|:arm64)?\s+(\d\S*)`)
	aptRow    = lazyre.New(`^(?:python3-torch(?:-\w+)?|libtorch[\d.]*)/\S+ (\d\S*) `)
	imageCPU  = lazyre.New(`^(?:RUN\b.*|\s+\S.*|.*&& )?\b(?:pip3?|pip3?\.\d+|uv pip|python3? -m pip)\b.* install\b.*\btorch\b.*https?://\S*/whl/(cpu)\b`)
	imagePin  = lazyre.New(`\binstall\b.*[\s"']torch==(\d[\w.]*\+cpu)\b`)
	built     = lazyre.New(`\bUSE_(CUDA|NCCL|ROCM)=(\w+)`)
	builtCUDA = lazyre.New(`\bCUDA_VERSION=(\d+\.\d+)`)
	jobState  = lazyre.New(`^\s*(?:JobState=|State: )(COMPLETED|FAILED|TIMEOUT|OUT_OF_MEMORY|CANCELLED|NODE_FAIL|PREEMPTED|BOOT_FAIL|DEADLINE)\b(.*)`)
	sacctPipe = lazyre.New(`^\d+(?:_\d+)?(?:\.\S+)?\|`)
	procLimit = lazyre.New(`^Max locked memory\s+(\d+|unlimited)\s+(?:\d+|unlimited)\s+bytes`)
	amdPCI    = lazyre.New(`(?:controller|accelerators)(?: \[\d+\])?: Advanced Micro Devices, Inc\. \[AMD/ATI\] .*(?:Instinct|MI\d{2,3})`)
	intelPCI  = lazyre.New(`(?:controller|accelerators)(?: \[\d+\])?: Intel Corporation .*(?:Ponte Vecchio|Data Center GPU Max)`)
	nvPCI     = lazyre.New(`(?:3D controller|VGA compatible controller)(?: \[\d+\])?: NVIDIA Corporation (.+?)(?: \(rev \w+\))?$`)
	uvPlan    = lazyre.New(`^ ([-+]) torch==(\d\S*)$`)
	uvMarks   = lazyre.New(`^(?:Unin|In)stalled \d+ packages? in `)
	condaMove = lazyre.New(`^\s+pytorch\s+(?:\S+::)?(?:pytorch-)?(\d[\w.]*)-(\S+)(?: \S+)? --> (?:\S+::)?(?:pytorch-)?(\d[\w.]*)-(\S+)`)
	// what conda (two lists) and mamba say that they will install
	condaLoad = lazyre.New(`^\s+([a-z][\w.-]*?)-(\d[\w.]*)\s+\|\s+(\S+)`)
	condaPlan = lazyre.New(`^\s+\S+\s+\S+::([a-z][\w.-]*?)-(\d[\w.]*)-(\S+)\s*$`)
	mambaPlan = lazyre.New(`^\s+\+ ([a-z][\w.-]*?)\s+(\d[\w.]*)\s+(\S+)\s+\S+/(?:linux-\w+|noarch)\b`)
	cmakeUse  = lazyre.New(`^--\s+(USE_CUDA|USE_NCCL|CUDA version)\s*: (ON|OFF|\d+\.\d+)\b`)
	// commands that show how an image was made
	shownRecipe = lazyre.New(`\b(?:apptainer|singularity) inspect\b|\b(?:docker|podman) (?:image )?history\b|\b(?:cat|less|head|tail|grep)\b.*(?i:dockerfile|containerfile|\.def\b)`)
	listHead    = lazyre.New(`List of packages in environment: "?([^"]+)"?`)
)

// forms reads package listings other than those of pip list and conda list:
// pip show, poetry show, lock files, explicit specifications, JSON, dpkg,
// definitions of images; and job states of scontrol and seff. It reports
// whether the line was one of these.
func (p *Parser) forms(text, msg string, add adder) bool {
	pkg := func(name, ver, aux string) {
		n := strings.ToLower(strings.ReplaceAll(name, "_", "-"))
		if interesting.MatchString(n) {
			if p.prefix != "" {
				add(kind.PkgEnv, n, p.prefix, "")
			}
			add(kind.Pkg, n, ver, aux)
		}
	}
	if len(msg) > 2000 && !strings.Contains(msg, `"name": "`) && !strings.Contains(msg, "USE_CUDA=") {
		return false
	}
	has := func(s string) bool { return strings.Contains(msg, s) }
	switch {
	case has(": ") && len(msg) < 200 && !has("\""):
		// keys that forms know begin with n, v, l, b or s
		switch key := strings.TrimLeft(msg, " "); key[0] | 0x20 {
		case 'n', 'v', 'l', 'b':
			if m := showLine.FindStringSubmatch(msg); m != nil {
				return p.show(strings.ToLower(m[1]), m[2], add)
			}
		case 's':
			if m := jobState.FindStringSubmatch(msg); m != nil {
				add(kind.Sacct, "", m[1], "")
				return true
			}
		}
	case has("JobState="):
		if m := jobState.FindStringSubmatch(msg); m != nil {
			add(kind.Sacct, "", m[1], "")
			return true
		}
	case has(`"dist_name": `):
		if m := jsonDist.FindStringSubmatch(msg); m != nil {
			pkg(m[1], m[2], m[3])
		}
		return true
	case has(`"name": "`) && has(`"version": "`):
		for _, m := range jsonPair.FindAllStringSubmatch(msg, -1) {
			pkg(m[1], m[2], "")
		}
		return true
	}
	if has("packages in environment: ") {
		if m := listHead.FindStringSubmatch(msg); m != nil {
			p.header, p.prefix = "conda", strings.TrimSpace(m[1])
			add(kind.PkgEnv, "", p.prefix, "")
			return true
		}
	}
	if p.lockName == "torch" && has("/whl/") {
		if m := lockIndex.FindStringSubmatch(msg); m != nil {
			add(kind.Pkg, "torch", p.lockVer, "lock+"+m[1])
			return true
		}
		if m := lockWheel.FindStringSubmatch(msg); m != nil {
			add(kind.Pkg, "torch", m[1]+"+"+m[2], "lock")
			return true
		}
	}
	switch {
	case strings.HasPrefix(msg, "Uninstalled ") || strings.HasPrefix(msg, "Installed "):
		p.uv = p.uv || uvMarks.MatchString(msg)
	case p.uv && has(" torch=="):
		if m := uvPlan.FindStringSubmatch(msg); m != nil {
			add(map[string]string{"-": kind.PipOut, "+": kind.PipIn}[m[1]], "torch", m[2], p.lastCmd)
			return true
		}
	case !has(" --> ") && (has("torch-") || has("torch ")) && (has(" | ") || has("::") || has(" + ") || strings.HasPrefix(msg, "+ ")):
		for _, re := range []*lazyre.Regexp{condaLoad, condaPlan, mambaPlan} {
			if m := re.FindStringSubmatch(text); m != nil {
				pkg(m[1], m[2], m[3])
				return true
			}
		}
	case has(" --> ") && has("pytorch"):
		if m := condaMove.FindStringSubmatch(text); m != nil {
			add(kind.PipOut, "torch", m[1]+"="+m[2], p.lastCmd)
			add(kind.PipIn, "torch", m[3]+"="+m[4], p.lastCmd)
			return true
		}
	case strings.HasPrefix(msg, "--  "):
		if m := cmakeUse.FindStringSubmatch(msg); m != nil {
			switch {
			case m[1] == "CUDA version":
				add(kind.TorchCUDA, "", m[2], "")
			case m[1] == "USE_CUDA" && m[2] == "OFF":
				add(kind.TorchCUDA, "", "None", "")
			case m[1] == "USE_NCCL" && m[2] == "OFF":
				add(kind.NCCLAvail, "", "False", "")
			}
			return true
		}
	case has(".conda") || has(".tar.bz2"):
		if m := condaURL.FindStringSubmatch(msg); m != nil && (strings.HasPrefix(strings.TrimSpace(msg), "http") || has("url: ")) {
			pkg(m[1], m[2], m[3])
			return true
		}
	case has("cpuonly") || has("pytorch-cpu"):
		if m := envPlain.FindStringSubmatch(msg); m != nil {
			add(kind.Pkg, "cpuonly", "", "")
			return true
		}
	case has("torch") && strings.HasPrefix(msg, "ii ") || strings.HasPrefix(msg, "hi "):
		if m := dpkgRow.FindStringSubmatch(msg); m != nil && !has("cuda") && !has("rocm") {
			add(kind.Debian, "torch", m[1], "")
			return true
		}
	case has("torch") && has("[installed"):
		if m := aptRow.FindStringSubmatch(msg); m != nil && !has("cuda") && !has("rocm") {
			add(kind.Debian, "torch", m[1], "")
			return true
		}
	case has("install") && has("torch") && p.imageLike(msg):
		if m := imagePin.FindStringSubmatch(msg); m != nil {
			add(kind.Pkg, "torch", m[1], "image")
			return true
		}
		if imageCPU.MatchString(msg) {
			add(kind.Pkg, "torch", "", "image+cpu")
			return true
		}
	case has("USE_CUDA="):
		p.config(msg, add)
		return true
	case has("ROCm System Management Interface"), has("AMD Instinct"), has("Advanced Micro Devices") && amdPCI.MatchString(msg):
		add(kind.OtherGPU, "", "amd", "")
		return false
	case has("Intel Corporation") && intelPCI.MatchString(msg):
		add(kind.OtherGPU, "", "intel", "")
		return false
	case has("NVIDIA Corporation") && nvPCI.MatchString(msg):
		add(kind.GPU, "", nvPCI.FindStringSubmatch(msg)[1], "")
		return true
	case has("locked memory"):
		if m := procLimit.FindStringSubmatch(msg); m != nil {
			v := m[1]
			if len(v) > 3 && v != "unlimited" {
				v = v[:len(v)-3] // about kB
			}
			add(kind.Memlock, "", v, "")
			return true
		}
	}
	return false
}

// imageLike reports whether the file is the recipe of a container image.
func (p *Parser) imageLike(msg string) bool {
	n := strings.ToLower(p.path[strings.LastIndexByte(p.path, '/')+1:])
	return strings.HasPrefix(msg, "RUN ") || shownRecipe.MatchString(p.lastCmd) || strings.HasPrefix(n, "dockerfile") || strings.HasPrefix(n, "containerfile") || strings.HasSuffix(n, ".def") || strings.HasSuffix(n, ".dockerfile")
}

// show reads the block that pip show, uv pip show and poetry show print.
func (p *Parser) show(key, val string, add adder) bool {
	switch key {
	case "name":
		p.showName, p.showVer = strings.ToLower(val), ""
		return interesting.MatchString(p.showName)
	case "version":
		if p.showName == "" || !interesting.MatchString(p.showName) || p.showVer != "" || val[0] < '0' || val[0] > '9' {
			return false
		}
		p.showVer = val
		add(kind.Pkg, p.showName, val, "")
		return true
	case "build":
		if p.showVer == "" {
			return false
		}
		add(kind.Pkg, p.showName, p.showVer, val)
		return true
	case "location":
		if p.showVer == "" {
			return false
		}
		if dir, _, ok := strings.Cut(val, "/lib/python"); ok {
			add(kind.PkgEnv, p.showName, dir, "")
			add(kind.Pkg, p.showName, p.showVer, "")
		}
		p.showName, p.showVer = "", ""
		return true
	}
	return false
}

// config reads torch.__config__.show().
func (p *Parser) config(msg string, add adder) {
	on := map[string]string{}
	for _, m := range built.FindAllStringSubmatch(msg, -1) {
		on[m[1]] = m[2]
	}
	off := func(k string) bool { return on[k] == "0" || on[k] == "OFF" }
	switch {
	case off("CUDA") && (on["ROCM"] == "" || off("ROCM")):
		add(kind.TorchCUDA, "", "None", "")
	case on["CUDA"] != "" && !off("CUDA"):
		v := "1"
		if m := builtCUDA.FindStringSubmatch(msg); m != nil {
			v = m[1]
		}
		add(kind.TorchCUDA, "", v, "")
	}
}
