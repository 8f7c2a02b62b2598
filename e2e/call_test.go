package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ncclinic/ncclinic/internal/fact"
)

// report is the contract of `--format json` as an outsider reads it.
type report struct {
	Schema   string
	Verdict  string
	Cause    *string
	Findings []finding
	Ran      []struct{ Rule, Status, Reason string }
}

type finding struct {
	ID, Role, Severity, Certainty, Actor string
	Title, Message                       string
	Args                                 map[string]string
	Evidence                             []fact.Evidence
	Explains, Needs                      []string
	Fixes                                []struct {
		Kind, Note string
		Commands   []string
	}
}

func (r report) cause() string {
	if r.Cause == nil {
		return ""
	}
	return *r.Cause
}

// top is the finding of the cause.
func (r report) top(t *testing.T) finding {
	t.Helper()
	for _, f := range r.Findings {
		if f.ID == r.cause() {
			return f
		}
	}
	t.Fatalf("cause %q is not among the findings", r.cause())
	return finding{}
}

func (r report) has(id string) bool { return slices.Contains(r.ids(), id) }

func (r report) ids() []string {
	var ids []string
	for _, f := range r.Findings {
		ids = append(ids, f.ID)
	}
	return ids
}

// call is one run of the program.
type call struct {
	env   []string // NAME=value on top of a fresh login
	dir   string
	user  bool          // as an ordinary user, even when the tests run as root
	limit time.Duration // 0 means 60 s
}

type outcome struct {
	code   int
	stdout []byte
	stderr string
	took   time.Duration
	rss    int64 // peak, in bytes
}

// run runs the program and checks what holds for every run: it ends in time
// and does not crash.
func (c call) run(t *testing.T, args ...string) outcome {
	t.Helper()
	limit := c.limit
	if limit == 0 {
		limit = 60 * time.Second
	}
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Env = append(append(loginEnv(), "HOME="+os.Getenv("HOME")), c.env...)
	cmd.Dir = c.dir
	if cmd.Dir == "" {
		cmd.Dir = workDir
	}
	if c.user && os.Getuid() == 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	}
	cmd.WaitDelay = 2 * time.Second
	var out, errOut bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errOut
	began := time.Now()
	err := cmd.Run()
	o := outcome{stdout: out.Bytes(), stderr: errOut.String(), took: time.Since(began)}
	if ctx.Err() != nil {
		t.Fatalf("ncclinic %s did not end within %v\n%s", strings.Join(args, " "), limit, o.stderr)
	}
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatalf("ncclinic %s: %v", strings.Join(args, " "), err)
	}
	o.code = cmd.ProcessState.ExitCode()
	if ru, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage); ok {
		o.rss = ru.Maxrss << 10
	}
	if strings.Contains(o.stderr, "goroutine ") || strings.Contains(o.stderr, "panic:") || o.code < 0 || o.code > 3 {
		t.Fatalf("ncclinic %s crashed with status %d\n%s", strings.Join(args, " "), o.code, o.stderr)
	}
	return o
}

// check runs `ncclinic check --format json` and reads the report.
func (c call) check(t *testing.T, args ...string) report {
	t.Helper()
	o := c.run(t, append([]string{"check", "--format", "json"}, args...)...)
	r := parse(t, o.stdout, o.stderr)
	if want := exitOf(r); o.code != want {
		t.Errorf("verdict %s with exit status %d, want %d", r.Verdict, o.code, want)
	}
	return r
}

// exitOf is the exit status that goes with a report: a warning alone is a
// problem that was found too.
func exitOf(r report) int {
	switch r.Verdict {
	case "ok":
		return 0
	case "unknown":
		return 3
	}
	return 1
}

// parse reads a report and checks what the contract says of every report.
func parse(t *testing.T, b []byte, stderr string) report {
	t.Helper()
	var r report
	if err := json.Unmarshal(b, &r); err != nil {
		t.Fatalf("no report: %v\nstdout: %.2000s\nstderr: %.2000s", err, b, stderr)
	}
	bad := func(format string, args ...any) {
		t.Helper()
		t.Errorf(format, args...)
	}
	if r.Schema != "ncclinic.report/v1" {
		bad("schema %q", r.Schema)
	}
	var lists struct {
		Findings []map[string]json.RawMessage
	}
	if err := json.Unmarshal(b, &lists); err != nil {
		t.Fatal(err)
	}
	for i, f := range lists.Findings {
		for _, k := range []string{"where", "evidence", "explains", "needs", "fixes"} {
			if !bytes.HasPrefix(f[k], []byte("[")) {
				bad("finding %d: %s is %s, want a list", i, k, f[k])
			}
		}
	}
	if r.Findings == nil || r.Ran == nil {
		bad("findings or ran is null")
	}
	switch {
	case r.Verdict == "broken" && r.Cause == nil:
		bad("broken without a cause")
	case r.Verdict == "unknown" && r.Cause != nil:
		bad("unknown with the cause %s", *r.Cause)
	case !slices.Contains([]string{"ok", "warning", "broken", "unknown"}, r.Verdict):
		bad("verdict %q", r.Verdict)
	}
	for _, f := range r.Findings {
		if f.Title == "" || strings.Contains(f.Title+f.Message, "{") && !strings.Contains(f.Title+f.Message, "${") {
			bad("finding %s has no title or an unfilled placeholder: %q %q", f.ID, f.Title, f.Message)
		}
	}
	for _, ran := range r.Ran {
		if ran.Status == "failed" {
			bad("rule %s failed: %s", ran.Rule, ran.Reason)
		}
	}
	return r
}

// facts runs `ncclinic facts` and reads the bundle.
func (c call) facts(t *testing.T, args ...string) *fact.Bundle {
	t.Helper()
	o := c.run(t, append([]string{"facts"}, args...)...)
	return decode(t, o.stdout)
}

func decode(t *testing.T, b []byte) *fact.Bundle {
	t.Helper()
	v := new(fact.Bundle)
	if err := json.Unmarshal(b, v); err != nil {
		t.Fatalf("no bundle: %v\n%.2000s", err, b)
	}
	return v
}
