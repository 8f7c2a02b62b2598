package script

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/ncclinic/ncclinic/internal/fact"
)

// opts writes the live options of a header for comparison.
func opts(s *fact.Script) string {
	var out []string
	for _, d := range s.Directives {
		t := d.Name
		if d.HasValue {
			t += "=" + d.Value
		}
		if !d.Known {
			t += "?"
		}
		out = append(out, t)
	}
	return strings.Join(out, " ")
}

func TestDirectives(t *testing.T) {
	for name, c := range map[string]struct{ src, want, refused string }{
		"forms":          {"#SBATCH --nodes=2 -n 4 -c8 --gres gpu:1", "nodes=2 ntasks=4 cpus-per-task=8 gres=gpu:1", ""},
		"no blank":       {"#SBATCH-c 2", "cpus-per-task=2", ""},
		"quotes":         {`#SBATCH --comment="a b # c" -J 'x y'`, "comment=a b # c job-name=x y", ""},
		"comment":        {"#SBATCH -N 2 # -n 4", "nodes=2", ""},
		"comment inside": {"#SBATCH -N 2#3", "nodes=2", ""},
		"escape":         {`#SBATCH --comment=a\#b`, "comment=a#b", ""},
		"escaped blank":  {`#SBATCH --comment=a\ b`, "comment=a b", ""},
		"abbreviation":   {"#SBATCH --job-n=x --cpus-per-t=3", "job-name=x cpus-per-task=3", ""},
		"alias":          {"#SBATCH --tasks-per-node=4", "ntasks-per-node=4", ""},
		"late":           {"true\n#SBATCH -N 2", "", ""},
		"indented":       {" #SBATCH -N 2", "", ""},
		"disabled":       {"##SBATCH -N 2\n# SBATCH -n 3", "", ""},
		"site option":    {"#SBATCH --uenv=x -N 2", "uenv=x? nodes=2", "unknown"},
		"word":           {"#SBATCH -N 2 more", "nodes=2", "word"},
		"equals":         {"#SBATCH --nodes = 2", "nodes==", "word value"},
		"open quote":     {`#SBATCH --comment="x`, "", "quote"},
		"dash":           {"#SBATCH –N 2", "", "dash word"},
		"variable":       {"#SBATCH --nodes=$N", "nodes=$N", "value"},
		"time":           {"#SBATCH -t 28:00:00:00", "time=28:00:00:00", "value"},
		"removed":        {"#SBATCH --workdir=/x", "workdir=/x?", "removed"},
		"optional":       {"#SBATCH --exclusive --nice", "exclusive nice", ""},
		"missing value":  {"#SBATCH --nodes", "", "novalue"},
	} {
		s := Parse(name, []byte("#!/bin/bash\n"+c.src+"\n"), Options{})
		var kinds []string
		for _, e := range s.Refused {
			kinds = append(kinds, e.Kind)
		}
		if got := opts(s); got != c.want {
			t.Errorf("%s: options %q, want %q", name, got, c.want)
		}
		if got := strings.Join(kinds, " "); got != c.refused {
			t.Errorf("%s: refused %q, want %q", name, got, c.refused)
		}
	}
}

func TestHetjob(t *testing.T) {
	s := Parse("x", []byte("#!/bin/bash\n#SBATCH -N 1\n#SBATCH hetjob\n#SBATCH -N 2 -n 4\ntrue\n"), Options{})
	if s.HetGroups != 2 || s.Request.Nodes != 1 || len(s.Directives) != 3 || s.Directives[2].Het != 1 {
		t.Errorf("%+v %+v", s.Directives, s.Request)
	}
}

func TestRequest(t *testing.T) {
	for src, want := range map[string]string{
		"#SBATCH -N 2 --ntasks-per-node=4 --gres=gpu:a100:4": "n2 tpn4 g4",
		"#SBATCH --ntasks=8 --ntasks-per-node=4":             "n2 tpn4 g0",
		"#SBATCH --gpus=8 -N 2":                              "n2 tpn1 g4",
		"#SBATCH --gpus-per-task=1 -N 1 -n 4":                "n1 tpn4 g4",
		"#SBATCH --gres=gpu:v100 -N 1":                       "n1 tpn1 g1",
		"#SBATCH --ntasks=1":                                 "n1 tpn1 g0",
		"#SBATCH -N 4 -n 2":                                  "n2 tpn1 g0",
		"#SBATCH --gres=gpu:2(S:0),nvme:1":                   "n0 tpn1 g2",
	} {
		r := Parse("x", []byte("#!/bin/bash\n"+src+"\n"), Options{}).Request
		if got := fmt.Sprintf("n%d tpn%d g%d", r.EffectiveNodes, r.EffectiveTPN, r.EffectiveGPUs); got != want {
			t.Errorf("%s: %s, want %s", src, got, want)
		}
	}
}

// TestLinesOfAVariable: what comes with a variable stands where it is expanded.
func TestLinesOfAVariable(t *testing.T) {
	s := Parse("x", []byte("#!/bin/bash\nL=\"cd a;\ntorchrun t.py\"\nsrun bash -c \"$L\"\n"), Options{})
	if len(s.Launches) != 1 || s.Launches[0].Line != 4 {
		t.Errorf("launches %+v, want one on line 4", s.Launches)
	}
}

// TestMoreWords keeps what is known of a command when one way through a branch
// only puts words behind it.
func TestMoreWords(t *testing.T) {
	for src, want := range map[string]string{
		"C=\"torchrun --nproc_per_node=2 t.py\"\nif [ $X ]; then C=\"$C --more\"; fi\nsrun $C":     "torchrun 2",
		"C=\"torchrun --nproc_per_node=2\"\nif [ $X ]; then C=\"$C --nnodes 2\"; fi\nsrun $C t.py": "torchrun 2 open",
		"C=\"torchrun t.py\"\nif [ $X ]; then C=\"python t.py\"; fi\nsrun $C":                      "wrapper  open",
	} {
		s := Parse("x", []byte("#!/bin/bash\n#SBATCH --nodes=1\n"+src+"\n"), Options{})
		got := ""
		for i := range s.Launches {
			l := &s.Launches[i]
			got += l.Kind + " " + l.Nproc.Text
			if l.Open {
				got += " open"
			}
		}
		if got != want {
			t.Errorf("%q: %q, want %q", src, got, want)
		}
	}
}

func TestSeconds(t *testing.T) {
	for v, want := range map[string]int64{"24": 1440, "1:30": 90, "1:00:00": 3600, "1-0": 86400, "1-12:30": 131400, "2-": 172800, "1-:": -2, "2-1:2:3": 176523, "UNLIMITED": -1, "x": -2, "28:00:00:00": -2, "": -2} {
		got, ok := Seconds(v)
		if !ok {
			got = -2
		}
		if got != want {
			t.Errorf("Seconds(%q) = %d, want %d", v, got, want)
		}
	}
}

// TestLaunches follows variables, arrays, strings and wrappers to the launcher.
func TestLaunches(t *testing.T) {
	head := "#!/bin/bash\n#SBATCH -N 2 --ntasks-per-node=1 --gres=gpu:4\n"
	for name, c := range map[string]struct{ body, want string }{
		"plain":      {"srun torchrun --nproc_per_node=4 --nnodes $SLURM_NNODES t.py --lr 1", "torchrun srun/1 np=4 nn=2 t.py"},
		"beginnings": {"srun torchrun --nproc_per_nod=4 --nno 2 --stand t.py", "torchrun srun/1 np=4 nn=2 t.py"},
		"not one":    {"srun torchrun --n=4 --nnodes=2 t.py", "torchrun srun/1 np= nn=2 t.py"},
		"variable":   {"L=\"torchrun --nproc_per_node $SLURM_GPUS_ON_NODE\"\nsrun $L t.py", "torchrun srun/1 np=4 nn= t.py"},
		"array":      {"A=(--nproc-per-node 4)\nA+=(--nnodes=2)\nsrun torchrun \"${A[@]}\" t.py", "torchrun srun/1 np=4 nn=2 t.py"},
		"bash -c":    {"export N=4\nsrun bash -c 'torchrun --nproc_per_node=$N t.py'", "torchrun srun/1 np=4 nn= t.py"},
		"heredoc":    {"srun bash <<'EOF'\ntorchrun --nproc_per_node=3 t.py\nEOF", "torchrun srun/1 np=3 nn= t.py"},
		"written":    {"cat > in.sh <<EOF\ntorchrun --nproc_per_node=3 t.py\nEOF\nsrun bash in.sh", "torchrun srun/1 np=3 nn= t.py"},
		"function":   {"go() { torchrun --nproc_per_node=$1 t.py; }\ngo 2", "torchrun / np=2 nn= t.py"},
		"module":     {"python3 -m torch.distributed.run --nproc_per_node=2 t.py", "torchrun / np=2 nn= t.py"},
		"container":  {"srun apptainer exec --nv -B /d i.sif torchrun --nproc_per_node=4 t.py", "torchrun srun/1 np=4 nn= t.py in apptainer"},
		"uv":         {"uv run --no-sync torchrun --nproc_per_node 2 t.py", "torchrun / np=2 nn= t.py"},
		"tasks":      {"srun -n8 --ntasks-per-node=4 python t.py", "python srun/4 np= nn= t.py"},
		"accelerate": {"accelerate launch --num_processes 8 --num_machines 2 t.py", "accelerate / np=8 nn=2 t.py"},
		"deepspeed":  {"deepspeed --num_gpus=4 t.py", "deepspeed / np=4 nn= t.py"},
		"if":         {"if [ $X ]; then N=2; else N=4; fi\ntorchrun --nproc_per_node=$N t.py", "torchrun / np=$N nn= t.py"},
		"subshell":   {"N=1\n(N=2)\ntorchrun --nproc_per_node=$N t.py", "torchrun / np=1 nn= t.py"},
		"arithmetic": {"N=$((SLURM_NNODES * 2))\ntorchrun --nproc_per_node=$N t.py", "torchrun / np=4 nn= t.py"},
		"mpirun":     {"mpirun -np 8 --npernode 4 python t.py", "python mpirun/4 np= nn= t.py"},
		"nested":     {"timeout 1h env A=1 nohup torchrun --nproc_per_node=2 t.py", "torchrun / np=2 nn= t.py"},
	} {
		s := Parse(name, []byte(head+c.body+"\n"), Options{})
		var got string
		for _, l := range s.Launches {
			if l.Kind == fact.LaunchWrapper {
				continue
			}
			step := "/"
			if l.Step >= 0 {
				step = fmt.Sprintf("%s/%d", s.Steps[l.Step].Tool, s.Steps[l.Step].EffTPN)
			}
			got = fmt.Sprintf("%s %s np=%s nn=%s %s", l.Kind, step, l.Nproc.Text, l.Nnodes.Text, l.Program)
			if l.Container != nil {
				got += " in " + l.Container.Tool
			}
		}
		if got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

// TestAskedVersion: srun that only answers a question starts no step.
func TestAskedVersion(t *testing.T) {
	s := Parse("x", []byte("#!/bin/bash\nsrun --version\nsrun -V\nsrun --help\nsrun hostname\n"), Options{})
	if len(s.Steps) != 1 || s.Steps[0].Line != 5 {
		t.Errorf("%+v", s.Steps)
	}
}

// TestWhere tells what the batch shell expands from what a task expands (F14).
func TestWhere(t *testing.T) {
	for body, step := range map[string]bool{
		`srun echo $SLURM_PROCID`:                              false,
		`srun bash -c "echo $SLURM_PROCID"`:                    false,
		`srun bash -c "echo \$SLURM_PROCID"`:                   true,
		`srun bash -c 'echo $SLURM_PROCID'`:                    true,
		"srun bash <<EOF\necho \\$SLURM_PROCID\nEOF":           true,
		"srun bash <<'EOF'\necho $SLURM_PROCID\nEOF":           true,
		"srun bash <<EOF\necho $SLURM_PROCID\nEOF":             false,
		`C="echo \$SLURM_PROCID"; srun bash -c "$C"`:           true,
		`C="echo $SLURM_PROCID"; srun bash -c "$C"`:            false,
		`ssh n2 'echo $SLURM_PROCID'`:                          true,
		`srun singularity exec i bash -c 'echo $SLURM_PROCID'`: true,
	} {
		s := Parse("x", []byte("#!/bin/bash\n"+body+"\n"), Options{})
		ok := false
		for _, r := range s.Reads {
			if r.Name == "SLURM_PROCID" {
				ok = true
				if (r.Step >= 0) != step {
					t.Errorf("%s: in a task %v, want %v", body, r.Step >= 0, step)
				}
			}
		}
		if !ok {
			t.Errorf("%s: not read at all", body)
		}
	}
}

func TestPositions(t *testing.T) {
	s := Parse("x", []byte("#!/bin/bash\nsrun bash -c 'a=1\n  python t.py'\n"), Options{})
	l := s.Launches[len(s.Launches)-1]
	if l.Line != 3 || l.Col != 3 {
		t.Errorf("python is at %d:%d, want 3:3", l.Line, l.Col)
	}
}

func TestBounds(t *testing.T) {
	for expr, want := range map[string]string{
		"$((20000 + SLURM_JOB_ID % 50000))":                   "20000-69999",
		"$((10000 + ${SLURM_JOBID} % 50000))":                 "10000-59999",
		"1${SLURM_JOBID: -4}":                                 "10000-19999",
		"$RANDOM":                                             "0-32767",
		"$((RANDOM % 1000 + 29500))":                          "29500-30499",
		"$(expr 10000 + $(echo -n $SLURM_JOBID | tail -c 4))": "10000-19999",
		"$(shuf -i 20000-65500 -n 1)":                         "20000-65500",
		"$(python -c 'print(1)')":                             "",
		"$(( (RANDOM + 1) * 3 ))":                             "3-98304",
	} {
		s := Parse("x", []byte("#!/bin/bash\nP="+expr+"\n"), Options{})
		lo, hi, ok := s.Bounds(s.Assigns[len(s.Assigns)-1].Value.Val)
		got := ""
		if ok {
			got = fmt.Sprintf("%d-%d", lo, hi)
		}
		if got != want {
			t.Errorf("%s: %s, want %s", expr, got, want)
		}
	}
}

func TestFollow(t *testing.T) {
	files := map[string]string{"env.sh": "export N=4\n", "inner.sh": "torchrun --nproc_per_node=$N \"$@\"\n", "loop.sh": "source loop.sh\n"}
	open := func(p string) ([]byte, error) {
		if f, ok := files[strings.TrimPrefix(p, "./")]; ok {
			return []byte(f), nil
		}
		return nil, errors.New("no such file")
	}
	s := Parse("x", []byte("#!/bin/bash\nsource env.sh\nsource loop.sh\nsource ./missing.sh\nsrun bash ./inner.sh t.py\n"), Options{Open: open})
	if !s.Sources[0].Followed || s.Sources[len(s.Sources)-1].Path == "" {
		t.Errorf("%+v", s.Sources)
	}
	l := s.Launches[len(s.Launches)-1]
	if l.Kind != fact.LaunchTorchrun || l.Nproc.Text != "4" || l.Program != "t.py" {
		t.Errorf("%+v", l)
	}
}

// TestHostile holds that no input costs much or stops the parser.
func TestHostile(t *testing.T) {
	for name, src := range map[string]string{
		"long line":  "#!/bin/bash\n#SBATCH --comment=" + strings.Repeat("x", 50<<20) + "\ntrue\n",
		"long body":  "#!/bin/bash\necho " + strings.Repeat("y", 50<<20) + "\n",
		"recursion":  "#!/bin/bash\nf() { f; g; }\ng() { f; f; }\nf\n",
		"deep":       "#!/bin/bash\n" + strings.Repeat("$(", 5000) + strings.Repeat(")", 5000) + "\n",
		"braces":     "#!/bin/bash\n" + strings.Repeat("{ ", 20000) + "\n",
		"eval":       "#!/bin/bash\nA='eval \"$A$A\"'\neval \"$A\"\n",
		"doubling":   "#!/bin/bash\nA=x\n" + strings.Repeat("A=$A$A\n", 64) + "srun $A\n",
		"arrays":     "#!/bin/bash\nA=(a b)\n" + strings.Repeat("A+=(${A[@]})\n", 64),
		"wrappers":   "#!/bin/bash\n" + strings.Repeat("nohup ", 100000) + "x\n",
		"arithmetic": "#!/bin/bash\necho $((" + strings.Repeat("(", 20000) + "1" + strings.Repeat(")", 20000) + "))\n",
		"nul":        "#!/bin/bash\n#SBATCH -N 2\x00 -n 4\n\x00\n",
		"bom":        "\xef\xbb\xbf#!/bin/bash\n#SBATCH -N 2\ntrue\n",
		"binary":     "\x7fELF" + strings.Repeat("\x00\xff\x01", 10000),
		"holes":      "#!/bin/bash\nsrun bash -c '" + strings.Repeat(string(rune(fact.HoleBase+3)), 100) + "'\n",
		"directives": "#!/bin/bash\n" + strings.Repeat("#SBATCH -N 2\n", 200000),
		"quotes":     "#!/bin/bash\n#SBATCH -N 2\necho \"" + strings.Repeat("'", 10000),
	} {
		t.Run(name, func(t *testing.T) {
			began := time.Now()
			s := Parse(name, []byte(src), Options{})
			if d := time.Since(began); d > 20*time.Second {
				t.Errorf("took %v", d)
			}
			if len(s.Commands) > maxCommands+1 {
				t.Errorf("%d commands", len(s.Commands))
			}
		})
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{
		"#!/bin/bash\n#SBATCH -N 2 --gres=gpu:4 -c8 # x\nexport A=$(hostname)\nsrun bash -c \"torchrun --nproc_per_node=$A t.py\" | tee x\n",
		"#!/bin/sh\r\n#SBATCH --nodes = 1\r\nfor i in 1 2; do [ -z \"$x\"] && y=${z:-3}; done &\nwait\n",
		"#SBATCH hetjob\n#SBATCH --comment=\"a\ncase $1 in a) f() { eval \"$@\"; };; esac\ncat <<EOF | sbatch\n#SBATCH -n $N\nEOF\n",
		"#!/bin/bash\nA=(1 \"${B[@]}\")\nA+=($((1+2)))\nsrun $X singularity exec --nv i.sif python -m torch.distributed.launch ${A[@]}\n",
		"#!/bin/bash\nP=1${SLURM_JOBID: -4}\ntrap 'f \"$P\"' USR1\nset -euo pipefail; source ~/.bashrc; conda activate x\n",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, src []byte) {
		s := Parse("f", src, Options{Open: func(string) ([]byte, error) { return src, nil }})
		for _, l := range s.Launches {
			if l.Cmd >= len(s.Commands) || l.Step >= len(s.Steps) {
				t.Fatalf("launch %+v points nowhere", l)
			}
		}
		for i := 0; i <= s.NumLines+1; i++ {
			_ = s.Line(i)
		}
	})
}

// TestPositional follows arguments into functions: shift, defaults, and an
// argument that may be several words.
func TestPositional(t *testing.T) {
	for _, c := range []struct{ name, src, nproc, program string }{
		{"loop", "run() { torchrun --nproc_per_node=4 \"$@\"; }\nfor lr in 1 2; do run a.py --lr $lr; done\n", "4", "a.py"},
		{"shift", "run() { n=$1; shift; torchrun --nproc_per_node=$n \"$@\"; }\nrun 4 a.py --x\n", "4", "a.py"},
		{"shift two", "run() { torchrun --nproc_per_node=$2 \"${@:3}\"; }\nrun x 4 a.py --x\n", "4", "a.py"},
		{"default taken", "run() { torchrun --nproc_per_node=${2:-8} $1; }\nrun a.py\n", "8", "a.py"},
		{"default given", "run() { torchrun --nproc_per_node=${2:-8} $1; }\nrun a.py 2\n", "2", "a.py"},
		{"behind an open word", "run() { torchrun --nproc_per_node=$2 b.py; }\nrun $X 4\n", "$2", "b.py"},
		{"before an open word", "run() { torchrun --nproc_per_node=$1 b.py; }\nrun 4 $X\n", "4", "b.py"},
		{"shift in a branch", "run() { if [ -n \"$X\" ]; then shift; fi; torchrun --nproc_per_node=$1 b.py; }\nrun 4 8\n", "$1", "b.py"},
		{"shift in a loop", "run() { while [ \"$1\" = x ]; do shift; done; torchrun --nproc_per_node=$1 b.py; }\nrun x 8\n", "$1", "b.py"},
	} {
		s := Parse("a.sh", []byte("#!/bin/bash\n"+c.src), Options{})
		if len(s.Launches) != 1 {
			t.Errorf("%s: %d launches", c.name, len(s.Launches))
			continue
		}
		if l := s.Launches[0]; l.Nproc.Text != c.nproc || l.Program != c.program {
			t.Errorf("%s: nproc %q program %q, want %q %q", c.name, l.Nproc.Text, l.Program, c.nproc, c.program)
		}
	}
}
