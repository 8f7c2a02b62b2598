// Package whole times commands as whole processes, in turn, in one run, so that
// the ratio of two commands holds when the machine's speed drifts.
package whole

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"sort"
	"strings"
	"syscall"
	"time"
)

// Command is one side of a comparison.
type Command struct {
	Name string
	Args []string
	Env  []string // nil: this process's
	Dir  string
	// Warm is the number of uncounted runs right before each counted one. After a
	// long run of another command a short one would mostly pay for caches and
	// memory that the machine has given to others since.
	Warm int
}

// Sample is what the operating system accounted for one finished process.
type Sample struct {
	Wall time.Duration
	CPU  time.Duration // user and system
	RSS  int64         // bytes, the largest moment of the largest process
}

// Once runs a command and returns its sample. Exit statuses are not judged;
// a command that cannot be started is an error.
func Once(c Command) (Sample, error) {
	cmd := exec.Command(c.Args[0], c.Args[1:]...)
	cmd.Env, cmd.Dir = c.Env, c.Dir
	began := time.Now()
	if err := cmd.Start(); err != nil {
		return Sample{}, err
	}
	cmd.Wait()
	wall := time.Since(began)
	ru := cmd.ProcessState.SysUsage().(*syscall.Rusage)
	return Sample{Wall: wall, CPU: cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime(), RSS: ru.Maxrss * 1024}, nil
}

// Median of samples, figure by figure.
func Median(s []Sample) Sample {
	pick := func(f func(Sample) int64) int64 {
		v := make([]int64, len(s))
		for i := range s {
			v[i] = f(s[i])
		}
		sort.Slice(v, func(i, j int) bool { return v[i] < v[j] })
		return v[len(v)/2]
	}
	return Sample{
		Wall: time.Duration(pick(func(x Sample) int64 { return int64(x.Wall) })),
		CPU:  time.Duration(pick(func(x Sample) int64 { return int64(x.CPU) })),
		RSS:  pick(func(x Sample) int64 { return x.RSS }),
	}
}

// Compare runs all commands in turn, once to warm up and n times counted, and
// writes medians and the ratio of each to the first one.
func Compare(w io.Writer, n int, cs ...Command) ([]Sample, error) {
	all := make([][]Sample, len(cs))
	for round := 0; round <= n; round++ {
		for i, c := range cs {
			for range c.Warm {
				if _, err := Once(c); err != nil {
					return nil, fmt.Errorf("%s: %w", strings.Join(c.Args, " "), err)
				}
			}
			s, err := Once(c)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", strings.Join(c.Args, " "), err)
			}
			if round > 0 {
				all[i] = append(all[i], s)
			}
		}
	}
	med := make([]Sample, len(cs))
	fmt.Fprintf(w, "%-44s %10s %10s %9s   %s\n", "command (median of "+fmt.Sprint(n)+")", "wall ms", "cpu ms", "peak MiB", "wall / cpu / memory against the first")
	for i, c := range cs {
		med[i] = Median(all[i])
		m := med[i]
		fmt.Fprintf(w, "%-44s %10.1f %10.1f %9.1f", c.Name, ms(m.Wall), ms(m.CPU), float64(m.RSS)/(1<<20))
		if i > 0 {
			fmt.Fprintf(w, "   ×%.1f / ×%.1f / ×%.1f", ms(m.Wall)/ms(med[0].Wall), ms(m.CPU)/ms(med[0].CPU), float64(m.RSS)/float64(med[0].RSS))
		}
		fmt.Fprintln(w)
	}
	return med, nil
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// Build compiles a command of this module, static, into a temporary folder.
func Build(pkg string) (path string, remove func(), err error) {
	dir, err := os.MkdirTemp("", "ncclinic-bench-")
	if err != nil {
		return "", nil, err
	}
	path = dir + "/ncclinic"
	cmd := exec.Command("go", "build", "-trimpath", "-o", path, pkg)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	cmd.Stderr = os.Stderr
	if err := cmd.Run(); err != nil {
		os.RemoveAll(dir)
		return "", nil, err
	}
	return path, func() { os.RemoveAll(dir) }, nil
}
