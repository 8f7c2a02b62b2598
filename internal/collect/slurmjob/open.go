package slurmjob

import (
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
	if uid, ok := owner(st); ok && j.UID.IsKnown() && m.UID != j.UID.V && uid != j.UID.V {
		f.Close()
		return nil, &fs.PathError{Op: "read", Path: path, Err: fmt.Errorf("belongs to user %d, the job to %d", uid, j.UID.V)}
	}
	return f, nil
}
