package slurmjob

import (
	"errors"
	"fmt"
	"io"
	"io/fs"

	"github.com/ncclinic/ncclinic/internal/fact"
	"github.com/ncclinic/ncclinic/internal/source"
)

// Open opens an output for reading. What stands at the path by now is judged
// again: somebody may have put another file there.
func Open(m *source.Machine, j *fact.Job, path string) (io.ReadCloser, error) {
	f, err := m.FS.Open(source.Rel(path))
	if err != nil {
		return nil, err
	}
	st, err := f.Stat()
	if err != nil {
		f.Close()
		return nil, err
	}
	if !st.Mode().IsRegular() {
		f.Close()
		return nil, &fs.PathError{Op: "read", Path: path, Err: fmt.Errorf("not a regular file (%s)", st.Mode().Type())}
	}
	if foreign(m, j, st) {
		f.Close()
		return nil, &fs.PathError{Op: "read", Path: path, Err: errors.New("does not belong to the owner of the job")}
	}
	return f, nil
}
