package explain

import (
	"strings"

	"github.com/ncclinic/ncclinic/internal/diag"
	"github.com/ncclinic/ncclinic/internal/fact"
	"github.com/ncclinic/ncclinic/internal/lazyre"
)

var ofBatchShell = lazyre.New(`^"?(?:--export=\S*,)?(?:CUDA|HIP)_VISIBLE_DEVICES=["']?\$\{?SLURM_(?:LOCALID|PROCID)\b`)

// oneIndexForAll judges NCCL's refusal of several ranks on one device when the
// batch shell puts its own local id into the step's command: all tasks get 0.
func (v *view) oneIndexForAll() {
	es := v.peek("S116", "S117")
	for _, x := range v.exc {
		if strings.Contains(x.Message, ", invalid usage") || strings.Contains(x.Message, "Duplicate GPU detected") {
			es = append(es, &fact.Event{Place: x.Place, Text: x.Type + ": " + fact.Clip(x.Message, 300)})
		}
	}
	if len(es) == 0 {
		return
	}
	for _, s := range v.scripts {
		for i := range s.f.Commands {
			c := &s.f.Commands[i]
			if c.Name != "srun" || c.Dead || c.Step >= 0 {
				continue
			}
			for _, w := range c.Words[1:] {
				if ofBatchShell.MatchString(w.Raw) {
					v.used["S116"], v.used["S117"] = true, true
					x := v.add(cand{id: "gpu-shared-by-ranks", cert: diag.Likely, over: []string{"run-exception", "net-interface-wrong"}, needs: []string{"srun -l bash -c 'echo $CUDA_VISIBLE_DEVICES'"}}, cap4(es)...)
					x.ev = append(x.ev, s.ev(w.Pos))
					return
				}
			}
		}
	}
}
