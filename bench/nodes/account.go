package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// account is a control group of this process and all that it starts, daemons
// and what they start included: what a step costs on all of its nodes, which no
// waiting parent is told.
type account struct{ dir, home, usage string }

// newAccount moves this process into a group of its own. It takes root and a
// writable hierarchy, version 1 (cpuacct) or 2.
func newAccount() (*account, error) {
	a := &account{home: "/sys/fs/cgroup/cpuacct", usage: "cpuacct.usage"}
	if _, err := os.Stat(a.home); err != nil {
		a.home, a.usage = "/sys/fs/cgroup", "cpu.stat"
	}
	a.dir = filepath.Join(a.home, fmt.Sprintf("ncclinic-bench-%d", os.Getpid()))
	if err := os.Mkdir(a.dir, 0o755); err != nil {
		return nil, err
	}
	if err := a.join(a.dir); err != nil {
		os.Remove(a.dir)
		return nil, err
	}
	return a, nil
}

func (a *account) join(dir string) error {
	return os.WriteFile(filepath.Join(dir, "cgroup.procs"), []byte(strconv.Itoa(os.Getpid())), 0)
}

// used is the CPU time of all of them so far, 0 when it cannot be read.
func (a *account) used() time.Duration {
	if a == nil {
		return 0
	}
	raw, _ := os.ReadFile(filepath.Join(a.dir, a.usage))
	if _, rest, ok := bytes.Cut(raw, []byte("usage_usec ")); ok { // version 2
		line, _, _ := strings.Cut(string(rest), "\n")
		n, _ := strconv.ParseInt(line, 10, 64)
		return time.Duration(n) * time.Microsecond
	}
	n, _ := strconv.ParseInt(strings.TrimSpace(string(raw)), 10, 64)
	return time.Duration(n)
}

// close removes the group; who is left in it must have ended.
func (a *account) close() error {
	if a == nil {
		return nil
	}
	if err := a.join(a.home); err != nil {
		return err
	}
	var err error
	for range 100 { // ended processes leave the group a moment later
		if err = os.Remove(a.dir); err == nil {
			break
		}
		time.Sleep(50 * time.Millisecond)
	}
	return err
}
