package tables

import (
	"slices"
	"strings"

	"github.com/ncclinic/ncclinic/internal/lazyre"
)

var (
	dataCenter = lazyre.New(`\b(GB300|B300|GB200|B200|B100|GH200|H100|H200|H800|H20|A100|A800|A30|A40|A10G?|A16|A2|L4|L20|L40S?|L40G|T4G?|V100S?|P100|P40|P4|M60|M40|M4|K80|K40[cmst]?|K20[cmsX]?m?)\b`)
	consumer   = lazyre.New(`\b(GeForce|TITAN|GTX|RTX|Quadro|NVS|MX[0-9]+)\b`)
	grace      = lazyre.New(`\b(GH200|GB200|GB300|GB10)\b`)
	wordRE     = lazyre.New(`[A-Za-z0-9]+`)
)

// DataCenter says whether a GPU is a data-centre product, on which NVIDIA allows
// the forward compatibility package (cuda-compat). Some RTX cards in NGC-ready
// servers may use it too, so those are Unknown.
//
// Source: NVIDIA CUDA Compatibility, "Forward Compatibility" (data-centre GPUs,
// select NGC-ready RTX cards, Jetson), read 2026-11-30.
func DataCenter(name string) Answer {
	n := GPUName(name)
	switch {
	case strings.Contains(n, "GeForce") || strings.Contains(n, "TITAN") || strings.Contains(n, "GTX"):
		return No
	case consumer.MatchString(n):
		return Unknown
	case dataCenter.MatchString(n):
		return Yes
	}
	return Unknown
}

// GraceHost says whether a GPU comes only with NVIDIA's own Arm CPU.
func GraceHost(name string) bool { return grace.MatchString(GPUName(name)) }

// times is how many of a GPU there are, written before or behind its name.
var times = lazyre.New(`^[0-9]{1,2} ?[x×*] ?|(?: x ?|[×*] ?)[0-9]{1,2}$`)

// glued are models with what sites write behind them without a blank: a100l,
// h100nvl, v100s is a model of its own.
var glued = lazyre.New(`^([AHVLBP][0-9]{2,3}|G[HB][0-9]{3})(L|C|NVL|SXM[0-9]?|PCIE|X)$`)

// bareCard is a GeForce or workstation card without its series.
var bareCard = lazyre.New(`^(9[5-8]0|10[5-8]0|16[56]0|[2-5]0[5-9]0|A[2456][05]00)(TI|SUPER|D|M)?$`)

// GPUName brings the name of a GPU, as a product name or as a type in Slurm's
// GRES ("a100", "nvidia_a100-sxm4-80gb", "rtx3090", "1080Ti", "tesla_v100"), into
// the form of NVIDIA's product names. The instance of a MIG profile is left out:
// "a100_1g.5gb" is an A100.
func GPUName(name string) string {
	s := times.ReplaceAllString(strings.TrimSpace(name), "")
	s = strings.NewReplacer("_", " ", "-", " ", "/", " ").Replace(s)
	var f []string
	series := false
	for _, w := range strings.Fields(s) {
		u := strings.ToUpper(w)
		switch {
		case u == "MIG" || migProfile.MatchString(w) && len(f) > 0:
			continue
		case migProfile.MatchString(w):
			f = append(f, strings.ToLower(w))
		case u == "GEFORCE":
			f = append(f, "GeForce")
		case u == "TESLA", u == "NVIDIA", u == "QUADRO":
			f = append(f, u[:1]+strings.ToLower(u[1:]))
		case strings.HasPrefix(u, "RTX") && len(u) > 3, strings.HasPrefix(u, "GTX") && len(u) > 3:
			f, series = append(f, append([]string{u[:3]}, tiApart(u[3:])...)...), true
		case bareCard.MatchString(u):
			if !series && !strings.HasPrefix(u, "A") {
				f = append(f, map[bool]string{true: "GTX", false: "RTX"}[strings.HasPrefix(u, "1") || strings.HasPrefix(u, "9")])
			} else if !series {
				f = append(f, "RTX")
			}
			f = append(f, tiApart(u)...)
		case w == strings.ToLower(w) || strings.ContainsAny(w, "0123456789") && glued.MatchString(u):
			if m := glued.FindStringSubmatch(u); m != nil {
				u = m[1]
			}
			f = append(f, u)
		default:
			f = append(f, w)
		}
		series = series || u == "RTX" || u == "GTX"
	}
	return strings.Join(f, " ")
}

// tiApart makes 1080TI two words.
func tiApart(u string) []string {
	for suffix, word := range map[string]string{"TI": "Ti", "SUPER": "SUPER", "D": "D", "M": "Mobile"} {
		if n, ok := strings.CutSuffix(u, suffix); ok && digits(n) {
			return []string{n, word}
		}
	}
	return []string{u}
}

// migProfile is an instance of Multi-Instance GPU: 1g.5gb, 3g.40gb, 1g.10gb+me.
var migProfile = lazyre.New(`(?i)^([1-7])g\.([0-9]{1,3})gb(\+(me|gfx|me\.all))?$`)

// migOnly are the profiles that one kind of GPU alone has. 1g.10gb, for one, is
// of the A100 with 80 GB and of the H100.
//
// Source: NVIDIA Multi-Instance GPU User Guide, "Supported MIG Profiles"; read 2026-11-30.
var migOnly = map[string]string{
	"1g.5gb": "8.0", "2g.10gb": "8.0", "3g.20gb": "8.0", "4g.20gb": "8.0", "7g.40gb": "8.0",
	"1g.6gb": "8.0", "2g.12gb": "8.0", "4g.24gb": "8.0",
}

func digits(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }

// GPUCap gives the compute capability of a GPU by a product name or a GRES type,
// "" when the table does not hold it.
func GPUCap(name string) string {
	if m := saidMaker(name); m != "" && m != NVIDIA {
		return ""
	}
	if c := CapOf(name); c != "" {
		return c
	}
	n := GPUName(name)
	if c := CapOf(n); c != "" {
		return c
	}
	profile, _, _ := strings.Cut(n, "+")
	return migOnly[profile]
}

func anyWord(names, words []string) bool {
	for _, n := range names {
		for _, w := range wordRE.FindAllString(GPUName(n), -1) {
			if slices.Contains(words, w) {
				return true
			}
		}
	}
	return false
}
