package envfacts

import (
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ncclinic/ncclinic/internal/fact"
	"github.com/ncclinic/ncclinic/internal/source"
)

func TestCollect(t *testing.T) {
	m := &source.Machine{Env: map[string]string{
		"PATH": "/a:/b", "SLURM_JOB_ID": "7", "SLURM_JWT": "eyJsecret", "AWS_SECRET_ACCESS_KEY": "x", "EDITOR": "vi",
		"PIP_INDEX_URL": "https://me:pw@h/simple", "NCCL_DEBUG": "INFO", "CONDA_TOKEN": "tk-1", "LC_ALL": "C",
		"MODULEPATH": strings.Repeat("m", maxValue+5),
	}}
	var b fact.Bundle
	Collect(m, &b)
	want := []fact.EnvVar{
		{Name: "CONDA_TOKEN", Value: "***"}, {Name: "LC_ALL", Value: "C"}, {Name: "MODULEPATH", Value: strings.Repeat("m", maxValue) + "…"},
		{Name: "NCCL_DEBUG", Value: "INFO"}, {Name: "PATH", Value: "/a:/b"},
		{Name: "PIP_INDEX_URL", Value: "https://***@h/simple"}, {Name: "SLURM_JOB_ID", Value: "7"},
	}
	if d := cmp.Diff(want, b.Env); d != "" {
		t.Error(d)
	}
}

func TestCollectBounds(t *testing.T) {
	m := &source.Machine{Env: map[string]string{}}
	for i := range maxVars + 10 {
		m.Env["NCCL_X"+strconv.Itoa(i)] = "1"
	}
	var b fact.Bundle
	Collect(m, &b)
	if len(b.Env) != maxVars || len(b.Problems) != 1 {
		t.Errorf("%d variables, problems %v", len(b.Env), b.Problems)
	}
}
