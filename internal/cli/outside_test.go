package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestOutsideCluster: where Slurm's commands reach no cluster one sentence says
// so, and one line why.
func TestOutsideCluster(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"scontrol", "sacct", "squeue", "sinfo"} {
		text := "#!/bin/sh\nn=" + name + `
echo "$n: error: resolve_ctls_from_dns_srv: res_nsearch error: Unknown host" >&2
echo "$n: error: fetch_config: DNS SRV lookup failed" >&2
echo "$n: fatal: Could not establish a configuration source" >&2
exit 1
`
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	script := put(t, dir, "t.sbatch", []byte("#!/bin/bash\n#SBATCH --nodes=1\nsrun true\n"))
	for _, args := range [][]string{{"job", "4711"}, {"fix", "4711"}, {"check", "--nodes", "--jobid", "4711"}, {"lint", "--cluster", script}} {
		for lang, says := range map[string]string{"en": "do not reach a cluster from this host", "zh": "连不到任何集群"} {
			code, _, errs := ncclinic(t, nil, append(args, "--lang", lang)...)
			if code != exitUsage || !strings.Contains(errs, says) || strings.Count(errs, "\n") != 1 || !strings.Contains(errs, ": Could not establish a configuration source") || strings.Contains(errs, "res_nsearch") {
				t.Errorf("%v: exit %d\n%s", args, code, errs)
			}
		}
	}
}
