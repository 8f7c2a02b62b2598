package slurmjob

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/ncclinic/ncclinic/internal/fact"
	"github.com/ncclinic/ncclinic/internal/hostlist"
	"github.com/ncclinic/ncclinic/internal/source"
)

// Limits on the files of one job.
const (
	maxOutputs = 4096    // files that are named
	maxListed  = 200_000 // entries of a folder that are looked at
)

func stat(m *source.Machine, abs string) (os.FileInfo, error) { return fs.Stat(m.FS, source.Rel(abs)) }

// Outputs finds the files that the job was to write: --output and --error of
// the job, those of its steps, and redirections of the batch script. s may be nil.
func Outputs(m *source.Machine, j *fact.Job, s *fact.Script) {
	o := &finder{m: m, j: j, names: namesOf(j), seen: map[string]bool{}}
	host := j.BatchHost.Or("")
	if host == "" {
		if all, err := hostlist.Expand(j.Nodes.Or("")); err == nil && len(all) > 0 {
			host = all[0]
		}
	}
	batch := o.names.batch(host)
	// The name of the host need not be that of the node.
	batchFiles := func(pattern, kind string) {
		if !o.files(pattern, batch, kind, false) {
			open := batch
			open.Host = ""
			o.files(pattern, open, kind, true)
		}
	}
	out, err := o.std(s)
	batchFiles(out, fact.OutStd)
	if err != "" && err != out {
		batchFiles(err, fact.OutErr)
	}
	if s != nil {
		o.steps(s)
		o.redirects(s)
	}
}

type finder struct {
	m     *source.Machine
	j     *fact.Job
	names Names
	seen  map[string]bool
	base  string // folder from which relative names count; "": the job's working directory
}

// std returns the patterns of the job's own output.
func (o *finder) std(s *fact.Script) (out, err string) {
	out, err = o.j.StdOut.Or(""), o.j.StdErr.Or("")
	if out == "" { // options of the command line come before those of the script
		out, err = submitted(o.j.SubmitLine.Or(""))
		if s != nil {
			out, err = firstOf(out, s.Request.Output), firstOf(err, s.Request.Error)
		}
	}
	if out == "" {
		out = "slurm-%j.out"
		if o.j.Array != "" {
			out = "slurm-%A_%a.out"
		}
	}
	return out, err
}

// submitted finds --output and --error in the command line of a submission, of
// which only the words joined by blanks are known. What stands behind the script
// is the script's own.
func submitted(line string) (out, err string) {
	f := strings.Fields(line)
	for i := 1; i < len(f) && i < 200; i++ {
		w, next := f[i], ""
		if i+1 < len(f) {
			next = f[i+1]
		}
		switch {
		case strings.HasPrefix(w, "--output="):
			out = w[len("--output="):]
		case strings.HasPrefix(w, "--error="):
			err = w[len("--error="):]
		case w == "--output" || w == "-o":
			out = next
		case w == "--error" || w == "-e":
			err = next
		case strings.HasPrefix(w, "-o") && len(w) > 2:
			out = strings.TrimPrefix(w[2:], "=")
		case strings.HasPrefix(w, "-e") && len(w) > 2:
			err = strings.TrimPrefix(w[2:], "=")
		case strings.HasPrefix(w, "--wrap"):
			return out, err
		case !strings.HasPrefix(w, "-") && !strings.HasPrefix(f[i-1], "-") && i > 1, scriptEnd(w):
			return out, err
		}
	}
	return out, err
}

// scriptEnd reports a word that is named as batch scripts are.
func scriptEnd(w string) bool {
	switch path.Ext(w) {
	case ".sh", ".bash", ".sbatch", ".slurm", ".job", ".sub":
		return !strings.HasPrefix(w, "-")
	}
	return false
}

// abs makes a path absolute from the job's working directory.
func (o *finder) abs(p string) string {
	if strings.HasPrefix(p, "/") {
		return path.Clean(p)
	}
	dir := o.base
	if dir == "" {
		dir = o.j.WorkDir.Or("")
	}
	if !strings.HasPrefix(dir, "/") {
		return ""
	}
	return path.Join(dir, p)
}

// files adds the files that a pattern names; with force also when there are none.
func (o *finder) files(pattern string, n Names, kind string, force bool) bool {
	parts := expand(pattern, n)
	open := slices.ContainsFunc(parts, func(p part) bool { return p.any != "" })
	if !open {
		p := ""
		for _, x := range parts {
			p += x.text
		}
		abs := o.abs(p)
		if abs == "" {
			o.add(fact.JobOutput{Path: p, Kind: kind, Unread: fact.OutUnknown})
			return true
		}
		out := o.look(abs, kind)
		if out.Unread == fact.OutMissing && !force {
			return false
		}
		o.add(out)
		return true
	}
	found := o.matching(parts)
	for _, p := range found {
		o.add(o.look(p, kind))
	}
	if len(found) == 0 && force {
		abs := o.abs(Expand(pattern, n))
		o.add(fact.JobOutput{Path: abs, Kind: kind, Unread: fact.OutMissing})
	}
	return len(found) > 0
}

func (o *finder) add(out fact.JobOutput) {
	if o.seen[out.Path] {
		return
	}
	o.seen[out.Path] = true
	if len(o.j.Outputs) >= maxOutputs {
		o.j.Outputs[maxOutputs-1].Unread = fact.OutTooMany
		return
	}
	o.j.Outputs = append(o.j.Outputs, out)
}

// look says whether a file can be taken for this job's.
func (o *finder) look(abs, kind string) fact.JobOutput {
	out := fact.JobOutput{Path: abs, Kind: kind}
	st, why := look(o.m, abs, o.j)
	if st != nil {
		out.Size, out.Changed = st.Size(), st.ModTime()
	}
	out.Unread = why
	if why == fact.OutMissing {
		if dir, err := stat(o.m, path.Dir(abs)); err != nil || !dir.IsDir() {
			out.Unread = fact.OutNoFolder
		}
	}
	if why != "" {
		return out
	}
	if start, ok := slurmTime(o.j.Start.Or("")); ok && st.ModTime().Before(start.Add(-clocks)) {
		out.Unread = fact.OutEarlier
	}
	if fact.Phase(o.j.State.Or("")) == fact.JobEnded {
		if end, ok := slurmTime(o.j.End.Or("")); ok && st.ModTime().After(end.Add(clocks)) {
			out.Unread = fact.OutLater
		}
	}
	if out.Unread == "" && denied(o.m, o.j, abs) {
		out.Unread = fact.OutDenied
	}
	return out
}

// denied reports that a file may not be read by whoever asks, though it is there.
func denied(m *source.Machine, j *fact.Job, path string) bool {
	f, err := Open(m, j, path)
	if err != nil {
		return errors.Is(err, fs.ErrPermission)
	}
	f.Close()
	return false
}

// matching walks the folders of a pattern whose parts are not all known.
func (o *finder) matching(parts []part) []string {
	// Split at slashes: each component is an expression.
	var comps []string
	var plain []bool
	cur, isPlain := "", true
	var curText string
	flush := func() {
		if isPlain {
			comps = append(comps, curText)
		} else {
			comps = append(comps, "^"+cur+"$")
		}
		plain = append(plain, isPlain)
		cur, curText, isPlain = "", "", true
	}
	for _, p := range parts {
		if p.any != "" {
			cur += "(?:" + p.any + ")"
			isPlain = false
			continue
		}
		for i, t := range strings.Split(p.text, "/") {
			if i > 0 {
				flush()
			}
			cur += regexp.QuoteMeta(t)
			curText += t
		}
	}
	flush()
	dirs := []string{"/"}
	if comps[0] != "" || !plain[0] { // relative
		wd := o.abs(".")
		if wd == "" {
			return nil
		}
		dirs = []string{wd}
	}
	for i, c := range comps {
		if c == "" && plain[i] {
			continue
		}
		var next []string
		for _, d := range dirs {
			if plain[i] {
				next = append(next, path.Join(d, c))
				continue
			}
			re, err := regexp.Compile(c)
			if err != nil {
				return nil
			}
			for _, name := range o.list(d) {
				if re.MatchString(name) && len(next) < maxOutputs {
					next = append(next, path.Join(d, name))
				}
			}
		}
		dirs = next
	}
	var out []string
	for _, p := range dirs {
		if _, err := stat(o.m, p); err == nil {
			out = append(out, p)
		}
	}
	slices.SortFunc(out, natural)
	return out
}

// list returns the names in a folder, at most maxListed.
func (o *finder) list(dir string) []string {
	f, err := o.m.FS.Open(source.Rel(dir))
	if err != nil {
		return nil
	}
	defer f.Close()
	d, ok := f.(fs.ReadDirFile)
	if !ok {
		return nil
	}
	var names []string
	for len(names) < maxListed {
		ents, err := d.ReadDir(4096)
		for _, e := range ents {
			names = append(names, e.Name())
		}
		if err != nil || len(ents) == 0 {
			break
		}
	}
	return names
}

// natural sorts out-2 before out-10.
func natural(a, b string) int {
	if len(a) != len(b) {
		return len(a) - len(b)
	}
	return strings.Compare(a, b)
}

// value fills in the variables of a word that the job's own facts tell.
func (o *finder) value(s *fact.Script, val string) (string, bool) {
	if !fact.HasHole(val) {
		return val, val != ""
	}
	var b strings.Builder
	for _, r := range val {
		i := int(r) - fact.HoleBase
		if i < 0 || i >= len(s.Holes) {
			b.WriteRune(r)
			continue
		}
		v := ""
		switch s.Holes[i].Name {
		case "SLURM_JOB_ID", "SLURM_JOBID":
			v = o.names.Job
		case "SLURM_ARRAY_JOB_ID":
			v = o.j.Array
		case "SLURM_ARRAY_TASK_ID":
			v = o.j.Task
		case "SLURM_JOB_NAME":
			v = o.names.Name
		case "SLURM_SUBMIT_DIR", "PWD":
			v = o.j.WorkDir.Or("")
		case "USER", "SLURM_JOB_USER":
			v = o.names.User
		}
		if v == "" {
			return "", false
		}
		b.WriteString(strings.ReplaceAll(v, "%", "%%"))
	}
	return b.String(), true
}

// steps adds what srun was told to write.
func (o *finder) steps(s *fact.Script) {
	for i := range s.Steps {
		t := &s.Steps[i]
		if t.Tool != "srun" {
			continue
		}
		for _, name := range []string{"output", "error"} {
			d := t.Opt(name)
			if d == nil || d.Value == "all" || d.Value == "none" || strings.Trim(d.Value, "0123456789") == "" {
				continue
			}
			v, ok := o.value(s, d.Value)
			if !ok {
				o.add(fact.JobOutput{Path: s.Show(d.Value), Kind: fact.OutStep, Unread: fact.OutUnknown})
				continue
			}
			n := o.names
			if !o.entered(s, t.Cmd, func() bool { return o.files(v, n, fact.OutStep, false) }) {
				o.files(v, n, fact.OutStep, true)
			}
		}
	}
}

// redirects adds what the batch script sends to files: > and tee.
func (o *finder) redirects(s *fact.Script) {
	one := func(cmd int, w fact.Word) {
		v, ok := o.value(s, w.Val)
		if !ok || strings.HasPrefix(v, "/dev/") || strings.HasPrefix(v, "&") {
			return
		}
		// A file that is not there, or older, is no news: the command may not have run.
		v = strings.ReplaceAll(v, "%%", "%")
		there := func() bool {
			out := o.look(o.abs(v), fact.OutRedirect)
			if out.Unread == "" || out.Unread == fact.OutLater || out.Unread == fact.OutDenied {
				o.add(out)
				return true
			}
			return false
		}
		_ = o.entered(s, cmd, there) || there()
	}
	launched := map[int]bool{}
	for _, l := range s.Launches {
		for c := l.Cmd; c >= 0 && c < len(s.Commands) && !launched[c]; c = s.Commands[c].Outer {
			launched[c] = true
		}
	}
	for _, t := range s.Steps {
		launched[t.Cmd] = true
	}
	for i := range s.Commands {
		c := &s.Commands[i]
		if c.File != "" || c.Dead {
			continue
		}
		if c.Name == "tee" && c.Piped {
			for _, w := range c.Words[1:] {
				if !strings.HasPrefix(w.Val, "-") {
					one(i, w)
				}
			}
		}
		if !launched[i] && c.Name != "exec" {
			continue
		}
		for _, r := range c.Redir {
			switch r.Op {
			case ">", ">>", "&>", "&>>", ">|":
				one(i, r.Word)
			}
		}
	}
}

// maxEntered bounds the folders that a script goes to.
const maxEntered = 64

// entered tries the folders to which the script goes before a command, the last
// one first. A cd may fail or stand in a branch: what is there decides.
func (o *finder) entered(s *fact.Script, cmd int, try func() bool) bool {
	var dirs []string
	at := o.j.WorkDir.Or("")
	for i := range s.Commands[:max(0, min(cmd, len(s.Commands)))] {
		c := &s.Commands[i]
		if c.Name != "cd" && c.Name != "pushd" || c.Dead || c.Subst || c.File != "" || len(c.Words) != 2 || len(dirs) == maxEntered {
			continue
		}
		d, ok := o.value(s, c.Words[1].Val)
		if d = strings.ReplaceAll(d, "%%", "%"); !ok || strings.HasPrefix(d, "-") || strings.HasPrefix(d, "~") {
			continue
		}
		if !strings.HasPrefix(d, "/") {
			d = path.Join(at, d)
		}
		if at = d; strings.HasPrefix(at, "/") {
			dirs = append(dirs, at)
		}
	}
	defer func() { o.base = "" }()
	for _, d := range slices.Backward(dirs) {
		if o.base = d; try() {
			return true
		}
	}
	return false
}

// Silent returns how long none of the files was written to, as of now; false
// when none is there.
func Silent(m *source.Machine, j *fact.Job, now time.Time) (time.Duration, string, bool) {
	var last time.Time
	var where string
	for i := range j.Outputs {
		o := &j.Outputs[i]
		st, why := look(m, o.Path, j)
		if why != "" {
			continue
		}
		o.Size, o.Changed = st.Size(), st.ModTime()
		if o.Changed.After(last) {
			last, where = o.Changed, o.Path
		}
	}
	if last.IsZero() {
		return 0, "", false
	}
	return now.Sub(last), where, true
}
