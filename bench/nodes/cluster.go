package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"sort"
	"strconv"
	"strings"
	"time"

	"github.com/ncclinic/ncclinic/bench/internal/whole"
	"github.com/ncclinic/ncclinic/lab"
)

// side is one command of the comparison and what its runs took.
type side struct {
	name string
	args []string
	want string // in its output
	wall []time.Duration
	cpu  []time.Duration
}

// cluster compares whole processes over the same allocation, in turn.
func cluster(ctx context.Context, n, rounds int, python string, limit time.Duration) (err error) {
	acct, why := newAccount()
	if why != nil {
		fmt.Println("no CPU time of all nodes:", why)
	}
	defer func() { err = errors.Join(err, acct.close()) }()
	bin, remove, err := whole.Build("./cmd/ncclinic")
	if err != nil {
		return err
	}
	defer remove()
	if err := master(); err != nil {
		return err
	}
	began := time.Now()
	// proctrack/linuxproc, the lab's own, reads the whole of /proc several times for
	// each step that ends: with all nodes on one machine that is quadratic.
	c, err := lab.Start(ctx, lab.Options{Nodes: n, GPUsPerNode: -1, StartTimeout: 10 * time.Minute,
		Conf: []string{"MessageTimeout=60", "TreeWidth=1024", "MaxNodeCount=2000", "ProctrackType=proctrack/pgid"}})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Stop()) }()
	fmt.Printf("%d slurmd idle after %.1f s\n", n, time.Since(began).Seconds())
	job, err := allocate(ctx, c, n)
	if err != nil {
		return err
	}
	nn := strconv.Itoa(n)
	srun := []string{"srun", "--jobid=" + job, "--overlap", "--mpi=none", "--nodes=" + nn, "--ntasks=" + nn, "--ntasks-per-node=1", "hostname"}
	check := []string{bin, "check", "--nodes", "--jobid", job, "--python", python, "--format", "json", "--node-timeout", limit.String()}
	reported := `"reported": ` + nn + ","
	sides := []*side{
		{name: "srun hostname", args: srun},
		{name: "check --nodes", args: check, want: reported},
		{name: "check --nodes --no-reach", args: append(check[:len(check):len(check)], "--no-reach"), want: reported},
	}
	for round := 0; round <= rounds; round++ { // the first one warms up
		for _, s := range sides {
			if err := s.run(ctx, c, acct, limit, round > 0); err != nil {
				return err
			}
		}
	}
	table(sides, n, rounds)
	return nil
}

// master sets MASTER_ADDR and MASTER_PORT as a batch script does. The lab's nodes
// have names that no name server knows, and a thousand questions at once for one
// are a test of the name server.
func master() error {
	host, err := os.Hostname()
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", ":0")
	if err != nil {
		return err
	}
	defer l.Close()
	port := l.Addr().(*net.TCPAddr).Port
	return errors.Join(os.Setenv("MASTER_ADDR", host), os.Setenv("MASTER_PORT", strconv.Itoa(port)))
}

// allocate takes all nodes in an allocation that waits for steps.
func allocate(ctx context.Context, c *lab.Cluster, n int) (string, error) {
	out, err := c.Command(ctx, "salloc", "--no-shell", fmt.Sprintf("-N%d", n)).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("salloc: %w %s", err, out)
	}
	for _, l := range strings.Split(string(out), "\n") {
		if rest, ok := strings.CutPrefix(l, "salloc: Granted job allocation "); ok {
			return strings.TrimSpace(rest), nil
		}
	}
	return "", fmt.Errorf("salloc said: %s", out)
}

func (s *side) run(ctx context.Context, c *lab.Cluster, acct *account, limit time.Duration, count bool) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	cmd := c.Command(ctx, s.args[0], s.args[1:]...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	used, began := acct.used(), time.Now()
	err := cmd.Run()
	wall := time.Since(began)
	var exit *exec.ExitError
	if errors.As(err, &exit) && ctx.Err() == nil { // a verdict is no failure
		err = nil
	}
	if err != nil || !strings.Contains(out.String(), s.want) {
		return fmt.Errorf("%s: %w, within %s: %.300s %.2000s", s.name, errors.Join(err, ctx.Err()), wall, out.String(), errs.String())
	}
	if count {
		s.wall, s.cpu = append(s.wall, wall), append(s.cpu, acct.used()-used)
	}
	return nil
}

func table(sides []*side, n, rounds int) {
	fmt.Printf("%-28s %9s %12s %16s   against %s, wall / CPU\n", fmt.Sprintf("median of %d", rounds), "wall ms", "all CPU ms", "CPU ms per node", sides[0].name)
	base := [2]float64{median(sides[0].wall), median(sides[0].cpu)}
	for _, s := range sides {
		w, c := median(s.wall), median(s.cpu)
		fmt.Printf("%-28s %9.0f %12.0f %16.1f", s.name, w, c, c/float64(n))
		if s != sides[0] {
			fmt.Printf("   ×%.2f / ×%.2f", w/base[0], c/base[1])
		}
		fmt.Println()
	}
}

// median in milliseconds.
func median(list []time.Duration) float64 {
	sorted := append([]time.Duration(nil), list...)
	sort.Slice(sorted, func(i, j int) bool { return sorted[i] < sorted[j] })
	return float64(sorted[len(sorted)/2]) / float64(time.Millisecond)
}
