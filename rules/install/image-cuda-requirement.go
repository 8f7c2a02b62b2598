package install

import (
	"strings"

	"github.com/ncclinic/ncclinic/internal/diag"
	"github.com/ncclinic/ncclinic/internal/fact"
	"github.com/ncclinic/ncclinic/internal/lazyre"
	"github.com/ncclinic/ncclinic/internal/tables"
)

// An image of NVIDIA's says in NVIDIA_REQUIRE_CUDA which drivers it accepts;
// the hook of enroot and of Docker refuses to start it on others. Apptainer's --nv does not ask.
var _ = Checks.Add("image-cuda-requirement", func(b *fact.Bundle, r *diag.Reporter) {
	switch b.Target.Kind {
	case "squashfs", "oci", "docker":
	default:
		return
	}
	req, ok := b.Lookup("NVIDIA_REQUIRE_CUDA")
	if v, off := b.Lookup("NVIDIA_DISABLE_REQUIRE"); !ok || req == "" || off && v != "" && v != "0" && v != "false" {
		return
	}
	d := b.Node.Driver.V.Version
	cuda := tables.DriverCUDA(d)
	if cuda == "" {
		r.Skip("the tables do not know CUDA " + req + " with driver " + d)
		return
	}
	if accepts(req, cuda, d) {
		return
	}
	a := args(b)
	a["driver"], a["driver_cuda"] = d, cuda
	a["needs"], _, _ = strings.Cut(req, " ")
	at := fact.EnvVarAt("NVIDIA_REQUIRE_CUDA", req)
	f := r.Hit("torch-needs-newer-driver", diag.Likely, a, at, b.Node.Driver.At)
	f.Need("srun --gres=gpu:1 --container-image=" + quote(b.Target.Path) + " true")
})

var condition = lazyre.New(`^(cuda|driver|arch|brand)(>=|<=|!=|>|<|=)(.+)$`)

// accepts evaluates the expression: alternatives stand apart by blanks, the
// conditions of one by commas. What is not known here, such as the brand of the GPU, counts as true.
func accepts(req, cuda, driver string) bool {
	for alt := range strings.FieldsSeq(req) {
		all := true
		for c := range strings.SplitSeq(alt, ",") {
			m := condition.FindStringSubmatch(c)
			if m == nil {
				continue
			}
			have := map[string]string{"cuda": cuda, "driver": driver}[m[1]]
			if have == "" {
				continue
			}
			n := tables.Compare(have, m[3])
			switch m[2] {
			case ">=":
				all = all && n >= 0
			case "<=":
				all = all && n <= 0
			case ">":
				all = all && n > 0
			case "<":
				all = all && n < 0
			case "=":
				all = all && n == 0
			case "!=":
				all = all && n != 0
			}
		}
		if all {
			return true
		}
	}
	return false
}
