package slurm

import (
	"errors"
	"strings"
	"testing"
)

const noConfig = `squeue: error: resolve_ctls_from_dns_srv: res_nsearch error: Unknown host
squeue: error: fetch_config: DNS SRV lookup failed
squeue: error: _establish_config_source: failed to fetch config
squeue: fatal: Could not establish a configuration source
`

func TestOutside(t *testing.T) {
	var out *OutsideError
	if err := failed("squeue", []byte(noConfig)); !errors.As(err, &out) || err.Error() != "squeue: Could not establish a configuration source" {
		t.Errorf("%v", err)
	}
	if err := failed("sinfo", []byte("slurm_load_partitions: Unable to contact slurm controller (connect failure)\n")); !errors.As(err, &out) {
		t.Errorf("%v", err)
	}
	for _, s := range []string{"squeue: error: Invalid job id specified\n", "slurm_load_jobs error: Invalid job id specified", ""} {
		if err := failed("squeue", []byte(s)); errors.As(err, &out) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: %v", s, err)
		}
	}
	if err := failed("squeue", []byte(strings.Repeat("word ", 200))); !strings.HasSuffix(err.Error(), "word …") {
		t.Errorf("%v", err)
	}
}
