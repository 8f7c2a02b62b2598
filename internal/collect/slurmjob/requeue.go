package slurmjob

import (
	"bufio"
	"bytes"
	"context"
	"io"

	"github.com/ncclinic/ncclinic/internal/fact"
	"github.com/ncclinic/ncclinic/internal/lazyre"
	"github.com/ncclinic/ncclinic/internal/source"
)

// runEnd is what slurmstepd writes at the end of a run that does not end by itself:
// slurmstepd-n3: error: *** JOB 7 ON n3 CANCELLED AT 2026-11-30T15:23:52 DUE TO JOB REQUEUE ***
var runEnd = lazyre.New(`\*\*\* (?:JOB|STEP) (\d{1,10})(?:\.\w+)? ON \S+ CANCELLED AT (\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)`)

// EarlierRuns marks in the outputs of a requeued job what its earlier runs wrote:
// with --open-mode=append all of them are in one file, and the first failure in it
// is not that of the run that Slurm tells of.
func EarlierRuns(ctx context.Context, m *source.Machine, j *fact.Job) {
	start, ok := j.Start.Get()
	if !ok || len(start) != len("2006-01-02T15:04:05") || j.Restarts.Or(0) == 0 && len(j.Before) == 0 || fact.Phase(j.State.Or("")) == fact.JobWaits {
		return
	}
	for i := range j.Outputs {
		o := &j.Outputs[i]
		if o.Unread != "" || o.Size == 0 || ctx.Err() != nil {
			continue
		}
		f, err := Open(m, j, o.Path)
		if err != nil {
			continue
		}
		o.Before = lastEnd(ctx, f, j.Raw, start)
		f.Close()
	}
}

// lastEnd returns where the last run ended that ended before the start of this one.
func lastEnd(ctx context.Context, r io.Reader, job, start string) int64 {
	br := bufio.NewReaderSize(r, 256<<10)
	var off, end int64
	for n := 0; ; n++ {
		if n%4096 == 0 && ctx.Err() != nil {
			return 0
		}
		line, err := br.ReadSlice('\n')
		off += int64(len(line))
		if bytes.Contains(line, []byte(" CANCELLED AT ")) {
			// Times of one format in one zone sort as text.
			if x := runEnd.FindSubmatch(line); x != nil && string(x[1]) == job && string(x[2]) <= start {
				end = off
			}
		}
		if err != nil && err != bufio.ErrBufferFull {
			return end
		}
	}
}

// OpenRun opens an output like Open, with what earlier runs wrote left blank: the
// lines keep their numbers.
func OpenRun(m *source.Machine, j *fact.Job, o *fact.JobOutput) (io.ReadCloser, error) {
	f, err := Open(m, j, o.Path)
	if err != nil || o.Before == 0 {
		return f, err
	}
	return struct {
		io.Reader
		io.Closer
	}{io.MultiReader(&lineEnds{io.LimitReader(f, o.Before)}, f), f}, nil
}

// lineEnds passes on nothing but the ends of lines.
type lineEnds struct{ r io.Reader }

func (l *lineEnds) Read(p []byte) (int, error) {
	for {
		n, err := l.r.Read(p)
		k := bytes.Count(p[:n], []byte{'\n'})
		for i := range k {
			p[i] = '\n'
		}
		if k > 0 || err != nil || len(p) == 0 {
			return k, err
		}
	}
}
