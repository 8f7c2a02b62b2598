package slurm

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/ncclinic/ncclinic/internal/source"
)

// offerLimit bounds sinfo: a slow controller must not keep a person waiting.
const offerLimit = 15 * time.Second

// Partition is what sinfo says of the nodes of one partition that are alike.
type Partition struct {
	Name    string
	Nodes   int
	CPUs    int    // of each node
	MemMiB  int64  // of each node
	Gres    string // gpu:a100:4(S:0-1),nvme:1
	Seconds int64  // time limit; -1: none; 0: not known
}

// ClientVersion returns what "scontrol --version" says, "" when there is none.
// It asks no daemon.
func ClientVersion(ctx context.Context, m *source.Machine) string {
	if m.Runner == nil {
		return ""
	}
	p, err := m.Runner.LookPath("scontrol")
	if err != nil {
		return ""
	}
	r, err := m.Runner.Run(ctx, source.Cmd{Path: p, Args: []string{"--version"}, Timeout: versionLimit, MaxOut: 4096})
	if err != nil || r.Code != 0 {
		return ""
	}
	return strings.TrimSpace(string(r.Stdout))
}

// Offer asks sinfo what the cluster has.
func Offer(ctx context.Context, m *source.Machine) ([]Partition, error) {
	if m.Runner == nil {
		return nil, errors.New("nothing may be run here")
	}
	p, err := m.Runner.LookPath("sinfo")
	if err != nil {
		return nil, errors.New("sinfo is not on PATH")
	}
	r, err := m.Runner.Run(ctx, source.Cmd{Path: p, Args: []string{"--noheader", "--exact", "--format", "%R|%D|%c|%m|%G|%l"}, Timeout: offerLimit})
	switch {
	case err != nil:
		return nil, fmt.Errorf("sinfo: %w", err)
	case r.TimedOut:
		return nil, errors.New("sinfo did not answer in time")
	case r.Code != 0:
		return nil, failed("sinfo", r.Stderr)
	}
	return ParseOffer(string(r.Stdout)), nil
}

// ParseOffer reads lines of partition|nodes|cpus|memory|gres|limit; lines of
// another form are left out.
func ParseOffer(text string) []Partition {
	var out []Partition
	for _, l := range strings.Split(text, "\n") {
		f := strings.Split(strings.TrimSpace(l), "|")
		if len(f) != 6 || f[0] == "" {
			continue
		}
		q := Partition{Name: f[0], Gres: f[4], Seconds: limit(f[5])}
		q.Nodes, _ = strconv.Atoi(f[1])
		q.CPUs, _ = strconv.Atoi(strings.TrimSuffix(f[2], "+"))
		q.MemMiB, _ = strconv.ParseInt(strings.TrimSuffix(f[3], "+"), 10, 64)
		if q.Gres == "(null)" {
			q.Gres = ""
		}
		out = append(out, q)
	}
	return out
}

// limit reads days-hours:minutes:seconds as sinfo writes it.
func limit(s string) int64 {
	if s == "infinite" {
		return -1
	}
	var days int64
	if d, rest, ok := strings.Cut(s, "-"); ok {
		days, _ = strconv.ParseInt(d, 10, 64)
		s = rest
	}
	var sec int64
	for _, p := range strings.Split(s, ":") {
		n, err := strconv.ParseInt(p, 10, 64)
		if err != nil || n < 0 || n > 1e6 {
			return 0
		}
		sec = sec*60 + n
	}
	return days*86400 + sec
}
