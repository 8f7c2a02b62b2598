// Package slurmjob finds out what became of a batch job: it asks scontrol and
// sacct, whichever of them still knows it, reads the batch script that Slurm
// kept, and finds the files that the job wrote.
package slurmjob

import (
	"errors"
	"strconv"
	"strings"

	"github.com/ncclinic/ncclinic/internal/lazyre"
)

// ID names a job as people do.
type ID struct {
	Job  string // 4711
	Task string // of an array: 3
	Comp string // of a heterogeneous job: 1

	Step    string // that was named behind the job: 0, batch; jobs are explained as a whole
	Cluster string // of several that share one accounting; "": the client's own
}

func (id ID) String() string {
	switch {
	case id.Task != "":
		return id.Job + "_" + id.Task
	case id.Comp != "":
		return id.Job + "+" + id.Comp
	}
	return id.Job
}

var idForm = lazyre.New(`^(\d{1,10})(?:_(\d{1,10})|\+(\d{1,4}))?(\.\w{1,20})?$`)

// maxJob is the highest number that Slurm gives to a job; those above mean
// something else (NO_VAL, INFINITE).
const maxJob = 1<<32 - 16

// ErrID is returned for what is no job id.
var ErrID = errors.New("not a job id such as 4711, 4711_3 (task 3 of an array) or 4711+1 (component of a heterogeneous job)")

// ErrSeveral is returned for an expression that names several tasks or jobs.
var ErrSeveral = errors.New("names several jobs; give one: 4711_3 for a task of an array, or 4711 for the array, of which the first task that failed is explained")

var severalForm = lazyre.New(`^\d{1,10}(?:_\[[\d,:%-]{1,1000}\]|_\d+-\d+|(?:[+_.]\w+)?(?:,[\w+.]+)+)$`)

// ParseID reads a job id, with or without a step behind it.
func ParseID(s string) (ID, error) {
	m := idForm.FindStringSubmatch(strings.TrimSpace(s))
	if m == nil {
		if severalForm.MatchString(strings.TrimSpace(s)) {
			return ID{}, ErrSeveral
		}
		return ID{}, ErrID
	}
	for _, d := range m[1:4] {
		if n, err := strconv.ParseUint(d, 10, 64); d != "" && (err != nil || n > maxJob) {
			return ID{}, ErrID
		}
	}
	if n, _ := strconv.ParseUint(m[1], 10, 64); n == 0 {
		return ID{}, ErrID
	}
	return ID{Job: m[1], Task: m[2], Comp: m[3], Step: strings.TrimPrefix(m[4], ".")}, nil
}
