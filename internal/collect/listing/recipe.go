package listing

import (
	"strings"

	"github.com/ncclinic/ncclinic/internal/fact/kind"
	"github.com/ncclinic/ncclinic/internal/lazyre"
)

var (
	composeName = lazyre.New(`(?i)(?:^|/)(?:docker-)?compose[\w.-]*\.ya?ml$`)
	podKind     = lazyre.New(`^kind: (?:Pod|Job|PyTorchJob|MPIJob|TrainJob|RayCluster|StatefulSet)\s*$`)
	givesGPU    = lazyre.New(`nvidia\.com/(?:gpu|mig)|amd\.com/gpu|driver: ['"]?(?:nvidia|cdi)|runtime: ['"]?nvidia|^\s*gpus:|capabilities: \[.*gpu|runtimeClassName: ['"]?nvidia`)
	tresCol     = lazyre.New(`\b((?:billing=\d+,)?cpu=\d+(?:,[\w/:.]+=[\w.]+)*)`)
	pyVersion   = lazyre.New(`^Python ([23]\.\d+\.\d+)\b`)
)

// recipes reads files that start containers: whether they hand GPUs over.
func (p *Parser) recipes(msg string, add adder) bool {
	switch {
	case strings.HasPrefix(msg, "services:") && composeName.MatchString(p.path):
		add(kind.Recipe, "compose", "", "")
	case podKind.MatchString(msg):
		add(kind.Recipe, "pod", "", "")
	case strings.Contains(msg, ": ") || strings.HasSuffix(msg, ":"):
		if len(msg) < 120 && givesGPU.MatchString(msg) {
			add(kind.Recipe, "gpu", "", "")
		}
		return false
	default:
		return false
	}
	return true
}
