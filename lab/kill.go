package lab

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// KillDaemon ends a daemon of the lab as a crash does: munged, mariadbd,
// slurmdbd, slurmctld or a node by its name. The tasks of a node's jobs and
// their slurmstepd live on.
func (c *Cluster) KillDaemon(name string) error {
	b, err := os.ReadFile(filepath.Join(c.Dir, "pids", name))
	if err != nil {
		return err
	}
	pid, start, _ := strings.Cut(strings.TrimSpace(string(b)), " ")
	n, err := strconv.Atoi(pid)
	if err != nil || startTime(n) != start {
		return fmt.Errorf("%s does not run", name)
	}
	return syscall.Kill(n, syscall.SIGKILL)
}
