// Package node says what a machine is: driver, GPUs, limits, shared memory,
// network and RDMA devices, the container around the process and the NCCL
// settings in force. It reads /proc and /sys through source.Machine and asks
// nvidia-smi with a hard time limit; it opens no device.
package node

import (
	"context"
	"errors"
	"io/fs"
	"sort"
	"strings"
	"time"

	"github.com/ncclinic/ncclinic/internal/fact"
	"github.com/ncclinic/ncclinic/internal/source"
)

// Collect fills Host, Node, Container and NCCLConf of the bundle. What cannot
// be read is a fact in state Failed or a Problem; the error is only for a
// cancelled context.
func Collect(ctx context.Context, m *source.Machine, b *fact.Bundle) error {
	r := &reader{m: m, b: b}
	r.host()
	if !r.running() {
		r.userFiles(ctx)
		return ctx.Err()
	}
	r.container()
	r.limits()
	r.memory()
	r.shm()
	r.pci()
	r.deviceFiles()
	r.driver()
	if err := ctx.Err(); err != nil {
		return err
	}
	r.rdma()
	r.ifaces()
	r.modules()
	r.mps()
	r.userFiles(ctx)
	// Last: it may use up the time that is left, less what it takes to give up.
	if end, ok := ctx.Deadline(); ok {
		early, cancel := context.WithDeadline(ctx, end.Add(-2*time.Second))
		defer cancel()
		ctx = early
	}
	r.gpus(ctx)
	r.fabric(ctx)
	return ctx.Err()
}

// running tells a machine from the files of one: in an image or a folder there
// is no /proc that could say "no driver here", so nothing was looked at.
func (r *reader) running() bool {
	for _, p := range []string{"/proc/self", "/proc/version", "/proc/driver", "/sys/module", "/sys/class"} {
		if r.exists(p) {
			return true
		}
	}
	return false
}

// userLimit is how long files may take that lie where the user says.
const userLimit = 5 * time.Second

// userFiles reads what lies in the home folder and in folders of variables.
// Those may be on a file server that is gone, where a call never returns: it is
// then left behind, and the rest is still reported.
func (r *reader) userFiles(ctx context.Context) {
	own := &reader{m: r.m, b: &fact.Bundle{Host: r.b.Host}}
	done := make(chan struct{})
	go func() {
		defer close(done)
		own.ncclConf()
		own.plugins()
	}()
	ctx, cancel := context.WithTimeout(ctx, userLimit)
	defer cancel()
	select {
	case <-done:
		r.b.NCCLConf, r.b.Node.Plugins = own.b.NCCLConf, own.b.Node.Plugins
		r.b.Problems = append(r.b.Problems, own.b.Problems...)
	case <-ctx.Done():
		const why = "the home folder or a folder of LD_LIBRARY_PATH did not answer"
		r.b.Node.Plugins = fact.Fail[[]string](why, fact.EnvVarAt("LD_LIBRARY_PATH", r.m.Getenv("LD_LIBRARY_PATH")))
		r.b.AddProblem("NCCL settings and plugins", why)
		r.envConf(map[string]bool{})
	}
}

// reader is one run of Collect.
type reader struct {
	m *source.Machine
	b *fact.Bundle

	procGPUs []fact.GPU
	smiPath  string
}

const (
	maxText  = 64 << 10 // of a small file of /proc or /sys
	maxNames = 4096     // entries of a folder that are looked at
)

// text reads a small file without the white space around it.
func (r *reader) text(abs string) (string, error) {
	b, err := source.ReadHead(r.m.FS, abs, maxText)
	return strings.TrimSpace(strings.TrimRight(string(b), "\x00")), err
}

// names lists a folder in order.
func (r *reader) names(abs string) ([]string, error) {
	ents, err := fs.ReadDir(r.m.FS, source.Rel(abs))
	if err != nil {
		return nil, err
	}
	if len(ents) > maxNames {
		r.b.AddProblem(abs, "has too many entries, the rest was not looked at")
		ents = ents[:maxNames]
	}
	out := make([]string, len(ents))
	for i, e := range ents {
		out[i] = e.Name()
	}
	sort.Strings(out)
	return out, nil
}

func (r *reader) exists(abs string) bool {
	_, err := fs.Stat(r.m.FS, source.Rel(abs))
	return err == nil
}

// link returns where a symbolic link points, "" when it is none.
func (r *reader) link(abs string) string {
	to, err := fs.ReadLink(r.m.FS, source.Rel(abs))
	if err != nil {
		return ""
	}
	return to
}

// missing reports whether err says that a file is not there, as opposed to
// one that could not be read.
func missing(err error) bool { return errors.Is(err, fs.ErrNotExist) }

// orAbsent turns the error of a read into a value: not there is Absent, all else Failed.
func orAbsent[T any](err error, at fact.Evidence) fact.Val[T] {
	if missing(err) {
		return fact.None[T](at)
	}
	return fact.Fail[T](err.Error(), at)
}

// lineOf returns the line of text that holds sub, for an excerpt.
func lineOf(text, sub string) string {
	for _, l := range strings.Split(text, "\n") {
		if strings.Contains(l, sub) {
			return fact.Clip(strings.TrimSpace(l), 200)
		}
	}
	return ""
}

func firstLine(text string) string {
	l, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return fact.Clip(strings.TrimSpace(printable(l)), 200)
}

// printable drops control characters, which output of broken tools may hold.
func printable(s string) string {
	return strings.Map(func(c rune) rune {
		if c < ' ' && c != '\t' || c == 0x7f || c == '\uFFFD' {
			return -1
		}
		return c
	}, strings.ToValidUTF8(s, ""))
}
