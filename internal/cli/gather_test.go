package cli

import (
	"context"
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/ncclinic/ncclinic/internal/diag"
	"github.com/ncclinic/ncclinic/internal/source"
	"github.com/ncclinic/ncclinic/rules"
)

// hung is a file system whose server went away.
type hung struct{ until chan struct{} }

func (h hung) Open(string) (fs.File, error)          { <-h.until; return nil, fs.ErrNotExist }
func (h hung) Lstat(string) (fs.FileInfo, error)     { <-h.until; return nil, fs.ErrNotExist }
func (h hung) ReadLink(string) (string, error)       { <-h.until; return "", fs.ErrNotExist }
func (h hung) Stat(string) (fs.FileInfo, error)      { <-h.until; return nil, fs.ErrNotExist }
func (h hung) ReadDir(string) ([]fs.DirEntry, error) { <-h.until; return nil, fs.ErrNotExist }

// TestHungFileSystem: the check ends, says what it could not see, and does not
// call what nobody saw well.
func TestHungFileSystem(t *testing.T) {
	h := hung{make(chan struct{})}
	defer close(h.until)
	began := time.Now()
	b := collect(context.Background(), &source.Machine{FS: h, Env: map[string]string{"PATH": "/usr/bin"}}, gatherFlags{timeout: 100 * time.Millisecond})
	if d := time.Since(began); d > 5*time.Second {
		t.Errorf("took %v", d)
	}
	base, err := rules.Load(rules.Embedded(), "test", rules.Environment...)
	if err != nil {
		t.Fatal(err)
	}
	if rep := diag.Run(base.Set(), b); rep.Verdict != diag.Unknown || len(rep.Problems) == 0 {
		t.Errorf("verdict %s, problems %v", rep.Verdict, rep.Problems)
	}
}

// TestTimeLimit: a time limit is worded for people.
func TestTimeLimit(t *testing.T) {
	b := collect(context.Background(), &source.Machine{FS: fstest.MapFS{}, Env: map[string]string{}}, gatherFlags{timeout: 1})
	for _, p := range b.Problems {
		if strings.Contains(p.Why, "context") {
			t.Errorf("%s: %s", p.What, p.Why)
		}
	}
}
