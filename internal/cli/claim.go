package cli

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/ncclinic/ncclinic/internal/source"
)

// claim lets one task of a job speak for all: the one that makes a file which
// no other has made before. The files lie in ~/.cache/ncclinic/run/JOB.STEP,
// which all nodes see where home is shared; else in the temporary folder of each
// node, and then one task per node speaks.
type claim struct {
	dirs []string
	name string
	job  string
}

func newClaim(m *source.Machine, name string) claim {
	c := claim{name: name, job: m.Getenv("SLURM_JOB_ID")}
	if c.job == "" {
		return c
	}
	if _, err := strconv.ParseUint(c.job, 10, 64); err != nil {
		c.job = ""
		return c
	}
	step := m.Getenv("SLURM_STEP_ID")
	if _, err := strconv.ParseUint(step, 10, 64); err != nil {
		step = "batch"
	}
	// A requeued job is another run.
	id := c.job + "." + step
	// Clusters that share a home count their jobs each for itself.
	if n := m.Getenv("SLURM_CLUSTER_NAME"); n != "" && n == filepath.Base(filepath.Clean("/"+n)) && len(n) < 64 {
		id = n + "." + id
	}
	if n := m.Getenv("SLURM_JOB_START_TIME"); n != "" {
		if _, err := strconv.ParseUint(n, 10, 64); err == nil {
			id += "." + n
		}
	}
	if n := m.Getenv("SLURM_RESTART_COUNT"); n != "" {
		if _, err := strconv.ParseUint(n, 10, 32); err == nil {
			id += "." + n
		}
	}
	if d := m.Getenv("XDG_CACHE_HOME"); filepath.IsAbs(d) {
		c.dirs = append(c.dirs, filepath.Join(d, "ncclinic", "run", id))
	} else if filepath.IsAbs(m.Home) {
		c.dirs = append(c.dirs, filepath.Join(m.Home, ".cache", "ncclinic", "run", id))
	}
	c.dirs = append(c.dirs, filepath.Join(os.TempDir(), "ncclinic-"+strconv.Itoa(m.UID), "run", id))
	return c
}

// take reports whether this task is the one that speaks.
func (c claim) take() bool {
	if c.job == "" {
		return true
	}
	for _, dir := range c.dirs {
		if err := os.MkdirAll(dir, 0o700); err != nil || !own(filepath.Dir(filepath.Dir(dir))) {
			continue
		}
		f, err := os.OpenFile(filepath.Join(dir, c.name), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
		switch {
		case err == nil:
			host, _ := os.Hostname()
			_, _ = f.WriteString(host + " " + os.Getenv("SLURM_PROCID") + "\n")
			f.Close()
			tidy(filepath.Dir(dir))
			return true
		case errors.Is(err, fs.ErrExist):
			return false
		}
	}
	return os.Getenv("SLURM_PROCID") == "0" // nowhere to write
}

// taken reports whether a task has spoken already.
func (c claim) taken() bool {
	if c.job == "" {
		return false
	}
	for _, dir := range c.dirs {
		if _, err := os.Stat(filepath.Join(dir, c.name)); err == nil && own(filepath.Dir(filepath.Dir(dir))) {
			return true
		}
	}
	return false
}

// own reports that a folder is this user's and no link: others can make folders
// in the temporary one.
func own(dir string) bool {
	st, err := os.Lstat(dir)
	return err == nil && st.IsDir() && mine(st)
}

// claimAge is how long marks of ended jobs stay.
const claimAge = 7 * 24 * time.Hour

// tidy removes old marks, a few at a time.
func tidy(dir string) {
	f, err := os.Open(dir)
	if err != nil {
		return
	}
	defer f.Close()
	ents, _ := f.ReadDir(200)
	for _, e := range ents {
		if i, err := e.Info(); err == nil && e.IsDir() && time.Since(i.ModTime()) > claimAge {
			os.RemoveAll(filepath.Join(dir, e.Name()))
		}
	}
}
