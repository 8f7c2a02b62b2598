package run

import (
	"bytes"
	"context"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/ncclinic/ncclinic/internal/source"
)

func TestStreamConversation(t *testing.T) {
	in, send := io.Pipe()
	lines := make(chan string, 4)
	var errs bytes.Buffer
	done := make(chan source.Result, 1)
	go func() {
		res, err := Real{}.Stream(t.Context(), source.Cmd{Path: "/bin/sh", Args: []string{"-c", "echo one; read x; echo got $x; cat >/dev/null; echo bad >&2; exit 3"}},
			source.Streams{Stdin: in, Stdout: writer(func(p []byte) { lines <- string(p) }), Stderr: &errs})
		if err != nil {
			t.Error(err)
		}
		done <- res
	}()
	if l := <-lines; l != "one\n" {
		t.Fatalf("first line %q", l)
	}
	_, _ = io.WriteString(send, "two\n")
	if l := <-lines; l != "got two\n" {
		t.Fatalf("second line %q", l)
	}
	send.Close()
	if res := <-done; res.Code != 3 || errs.String() != "bad\n" {
		t.Errorf("%+v %q", res, errs.String())
	}
}

func TestStreamIsAskedToEnd(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	var out bytes.Buffer
	first := true
	res, err := Real{}.Stream(ctx, source.Cmd{Path: "/bin/sh", Args: []string{"-c", "trap 'echo asked; exit 7' TERM; echo up; while :; do sleep 0.05; done"}},
		source.Streams{Stdout: writer(func(p []byte) {
			out.Write(p)
			if first {
				first = false
				cancel()
			}
		}), Stderr: io.Discard})
	if err != nil || res.Code != 7 || !res.TimedOut || !strings.Contains(out.String(), "asked") {
		t.Errorf("%+v %v %q", res, err, out.String())
	}
}

func TestStreamTimeLimit(t *testing.T) {
	res, err := Real{}.Stream(t.Context(), source.Cmd{Path: "/bin/sh", Args: []string{"-c", "exec sleep 1000"}, Timeout: 50 * time.Millisecond}, source.Streams{Stdout: io.Discard, Stderr: io.Discard})
	if err != nil || !res.TimedOut || res.Wall > 30*time.Second {
		t.Errorf("%+v %v", res, err)
	}
	if _, err := (Real{}).Stream(t.Context(), source.Cmd{Path: "/nonexistent/x"}, source.Streams{}); err == nil {
		t.Error("started what is not there")
	}
}

type writer func([]byte)

func (w writer) Write(p []byte) (int, error) { w(p); return len(p), nil }
