//go:build !linux

package run

import (
	"errors"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"runtime"

	"github.com/ncclinic/ncclinic/internal/fact"
	"github.com/ncclinic/ncclinic/internal/source"
)

// Elsewhere than on Linux there is no NCCL to look for: files, scripts and
// logs are still judged, the node is not.

func ownGroup(*exec.Cmd) {}

func dieWithParent(*exec.Cmd) {}

func apart(*exec.Cmd) {}

func interruptGroup(cmd *exec.Cmd) error { return cmd.Process.Signal(os.Interrupt) }

func killGroup(cmd *exec.Cmd) { _ = cmd.Process.Kill() }

func rootFS() fs.FS { return os.DirFS("/") }

func passwdHome() string {
	h, _ := os.UserHomeDir()
	return h
}

type other struct{}

func newOS() source.OS { return other{} }

func (other) Statfs(string) (fact.FSUsage, error) { return fact.FSUsage{}, errors.ErrUnsupported }
func (other) Access(string) error                 { return errors.ErrUnsupported }
func (other) CPUs() int                           { return runtime.NumCPU() }

func (other) Uname() (release, machine string, err error) {
	return "", map[string]string{"amd64": "x86_64"}[runtime.GOARCH], nil
}

func (other) Interfaces() ([]fact.Iface, error) {
	all, err := net.Interfaces()
	if err != nil {
		return nil, err
	}
	var out []fact.Iface
	for _, i := range all {
		out = append(out, fact.Iface{Name: i.Name, Up: i.Flags&net.FlagUp != 0, Loop: i.Flags&net.FlagLoopback != 0, MTU: i.MTU})
	}
	return out, nil
}
