package explain

import (
	"strings"
	"testing"

	collect "github.com/ncclinic/ncclinic/internal/collect/script"
	"github.com/ncclinic/ncclinic/internal/fact"
)

func viewOf(src string) (*view, *script) {
	l := &fact.Logs{Files: []fact.LogFile{{Path: "job.sbatch", Kind: fact.KindScript}}}
	l.Texts = []fact.SourceText{{Kind: fact.KindScript, From: 1, Lines: strings.Split(src, "\n"), Script: collect.Parse("job.sbatch", []byte(src), collect.Options{})}}
	v := newView(l, nil, Options{})
	return v, v.scripts[0]
}

// TestScript asks what deciders ask of scripts, in several ways to write the same.
func TestScript(t *testing.T) {
	twice := func(v *view, _ *script) string { _, p, n := v.launcherPerTask(); return itoa(n) + "@" + itoa(p.Line) }
	order := func(_ *view, s *script) string {
		a, l, r := s.order()
		return itoa(a.Line) + " " + itoa(l.Line) + " " + itoa(r.Line)
	}
	activates := func(v *view, _ *script) string {
		if v.activates() {
			return "yes"
		}
		return "no"
	}
	late := func(_ *view, s *script) string {
		e, _ := s.lateGPU()
		return itoa(e.Line)
	}
	none := func(v *view, _ *script) string {
		e, _ := v.stepWithoutGPU()
		return itoa(e.Line)
	}
	box := func(v *view, _ *script) string {
		es, _ := v.containerWithoutGPU()
		return itoa(len(es))
	}
	export := func(v *view, _ *script) string {
		var c cand
		v.exportLine(&c)
		return c.args["value"]
	}
	for _, c := range []struct {
		name, src, want string
		ask             func(*view, *script) string
	}{
		{"launcher in 8 tasks", "#!/bin/bash\n#SBATCH -N2 --ntasks-per-node=8\nsrun torchrun --nproc_per_node=8 t.py\n", "8@3", twice},
		{"through a function and a variable", "#!/bin/bash\n#SBATCH -N2 --ntasks-per-node=8\nL='python -m torch.distributed.run --nproc_per_node=8'\ngo() {\n  srun $L t.py\n}\ngo\n", "8@5", twice},
		{"a function that nothing calls", "#!/bin/bash\n#SBATCH -N2 --ntasks-per-node=8\ngo() { srun torchrun t.py; }\n", "0@0", twice},
		{"inside a here-document that is only written", "#!/bin/bash\n#SBATCH -N2 --ntasks-per-node=8\ncat > x.txt <<'EOF'\nsrun torchrun t.py\nEOF\nsrun python t.py\n", "0@0", twice},
		{"one task a node", "#!/bin/bash\n#SBATCH -N2 --ntasks-per-node=8\nsrun -N2 -n2 torchrun t.py\n", "0@0", twice},
		{"options that nobody knows", "#!/bin/bash\n#SBATCH -N2 --ntasks-per-node=8\nsrun $OPTS torchrun t.py\n", "0@0", twice},
		{"bash -c over several lines", "#!/bin/bash\n#SBATCH -n 4 -N 1\nsrun bash -c \"cd x\n torchrun t.py\"\n", "4@3", twice},

		{"activated before", "#!/bin/bash\nconda activate x\nsrun python t.py\n", "2 3 0", order},
		{"activated after", "#!/bin/bash\nsrun python t.py\n. venv/bin/activate\n", "3 2 0", order},
		{"modules purged between", "#!/bin/bash\nconda activate x\nmodule purge\nsrun python t.py\n", "2 4 3", order},
		{"module list is harmless", "#!/bin/bash\nconda activate x\nmodule list\nsrun python t.py\n", "2 4 0", order},
		{"activated again", "#!/bin/bash\nconda activate x\nmodule purge\nconda activate x\nsrun python t.py\n", "2 5 0", order},
		{"PATH replaced", "#!/bin/bash\nconda activate x\nexport PATH=/opt/py/bin:$PATH\nsrun python t.py\n", "2 4 3", order},
		{"hostname is no launch", "#!/bin/bash\nsrun hostname\nconda activate x\nsrun python t.py\n", "3 4 0", order},

		{"nothing", "#!/bin/bash\nsrun python t.py\n", "no", activates},
		{"csh is not read", "#!/bin/csh\nsource ~/x.csh\nsrun python t.py\n", "yes", activates},
		{"behind a syntax error perhaps", "#!/bin/bash\nif true; then\nsrun python t.py\n", "yes", activates},
		{"container", "#!/bin/bash\nsrun apptainer exec --nv x.sif python t.py\n", "yes", activates},
		{"by its path", "#!/bin/bash\nP=/opt/e/bin/python\nsrun $P t.py\n", "yes", activates},

		{"late", "#!/bin/bash\n#SBATCH -N1\nset -e\n#SBATCH --gres=gpu:4\n", "4", late},
		{"indented", "#!/bin/bash\n #SBATCH --gpus=4\n", "2", late},
		{"switched off", "#!/bin/bash\n##SBATCH --gpus=4\n", "0", late},

		{"step without GPUs", "#!/bin/bash\nS=\"srun --gres=none\"\n$S torchrun t.py\n", "2", none},
		{"only a helper without GPUs", "#!/bin/bash\nsrun --gres=none hostname\nsrun torchrun t.py\n", "0", none},

		{"no --nv", "#!/bin/bash\nsrun apptainer exec x.sif python t.py\n", "1", box},
		{"--nv", "#!/bin/bash\nsrun apptainer exec --nv x.sif python t.py\n", "0", box},
		{"by a variable", "#!/bin/bash\nexport APPTAINER_NV=1\nsrun apptainer exec x.sif python t.py\n", "0", box},
		{"options unknown", "#!/bin/bash\nsrun apptainer exec $OPTS x.sif python t.py\n", "0", box},

		{"secrets in --export", "#!/bin/bash\nsrun --export=NONE,API_TOKEN=hunter2abc99 python t.py\n", "NONE,API_TOKEN=***", export},
		{"ALL stays", "#!/bin/bash\n#SBATCH --export=ALL,X=1\nsrun python t.py\n", "", export},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := c.ask(viewOf(c.src)); got != c.want {
				t.Errorf("got %q, want %q in\n%s", got, c.want, c.src)
			}
		})
	}
}

// TestQuoteContinued quotes a command with the lines that continue it, from the
// masked text.
func TestQuoteContinued(t *testing.T) {
	_, s := viewOf("#!/bin/bash\nsrun --a \\\n  torchrun \\\n  t.py\nls")
	if got := s.quote(2); got != "srun --a  torchrun  t.py" {
		t.Errorf("%q", got)
	}
	if got := s.quote(99); got != "" {
		t.Errorf("%q", got)
	}
}
