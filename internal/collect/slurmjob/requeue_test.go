package slurmjob

import (
	"io"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/ncclinic/ncclinic/internal/collect/script"
	"github.com/ncclinic/ncclinic/internal/fact"
	"github.com/ncclinic/ncclinic/internal/source"
)

// TestEarlierRuns: of a file to which all runs of a requeued job append, the last
// run's part is read, with the line numbers of the file.
func TestEarlierRuns(t *testing.T) {
	const first = "attempt 0\nKeyError: 'first'\nslurmstepd-n3: error: *** JOB 7 ON n3 CANCELLED AT 2026-11-30T15:23:52 DUE TO JOB REQUEUE ***\n"
	const second = "attempt 1\nslurmstepd: error: *** STEP 7.0 ON n1 CANCELLED AT 2026-11-30T15:30:00 DUE TO NODE FAILURE, SEE SLURMCTLD LOG FOR DETAILS ***\n"
	const third = "attempt 2\nIndexError: third\nslurmstepd: error: *** JOB 7 ON n1 CANCELLED AT 2026-11-30T16:10:00 DUE TO TIME LIMIT ***\n"
	known := func(restarts int, state, start string) *fact.Job {
		j := &fact.Job{ID: "7", Raw: "7"}
		j.State, j.Restarts = fact.Of(state, fact.Evidence{}), fact.Of(restarts, fact.Evidence{})
		if start != "" {
			j.Start = fact.Of(start, fact.Evidence{})
		}
		return j
	}
	for _, tt := range []struct {
		name, text string
		job        *fact.Job
		blank      string
	}{
		{"last of three runs", first + second + third, known(2, "TIMEOUT", "2026-11-30T15:40:00"), first + second},
		{"it runs for the second time", first + "attempt 1\n", known(1, "RUNNING", "2026-11-30T15:26:00"), first},
		{"never requeued", first + third, known(0, "TIMEOUT", "2026-11-30T15:40:00"), ""},
		{"it waits again", first, known(1, "PENDING", "2026-11-30T17:00:00"), ""},
		{"another job", strings.ReplaceAll(first, "JOB 7 ", "JOB 70 ") + third, known(1, "TIMEOUT", "2026-11-30T15:40:00"), ""},
		{"nothing since", first, known(1, "RUNNING", "2026-11-30T15:26:00"), first},
		{"no time", first, known(1, "RUNNING", ""), ""},
		{"a line of a megabyte", strings.Repeat("x", 1<<20) + "\n" + first + third, known(1, "TIMEOUT", "2026-11-30T15:40:00"), strings.Repeat("x", 1<<20) + "\n" + first},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m := &source.Machine{FS: fstest.MapFS{"w/o": {Data: []byte(tt.text)}}}
			tt.job.Outputs = []fact.JobOutput{{Path: "/w/o", Size: int64(len(tt.text))}}
			EarlierRuns(t.Context(), m, tt.job)
			o := &tt.job.Outputs[0]
			if o.Before != int64(len(tt.blank)) {
				t.Fatalf("%d bytes of earlier runs, want %d", o.Before, len(tt.blank))
			}
			r, err := OpenRun(m, tt.job, o)
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			got, err := io.ReadAll(r)
			if want := strings.Repeat("\n", strings.Count(tt.blank, "\n")) + tt.text[len(tt.blank):]; err != nil || string(got) != want {
				t.Errorf("%v: %q, want %q", err, got, want)
			}
		})
	}
}

// TestEntered: names of files count from the folder to which the script went.
func TestEntered(t *testing.T) {
	at := time.Date(2026, 11, 30, 9, 0, 0, 0, time.Local)
	m := &source.Machine{FS: fstest.MapFS{
		"w/a/s-0.out": {Data: []byte("x"), ModTime: at}, "w/a/b/t.log": {Data: []byte("x"), ModTime: at}, "w/first.out": {Data: []byte("x"), ModTime: at}, "etc/t.log": {Data: []byte("x"), ModTime: at}}}
	j := &fact.Job{ID: "5", Raw: "5"}
	j.WorkDir, j.State = fact.Of("/w", fact.Evidence{}), fact.Of("COMPLETED", fact.Evidence{})
	s := script.Parse("s", []byte("#!/bin/bash\nsrun -o first.out true\ncd $SLURM_SUBMIT_DIR/a || exit\nsrun -o 's-%t.out' true\ncd b\nsrun true > t.log\ncd -\ncd $UNKNOWN\nsrun -o none.out true\n"), script.Options{Batch: true})
	Outputs(m, j, s)
	var got []string
	for _, o := range j.Outputs {
		got = append(got, o.Path+" "+o.Unread)
	}
	want := []string{"/w/slurm-5.out missing", "/w/first.out ", "/w/a/s-0.out ", "/w/none.out missing", "/w/a/b/t.log "}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("%q, want %q", got, want)
	}
}
