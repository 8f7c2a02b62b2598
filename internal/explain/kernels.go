package explain

import (
	"github.com/ncclinic/ncclinic/internal/fact"
	"github.com/ncclinic/ncclinic/internal/lazyre"
)

// ownCheck is how compiled extensions report an error of a kernel of theirs;
// torch raises a RuntimeError that begins with "CUDA error".
var ownCheck = lazyre.New(`^error in (\w+): no kernel image is available`)

// ownKernel names the function of an extension that has no kernel for the GPU,
// when extensions are all that complains.
func ownKernel(es []*fact.Event) string {
	name := ""
	for _, e := range es {
		m := ownCheck.FindStringSubmatch(e.Text)
		if m == nil {
			return ""
		}
		name = m[1]
	}
	return name
}
