package diag

import (
	"slices"
	"strings"
)

// Known says which job a report is about, for commands that stand for any job.
// What is "" is not known.
type Known struct {
	Job     string // its number
	Cluster string // where Slurm has to be asked with -M
	Script  string // its batch script, quoted for a shell
	Running bool   // it has not ended: what is done inside of it can be done now
}

// Words of the knowledge base that stand for a job and for its script.
const (
	anyJob    = "JOBID"
	anyScript = "job.sbatch"
	jobVar    = "$SLURM_JOB_ID"
	anyNode   = "NODE" // the node on which a finding was seen
	anyPort   = "PORT"
)

// Concrete puts what is known of the job into the commands of a report. The
// variable is replaced only where Slurm is asked about the job: in what belongs
// into a batch script it is right as it is.
func Concrete(rep *Report, k Known) {
	for i := range rep.Findings {
		f := &rep.Findings[i]
		own := seenOn(f)
		f.Needs = slices.Clone(f.Needs)
		for n := range f.Needs {
			if IsCommand(f.Needs[n]) {
				f.Needs[n] = own.Replace(k.put(f.Needs[n]))
			}
		}
		f.Fixes = slices.Clone(f.Fixes)
		for n := range f.Fixes {
			cs := slices.Clone(f.Fixes[n].Commands)
			for c := range cs {
				cs[c] = own.Replace(k.put(cs[c]))
			}
			f.Fixes[n].Commands = cs
		}
	}
}

func (k Known) put(cmd string) string {
	tool, rest, _ := strings.Cut(cmd, " ")
	asks := slices.Contains([]string{"sacct", "scontrol", "squeue", "scancel", "sinfo"}, tool) || tool == "ncclinic" && strings.HasPrefix(rest, "job ")
	if k.Job != "" {
		cmd = strings.ReplaceAll(cmd, anyJob, k.Job)
		if asks || k.Running && strings.HasPrefix(cmd, "srun --overlap --jobid=") {
			cmd = strings.ReplaceAll(cmd, jobVar, k.Job)
		}
	}
	if k.Cluster != "" && asks {
		if tool == "ncclinic" {
			tool += " job"
		}
		cmd = tool + " -M " + k.Cluster + strings.TrimPrefix(cmd, tool)
	}
	if k.Script != "" {
		words := strings.Split(cmd, " ")
		for i, w := range words {
			if w == anyScript {
				words[i] = k.Script
			}
		}
		cmd = strings.Join(words, " ")
	}
	return cmd
}

// seenOn fills in the node and the port of a finding where it has one of them.
func seenOn(f *Finding) *strings.Replacer {
	var pairs []string
	node := ""
	for i, w := range f.Where {
		if w.Node == "" || i > 0 && w.Node != node {
			node = ""
			break
		}
		node = w.Node
	}
	if node != "" && strings.Trim(node, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._") == "" {
		for _, before := range []string{"=", "-w ", "ssh "} {
			pairs = append(pairs, before+anyNode, before+node)
		}
	}
	if p := f.Args["port"]; p != "" && strings.Trim(p, "0123456789") == "" {
		pairs = append(pairs, "grep "+anyPort, "grep :"+p)
	}
	return strings.NewReplacer(pairs...)
}
