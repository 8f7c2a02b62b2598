package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/ncclinic/ncclinic/internal/collect/env"
	"github.com/ncclinic/ncclinic/internal/collect/install"
	"github.com/ncclinic/ncclinic/internal/collect/live"
	"github.com/ncclinic/ncclinic/internal/collect/node"
	"github.com/ncclinic/ncclinic/internal/collect/slurm"
	"github.com/ncclinic/ncclinic/internal/fact"
	"github.com/ncclinic/ncclinic/internal/mask"
	"github.com/ncclinic/ncclinic/internal/run"
	"github.com/ncclinic/ncclinic/internal/source"
)

// gather collects the facts of the environment of this process.
func (a *app) gather(ctx context.Context, g gatherFlags) (*fact.Bundle, error) {
	m, err := run.NewMachine()
	if err != nil {
		return nil, err
	}
	return a.gatherOn(ctx, m, g)
}

// gatherOn collects the facts of a machine.
func (a *app) gatherOn(ctx context.Context, m *source.Machine, g gatherFlags) (*fact.Bundle, error) {
	if g.timeout <= 0 || g.liveTimeout <= 0 {
		return nil, usagef("%s", a.tr("--timeout and --live-timeout must be longer than 0, such as 30s or 2m", "--timeout 和 --live-timeout 必须大于 0，例如 30s 或 2m"))
	}
	b := collect(ctx, m, g)
	if err := ctx.Err(); err != nil {
		return nil, err // half of the facts would be judged as if that were all
	}
	if py := b.Python.Exe; g.python != "" && py.State == fact.Failed {
		if strings.HasPrefix(py.Why, g.python) {
			return nil, usagef("--python: %s", py.Why)
		}
		return nil, usagef("--python %s: %s", g.python, py.Why)
	}
	mask.Deep(b)
	b.Subject = fact.Subject{Kind: "environment", Name: b.Host.Name.Or("")}
	b.Taken = time.Now().UTC().Truncate(time.Second)
	return b, nil
}

// part is one collector with a bundle of its own: a collector that hangs on a
// dead file system is left behind with its half-filled bundle, which nobody
// reads any more, and the others are still reported.
type part struct {
	name  string
	run   func(context.Context, *source.Machine, *fact.Bundle) error
	merge func(dst, src *fact.Bundle)
	// late marks what nobody saw as failed: silence must not read as "all is well".
	late func(dst *fact.Bundle, why string)
}

// patience is how long a part is waited for before the next one begins beside it.
const patience = time.Second

func collect(ctx context.Context, m *source.Machine, g gatherFlags) *fact.Bundle {
	ctx, cancel := context.WithTimeout(ctx, g.timeout)
	defer cancel()
	out := &fact.Bundle{Schema: fact.BundleSchema, Tool: Version}
	envfacts.Collect(m, out)
	parts := []part{
		{"python and torch", func(ctx context.Context, m *source.Machine, b *fact.Bundle) error {
			return install.Collect(ctx, m, install.Options{Python: g.python, Cwd: workingDir(), Also: g.alsoList()}, b)
		}, func(dst, src *fact.Bundle) {
			dst.Python, dst.Torch, dst.Dists, dst.Loads, dst.Extensions = src.Python, src.Torch, src.Dists, src.Loads, src.Extensions
			dst.Node.LibCUDA = src.Node.LibCUDA
		}, func(dst *fact.Bundle, why string) {
			dst.Python.Exe = fact.Fail[string](why, fact.Evidence{})
		}},
		{"node", node.Collect, func(dst, src *fact.Bundle) {
			lib := dst.Node.LibCUDA
			dst.Host, dst.Node, dst.NCCLConf, dst.Container = src.Host, src.Node, src.NCCLConf, src.Container
			if !dst.Node.LibCUDA.Looked() {
				dst.Node.LibCUDA = lib
			}
		}, func(dst *fact.Bundle, why string) {
			dst.Node.Driver = fact.Fail[fact.Driver](why, fact.Evidence{})
		}},
		{"slurm", slurm.Context, func(dst, src *fact.Bundle) { dst.Slurm = src.Slurm }, func(*fact.Bundle, string) {}},
	}
	type done struct {
		i   int
		b   *fact.Bundle
		err error
	}
	ch := make(chan done, len(parts))
	begun := 0
	begin := func() {
		i, p := begun, parts[begun]
		begun++
		own := &fact.Bundle{Env: out.Env}
		go func() {
			defer func() {
				if r := recover(); r != nil {
					ch <- done{i, own, fmt.Errorf("internal error: %v", r)}
				}
			}()
			err := p.run(ctx, m, own)
			ch <- done{i, own, err}
		}()
	}
	begin()
	for !g.inTurn && begun < len(parts) {
		begin()
	}
	got := make([]*done, len(parts))
	hung := time.NewTicker(patience)
	defer hung.Stop()
	for n := 0; n < len(parts); {
		select {
		case d := <-ch:
			got[d.i] = &d
			n++
		case <-hung.C: // the others need not wait for what hangs
		case <-ctx.Done():
			// One moment more for collectors that notice the deadline themselves.
			select {
			case d := <-ch:
				got[d.i] = &d
			case <-time.After(200 * time.Millisecond):
			}
			n++
			continue
		}
		if begun < len(parts) {
			begin()
		}
	}
	for i, p := range parts { // in a fixed order, so that two runs agree
		d := got[i]
		if d == nil {
			late := fmt.Sprintf("did not finish within %s (is a file system hung?)", g.timeout)
			out.AddProblem(p.name, late)
			p.late(out, late)
			continue
		}
		p.merge(out, d.b)
		out.Problems = append(out.Problems, d.b.Problems...)
		switch {
		case errors.Is(d.err, context.DeadlineExceeded):
			out.AddProblem(p.name, fmt.Sprintf("stopped at the time limit of %s; not everything was looked at", g.timeout))
		case d.err != nil:
			out.AddProblem(p.name, d.err.Error())
		}
	}
	if g.live {
		askLive(ctx, m, g, out)
	}
	return out
}

// workingDir returns the working directory, "" when it is gone. PWD alone is no
// proof: env -i, --chdir and many launchers leave it unset or old, and relative
// entries of PATH and PYTHONPATH are meant from here.
func workingDir() string {
	dir, err := os.Getwd() // takes PWD when that is the same folder
	if err != nil {
		return ""
	}
	return dir
}

func askLive(ctx context.Context, m *source.Machine, g gatherFlags, b *fact.Bundle) {
	exe, ok := b.Python.Exe.Get()
	if !ok {
		b.AddProblem("--live", "no interpreter to ask")
		return
	}
	ctx = context.WithoutCancel(ctx) // the limit of --live is its own
	if err := live.Ask(ctx, m, exe, g.liveTimeout, b); err != nil {
		b.AddProblem("--live", err.Error())
	}
}
