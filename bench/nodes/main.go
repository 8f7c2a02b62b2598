// Command nodes measures "ncclinic check --nodes": against srun itself over the
// same nodes of a real Slurm cluster in one run, and the merging of synthetic
// reports of many nodes:
//
//	go run ./bench/nodes -nodes 256 -n 5
//	go run ./bench/nodes -merge 10000
//
// All slurmd of the cluster share this machine, and so do all probes: on a real
// cluster each probe has a node of its own.
package main

import (
	"bufio"
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"testing/fstest"
	"time"

	"github.com/ncclinic/ncclinic/internal/collect/nodes"
	"github.com/ncclinic/ncclinic/internal/demo"
	"github.com/ncclinic/ncclinic/internal/fact"
	"github.com/ncclinic/ncclinic/internal/hostlist"
	judge "github.com/ncclinic/ncclinic/internal/nodes"
	"github.com/ncclinic/ncclinic/internal/render"
	"github.com/ncclinic/ncclinic/internal/source"
	"github.com/ncclinic/ncclinic/rules"
)

func main() {
	n := flag.Int("nodes", 64, "slurmd processes")
	rounds := flag.Int("n", 5, "counted runs of each command")
	python := flag.String("python", "/usr/bin/python3", "interpreter that the probes examine")
	merge := flag.Int("merge", 0, "merge synthetic reports of that many nodes instead")
	feed := flag.String("feed", "", "merge the reports of this file (what -merge starts)")
	limit := flag.Duration("limit", 5*time.Minute, "of one command")
	flag.Parse()
	// Ctrl-C must end the cluster in order.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	var err error
	switch {
	case *feed != "":
		err = mergeFile(*feed, *merge)
	case *merge > 0:
		err = mergeMany(*merge)
	default:
		err = cluster(ctx, *n, *rounds, *python, *limit)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench/nodes:", err)
		os.Exit(1)
	}
}

const nonce = "0123456789abcdef01234567"

// mergeMany writes the output of a step over n nodes to a file and merges it in
// a process of its own, whose memory is then known.
func mergeMany(n int) error {
	f, err := os.CreateTemp("", "ncclinic-merge-*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	size, longest, err := synthesize(f, n)
	if err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	fmt.Printf("%d reports, %.1f MB, %d bytes a node on average, %d at most\n", n, float64(size)/1e6, size/n, longest)
	self, err := os.Executable()
	if err != nil {
		return err
	}
	cmd := exec.Command(self, "-feed", f.Name(), "-merge", fmt.Sprint(n))
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	if err := cmd.Run(); err != nil {
		return err
	}
	ru := cmd.ProcessState.SysUsage().(*syscall.Rusage)
	fmt.Printf("peak memory %d MB, CPU %.2f s\n", ru.Maxrss>>10, (cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds())
	return nil
}

// synthesize makes reports as probes do: eight GPUs, adapters and addresses of
// each node's own, and 3 % outliers of five kinds.
func synthesize(w io.Writer, n int) (size, longest int, err error) {
	var names []string
	for i := range n {
		names = append(names, fmt.Sprintf("gpu%05d", i+1))
	}
	list := hostlist.Fold(names)
	out := bufio.NewWriter(w)
	for i, name := range names {
		b, err := fact.ReadBundle(bytes.NewReader(demo.Bundle))
		if err != nil {
			return 0, 0, err
		}
		b.Host.Name = fact.Of(name, fact.File("/proc/sys/kernel/hostname"))
		b.Slurm.NodeName, b.Slurm.Rank = fact.Of(name, fact.EnvVarAt("SLURMD_NODENAME", name)), fact.Of(i, fact.EnvVarAt("SLURM_PROCID", fmt.Sprint(i)))
		addr := fmt.Sprintf("10.%d.%d.%d/12", 16+i/60000, i/250%250, i%250+1)
		b.Node.Ifaces = fact.Of([]fact.Iface{{Name: "lo", Up: true, Loop: true, Addrs: []string{"127.0.0.1/8"}}, {Name: "bond0", Up: true, Addrs: []string{addr}, MTU: 9000}}, fact.Command("interfaces", addr))
		for j := range b.Node.GPUs.V {
			b.Node.GPUs.V[j].UUID = fmt.Sprintf("GPU-%08x-%04x", i, j)
		}
		b.Node.Memory = fact.Of(fact.Memory{Total: 1 << 40, Available: 900<<30 + int64(i)<<12}, fact.File("/proc/meminfo"))
		b.Env = append(b.Env, fact.EnvVar{Name: "NCCL_DEBUG_FILE", Value: "/tmp/nccl." + name})
		if i%100 >= 97 { // 3 %
			switch i / 100 % 5 {
			case 0:
				b.Torch[0].Version = fact.Of("2.5.1+cu121", fact.Evidence{})
			case 1:
				b.Node.Driver = fact.Of(fact.Driver{Version: "525.105.17"}, fact.Evidence{})
			case 2:
				b.Node.GPUs.V = b.Node.GPUs.V[:7]
			case 3:
				b.Env = append(b.Env, fact.EnvVar{Name: "NCCL_IB_DISABLE", Value: "1"})
			case 4:
				b.Node.Limits.Memlock = fact.Of(int64(64<<10), fact.Evidence{})
			}
		}
		m := &source.Machine{FS: fstest.MapFS{}, Env: map[string]string{"SLURM_PROCID": fmt.Sprint(i), "SLURMD_NODENAME": name, "SLURM_STEP_NODELIST": list, "SLURM_JOB_ID": "48213", "SLURM_STEP_ID": "1"}}
		var one bytes.Buffer
		if err := nodes.WriteReport(&one, nonce, m, b); err != nil {
			return 0, 0, err
		}
		size += one.Len()
		longest = max(longest, one.Len())
		for _, l := range strings.Split(strings.Trim(one.String(), "\n"), "\n") {
			fmt.Fprintf(out, "%5d: %s\n", i, l)
		}
	}
	return size, longest, out.Flush()
}

// mergeFile merges what synthesize wrote, judges it and writes the report.
func mergeFile(name string, n int) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	began := time.Now()
	m := nodes.NewMerger(nonce, nil)
	s := bufio.NewScanner(f)
	for s.Scan() {
		m.Line(s.Bytes())
	}
	if s.Err() != nil {
		return s.Err()
	}
	last := time.Now()
	b := &fact.Bundle{Schema: fact.BundleSchema, Subject: fact.Subject{Kind: "allocation"}, Nodes: m.Set(nil, "")}
	base, err := rules.Load(rules.Embedded(), "bench", rules.Allocation...)
	if err != nil {
		return err
	}
	rep := judge.Judge(base.Set(), b)
	if err := render.JSON(io.Discard, &rep, base, "en"); err != nil {
		return err
	}
	end := time.Now()
	if b.Nodes.Reported != n {
		return fmt.Errorf("%d of %d reports were merged; odd: %+v", b.Nodes.Reported, n, b.Nodes.Odd)
	}
	fmt.Printf("%d groups, %d things differ, %d findings, %s, exclude list of %d bytes\n", len(b.Nodes.Groups), len(rep.Nodes.Different), len(rep.Findings), rep.Verdict, len(rep.Nodes.Exclude))
	for _, f := range rep.Findings {
		fmt.Printf("  %-12s %-8s %-36s %s\n", f.Role, f.Severity, f.ID, f.Args["what"])
	}
	fmt.Printf("reading and merging %.2f s, after the last report %.2f s\n", last.Sub(began).Seconds(), end.Sub(last).Seconds())
	return nil
}
