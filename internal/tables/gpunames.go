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

// GPUName brings the name of a GPU, as a product name or as a type in Slurm's
// GRES ("a100", "nvidia_a100-sxm4-80gb", "rtx3090", "tesla_v100"), into the form
// of NVIDIA's product names.
func GPUName(name string) string {
	s := strings.NewReplacer("_", " ", "-", " ", "/", " ").Replace(name)
	f := strings.Fields(s)
	for i, w := range f {
		u := strings.ToUpper(w)
		switch {
		case u == "GEFORCE":
			f[i] = "GeForce"
		case u == "TESLA", u == "NVIDIA", u == "QUADRO":
			f[i] = u[:1] + strings.ToLower(u[1:])
		case strings.HasPrefix(u, "RTX") && len(u) > 3, strings.HasPrefix(u, "GTX") && len(u) > 3:
			f[i] = u[:3] + " " + u[3:]
		case w == strings.ToLower(w):
			f[i] = u
			// Types of a site's own, such as a100l: model, then one letter.
			if n := len(u); n >= 5 && (u[n-1] == 'L' || u[n-1] == 'C') && digits(u[1:n-1]) {
				f[i] = u[:n-1]
			}
		}
	}
	return strings.Join(f, " ")
}

func digits(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }

// GPUCap gives the compute capability of a GPU by a product name or a GRES type,
// "" when the table does not hold it.
func GPUCap(name string) string {
	if c := CapOf(name); c != "" {
		return c
	}
	return CapOf(GPUName(name))
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
