package listing

import (
	"strings"

	"github.com/ncclinic/ncclinic/internal/fact/kind"
	"github.com/ncclinic/ncclinic/internal/lazyre"
)

var (
	// accelerate env, transformers env, diffusers-cli env
	envTorch = lazyre.New(`^[- ]*PyTorch version \(GPU\??\)\s*: (\d\S*)(?: \((True|False|NA)\))?`)
	spackPkg = lazyre.New(`\bpy-torch@=?(\d[\d.]*)(\S*(?: +[+~-]\S+)*)`)
	// programs that print what torch says of itself
	sayCUDA = lazyre.New(`\btorch\.version\.(cuda|hip)['")]*(?:\s*(?:[:=,]|->|is\b))+\s*['"]?(None|\d+\.\d+)`)
	sayNCCL = lazyre.New(`(?i)\b(?:is_nccl_available(?:\(\))?|nccl[ _]available\??)['")]*(?:\s*(?:[:=,]|->|is\b))+\s*(True|False)\b`)
	sayAny  = lazyre.New(`(?i)\b(?:torch\.cuda\.is_available(?:\(\))?|cuda[ _](?:is[ _])?available\??)['")]*(?:\s*(?:[:=,]|->|is\b))+\s*(True|False)\b`)
	sayDist = lazyre.New(`(?i)\b(?:torch\.distributed|dist)\.is_available(?:\(\))?['")]*(?:\s*(?:[:=,]|->|is\b))+\s*(True|False)\b`)
	// ls of the folder that pip writes beside a package
	distInfo = lazyre.New(`(?:^|\s)(/\S*/(?:site|dist)-packages)/torch-(\d[\w.+%]*)\.dist-info/?(?:$|:)`)
	// version.py of torch
	verFile = lazyre.New(`^(__version__|cuda|hip|xpu)(?:: Optional\[str\])? = (None|'[^']+'|"[^"]+")$`)
	rowGone = lazyre.New(`^\s*([-+])\s+(?:py)?torch\s+(\d[\w.]*)\s+(\S+)\s+\S+`)
)

// says reads what environment reports of frameworks, spack and torch's own
// version file tell about the build.
func (p *Parser) says(text, msg string, add adder) bool {
	if len(msg) > 600 {
		return false
	}
	if strings.Contains(msg, "PyTorch version (GPU") {
		if m := envTorch.FindStringSubmatch(msg); m != nil {
			add(kind.TorchVer, "", m[1], "")
			if m[2] == "True" || m[2] == "False" {
				add(kind.CUDAAvail, "", m[2], "")
			}
			return true
		}
	}
	if len(msg) < 240 && (strings.Contains(msg, "vailable") || strings.Contains(msg, "torch.version.")) && (strings.Contains(msg, "True") || strings.Contains(msg, "False") || strings.Contains(msg, "torch.version.")) {
		for _, m := range sayCUDA.FindAllStringSubmatch(msg, -1) {
			add(map[string]string{"cuda": kind.TorchCUDA, "hip": kind.TorchHIP}[m[1]], "", m[2], "")
		}
		for _, k := range []struct {
			re   *lazyre.Regexp
			kind string
		}{{sayNCCL, kind.NCCLAvail}, {sayAny, kind.CUDAAvail}, {sayDist, kind.DistAvail}} {
			if m := k.re.FindStringSubmatch(msg); m != nil {
				add(k.kind, "", strings.ToUpper(m[1][:1])+strings.ToLower(m[1][1:]), "")
			}
		}
	}
	if strings.Contains(msg, "-packages/torch-") {
		if m := distInfo.FindStringSubmatch(msg); m != nil {
			prefix, _, _ := strings.Cut(m[1], "/lib/python")
			add(kind.PkgEnv, "torch", prefix, "")
			add(kind.Pkg, "torch", strings.ReplaceAll(m[2], "%2B", "+"), "")
			return true
		}
	}
	if strings.Contains(msg, "py-torch@") {
		if m := spackPkg.FindStringSubmatch(msg); m != nil {
			p.spack(m[1], m[2], add)
			return true
		}
	}
	if strings.Contains(p.lastCmd, "version.py") && strings.Contains(msg, " = ") {
		if m := verFile.FindStringSubmatch(msg); m != nil {
			k := map[string]string{"__version__": kind.TorchVer, "cuda": kind.TorchCUDA, "hip": kind.TorchHIP}[m[1]]
			if k != "" {
				add(k, "", strings.Trim(m[2], `'"`), "")
			}
			return true
		}
	}
	if strings.Contains(msg, "torch ") {
		// the two rows with which mamba shows a change
		if m := rowGone.FindStringSubmatch(text); m != nil {
			if m[1] == "-" {
				p.gone = m[2] + "=" + m[3]
				add(kind.PipOut, "torch", p.gone, p.lastCmd)
				return true
			}
			if p.gone != "" {
				add(kind.PipIn, "torch", m[2]+"="+m[3], p.lastCmd)
				p.gone = ""
			}
		}
	}
	return false
}

// spack reads the variants of a spec: ~cuda, +cuda, ~nccl.
func (p *Parser) spack(ver, variants string, add adder) {
	has := func(v string) bool {
		for _, f := range strings.FieldsFunc(strings.NewReplacer("+", " +", "~", " ~", "-", " ~").Replace(variants), func(r rune) bool { return r == ' ' || r == '%' || r == '/' }) {
			if f == v {
				return true
			}
		}
		return false
	}
	switch {
	case has("+cuda"):
		add(kind.Pkg, "torch", ver, "spack_cuda1")
	case has("+rocm"):
		add(kind.TorchHIP, "", "spack", "")
	case has("~cuda"):
		add(kind.Pkg, "torch", ver, "cpu_spack")
	default:
		add(kind.Pkg, "torch", ver, "")
	}
	if has("~nccl") {
		add(kind.NCCLAvail, "", "False", "")
	}
}
