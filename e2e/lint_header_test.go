package e2e

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/ncclinic/ncclinic/internal/collect/script"
	"github.com/ncclinic/ncclinic/internal/fact"
)

// headers is how many generated scripts the real sbatch reads.
const headers = 400

// TestDirectivesAsSbatch generates headers in every style that people use, and
// some that they should not, and compares what sbatch took with what we read.
func TestDirectivesAsSbatch(t *testing.T) {
	c := slurm(t)
	ctx := t.Context()
	dir := t.TempDir()
	type sent struct {
		id, src string
		s       *fact.Script
	}
	version, err := c.Command(ctx, "sbatch", "--version").Output()
	if err != nil {
		t.Fatal(err)
	}
	old := strings.Contains(string(version), " 22.05")
	var jobs []sent
	var ids []string
	r := rand.New(rand.NewPCG(11, 5))
	refused := 0
	for i := range headers {
		src := header(r)
		name := filepath.Join(dir, fmt.Sprintf("h%d.sbatch", i))
		if err := os.WriteFile(name, []byte(src), 0o644); err != nil {
			t.Fatal(err)
		}
		s := script.Parse(name, []byte(src), script.Options{BlankEnds: old})
		out, err := c.Command(ctx, "sbatch", "--parsable", "--hold", name).CombinedOutput()
		text := string(out)
		taken := err == nil
		if taken != (len(s.Refused) == 0) {
			t.Errorf("sbatch took it: %v (%s); we refuse %+v:\n%s", taken, strings.TrimSpace(text), s.Refused, src)
			continue
		}
		if !taken {
			refused++
			continue
		}
		lines := strings.Split(strings.TrimSpace(text), "\n")
		id, _, _ := strings.Cut(lines[len(lines)-1], ";")
		jobs = append(jobs, sent{id, src, s})
		ids = append(ids, id)
	}
	defer c.Command(context.WithoutCancel(ctx), "scancel", ids...).Run()
	all, err := c.Command(ctx, "scontrol", "--oneliner", "show", "job").Output()
	if err != nil {
		t.Fatal(err)
	}
	shown := map[string]map[string]string{}
	for _, l := range strings.Split(string(all), "\n") {
		m := map[string]string{}
		for _, f := range strings.Fields(l) {
			if k, v, ok := strings.Cut(f, "="); ok {
				if _, dup := m[k]; !dup {
					m[k] = v
				}
			}
		}
		shown[m["JobId"]] = m
	}
	for _, j := range jobs {
		compareJob(t, j.s, shown[j.id], j.src)
	}
	t.Logf("%d headers taken, %d refused, by both", len(jobs), refused)
	if len(jobs) < headers/2 || refused < headers/20 {
		t.Errorf("%d taken and %d refused: the generator covers too little", len(jobs), refused)
	}
}

func compareJob(t *testing.T, s *fact.Script, m map[string]string, src string) {
	t.Helper()
	if m == nil {
		t.Errorf("scontrol does not show the job of\n%s", src)
		return
	}
	r := &s.Request
	same := func(what, got, want string) {
		t.Helper()
		if got != want {
			t.Errorf("%s: sbatch says %q, we say %q:\n%s", what, got, want, src)
		}
	}
	name := filepath.Base(s.Name)
	if r.JobName != "" {
		name = r.JobName
	}
	same("JobName", m["JobName"], name)
	if r.Seconds > 0 {
		same("TimeLimit", m["TimeLimit"], slurmTime((r.Seconds+59)/60*60))
	} else if s.Opt("time") == nil && m["TimeLimit"] != "UNLIMITED" && !strings.Contains(m["TimeLimit"], ":") {
		t.Errorf("TimeLimit: %q", m["TimeLimit"])
	}
	if r.CPUsPerTask > 0 {
		same("CPUs/Task", m["CPUs/Task"], strconv.Itoa(r.CPUsPerTask))
	}
	if r.Tasks > 0 {
		same("NumTasks", m["NumTasks"], strconv.Itoa(r.Tasks))
	}
	tpn, _, _ := strings.Cut(m["NtasksPerN:B:S:C"], ":")
	if r.TasksPerNode > 0 && r.Tasks == 0 {
		same("NtasksPerNode", tpn, strconv.Itoa(r.TasksPerNode))
	}
	if r.Nodes > 0 && r.NodesMax == r.Nodes && (r.Tasks == 0 || r.Tasks >= r.Nodes) {
		n, _, _ := strings.Cut(m["NumNodes"], "-")
		same("NumNodes", n, strconv.Itoa(r.Nodes))
	}
	if r.Tasks > 0 && r.Nodes > r.Tasks && r.NodesMax == r.Nodes {
		n, _, _ := strings.Cut(m["NumNodes"], "-")
		same("NumNodes (shrunk)", n, strconv.Itoa(r.EffectiveNodes))
	}
	if r.MemMiB > 0 {
		same("MinMemoryNode", m["MinMemoryNode"], slurmMem(r.MemMiB))
	}
	if d := s.Opt("comment"); d != nil {
		same("Comment", strings.SplitN(m["Comment"], " ", 2)[0], strings.SplitN(d.Value, " ", 2)[0])
	}
	if r.GresGPUs > 0 {
		want := "gres:gpu:"
		if r.GPUType != "" {
			want += r.GPUType + ":"
		}
		got := m["TresPerNode"]
		if !strings.HasPrefix(got, want) && got != "gres:gpu" {
			same("TresPerNode", got, want)
		}
	}
}

func slurmTime(sec int64) string {
	d, sec := sec/86400, sec%86400
	t := fmt.Sprintf("%02d:%02d:%02d", sec/3600, sec/60%60, sec%60)
	if d > 0 {
		return fmt.Sprintf("%d-%s", d, t)
	}
	return t
}

func slurmMem(mib int64) string {
	if mib%1024 == 0 {
		return fmt.Sprintf("%dG", mib/1024)
	}
	return fmt.Sprintf("%dM", mib)
}

// header makes one script.
func header(r *rand.Rand) string {
	pick := func(l ...string) string { return l[r.IntN(len(l))] }
	n := func(lo, hi int) string { return strconv.Itoa(lo + r.IntN(hi-lo+1)) }
	opt := func() string {
		form := func(long, short, val string) string {
			q := pick("", "", "", `"`, "'")
			switch r.IntN(6) {
			case 0:
				return "--" + long + " " + q + val + q
			case 1, 2:
				return "--" + long + "=" + q + val + q
			case 3:
				if short != "" {
					return "-" + short + " " + val
				}
			case 4:
				if short != "" {
					return "-" + short + val
				}
			}
			return "--" + long + "=" + val
		}
		switch r.IntN(12) {
		case 0:
			return form("nodes", "N", pick("1", "2", "3", "4", "2-4"))
		case 1:
			return form("ntasks", "n", n(1, 8))
		case 2:
			return form("ntasks-per-node", "", n(1, 4))
		case 3:
			return form("cpus-per-task", "c", n(1, 4))
		case 4:
			return form("time", "t", pick("10", "24", "1:30", "2:00:00", "1-0", "1-12:30", "0-1:2:3", "90:00"))
		case 5:
			return form("mem", "", pick("100", "2G", "2048M", "1g", "3000", "1024K"))
		case 6:
			return form("gres", "", pick("gpu", "gpu:1", "gpu:2", "gpu:a100:1"))
		case 7:
			return form("job-name", "J", pick("train", "a-b", "x_1", "run%j"))
		case 8:
			return pick("--requeue", "--no-requeue", "--exclusive", "-O", "-s", "--contiguous")
		case 9:
			return form("comment", "", pick("hello", "a=b", "x"))
		case 10:
			return pick("--ntasks-per-n="+n(1, 2), "--job-n=abbr", "--cpus-per-t "+n(1, 2), "--tasks-per-node="+n(1, 3))
		}
		return form("output", "o", pick("%x-%j.out", "/tmp/l.%A", "o"))
	}
	var b strings.Builder
	b.WriteString(pick("#!/bin/bash\n", "#!/bin/sh\n", "#! /bin/bash -l\n"))
	for range 1 + r.IntN(6) {
		line := "#SBATCH" + pick(" ", " ", "  ", "\t") + opt()
		for r.IntN(4) == 0 {
			line += " " + opt()
		}
		switch r.IntN(24) {
		case 0:
			line += " # a comment --nodes=3"
		case 1:
			line += " #--nodes=3"
		case 2:
			line = " " + line
		case 3:
			line = "#" + line
		case 4:
			line = "# " + line[1:]
		case 5:
			line = "#SBATCH" + opt() // no blank
		case 6:
			line = strings.ToLower(line[:7]) + line[7:]
		case 7:
			line += " stray"
		case 8:
			line += pick(" --no-such-option", " --nodes = 2", ` --comment="open`, " –nodes=2", " --time=28:00:00:00", " --nodes=$N", " --workdir=/tmp")
		case 9:
			line += ` --comment=two\ words`
		case 10:
			line += " " + `--comment="a # b"`
		case 11:
			line += "\\"
		case 12:
			line = "\n   \n# note\n" + line
		}
		b.WriteString(line + "\n")
	}
	if r.IntN(4) == 0 {
		b.WriteString("true\n#SBATCH --nodes=4 --time=3\n")
	}
	b.WriteString("true\n")
	return b.String()
}
