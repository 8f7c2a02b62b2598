package explain

import (
	"testing"

	"github.com/ncclinic/ncclinic/internal/fact"
	"github.com/ncclinic/ncclinic/internal/fact/kind"
)

func TestJobNumber(t *testing.T) {
	file := func(path, k string) fact.LogFile { return fact.LogFile{Path: path, Kind: k} }
	env := func(v string) fact.Listing {
		return fact.Listing{Facts: []fact.Said{{Kind: kind.Env, Name: "SLURM_JOB_ID", V: v}}}
	}
	ended := func(id string) fact.Event {
		return fact.Event{Rule: "log-slurm-cancelled", Args: map[string]string{"job": id}}
	}
	for name, c := range map[string]struct {
		l    fact.Logs
		want string
	}{
		"nothing":            {fact.Logs{}, ""},
		"asked":              {fact.Logs{Job: &fact.Job{ID: "7_1"}, Events: []fact.Event{ended("9")}}, "7_1"},
		"said":               {fact.Logs{Events: []fact.Event{ended("4711"), ended("4711")}, Files: []fact.LogFile{file("slurm-1.out", "log")}}, "4711"},
		"two jobs":           {fact.Logs{Events: []fact.Event{ended("1"), ended("2")}}, ""},
		"quoted":             {fact.Logs{Events: []fact.Event{{Rule: "log-slurm-cancelled", Args: map[string]string{"job": "5"}, Quoted: true}}}, ""},
		"name":               {fact.Logs{Files: []fact.LogFile{file("/scratch/u/slurm-88_2.out.gz", "log")}}, "88_2"},
		"name of two":        {fact.Logs{Files: []fact.LogFile{file("slurm-88.out", "log"), file("slurm-89.out", "log")}}, ""},
		"other name":         {fact.Logs{Files: []fact.LogFile{file("run-88.out", "log")}}, ""},
		"variable":           {fact.Logs{Listing: env("12")}, "12"},
		"variable, no value": {fact.Logs{Listing: env("$SLURM_JOB_ID")}, ""},
		"sacct": {fact.Logs{Listing: fact.Listing{Facts: []fact.Said{
			{Kind: kind.Sacct, Name: "31"}, {Kind: kind.Sacct, Name: "31.batch"}, {Kind: kind.Sacct, Name: "31.0"}}}}, "31"},
		"sacct of several": {fact.Logs{Listing: fact.Listing{Facts: []fact.Said{{Kind: kind.Sacct, Name: "31"}, {Kind: kind.Sacct, Name: "32"}}}}, ""},
	} {
		if got := JobNumber(&c.l); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
	l := fact.Logs{Files: []fact.LogFile{file("a.out", fact.KindLog), file("my run.sbatch", fact.KindScript), file("-", fact.KindScript)}}
	if got := ScriptPath(&l); got != "my run.sbatch" {
		t.Errorf("script %q", got)
	}
	l.Files = append(l.Files, file("b.sbatch", fact.KindScript))
	if got := ScriptPath(&l); got != "" {
		t.Errorf("of two scripts: %q", got)
	}
}
