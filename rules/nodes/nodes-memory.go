package nodes

import (
	"github.com/ncclinic/ncclinic/internal/diag"
	"github.com/ncclinic/ncclinic/internal/fact"
)

var _ = Checks.Add("nodes-memory", func(b *fact.Bundle, r *diag.Reporter) {
	if d, ok := differs(b, "memory.free"); ok {
		f := report(r, "host-out-of-memory", diag.Possible, "memory", d).Sev(diag.Warning)
		if odd := d.odd(); odd != "" {
			f.Need("srun --overlap --nodelist=" + odd + " --ntasks-per-node=1 ps -eo rss,user,pid,comm --sort=-rss --no-headers")
		}
	}
})
