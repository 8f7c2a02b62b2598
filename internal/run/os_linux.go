package run

import (
	"bytes"
	"fmt"
	"io/fs"
	"math/bits"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"unsafe"

	"github.com/ncclinic/ncclinic/internal/fact"
	"github.com/ncclinic/ncclinic/internal/source"
)

func ownGroup(cmd *exec.Cmd) {
	// A session of its own is a process group of its own too, and has no
	// terminal that it could ask for a password.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
}

// dieWithParent asks the kernel to send SIGTERM when the calling thread ends.
func dieWithParent(cmd *exec.Cmd) { cmd.SysProcAttr.Pdeathsig = syscall.SIGTERM }

// apart puts a command into a process group of its own on the same terminal.
func apart(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// interruptGroup asks a command that is apart, and what it started, to stop.
func interruptGroup(cmd *exec.Cmd) error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGINT) }

func killGroup(cmd *exec.Cmd) { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }

// root is the file system of this machine. Opening never blocks and never
// touches a device: a FIFO would hang, a GPU's device node would wake the GPU.
type root struct {
	fs.FS
}

func rootFS() fs.FS { return root{os.DirFS("/")} }

func (r root) Open(name string) (fs.File, error) {
	if !fs.ValidPath(name) {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrInvalid}
	}
	p := "/" + name
	if name == "." {
		p = "/"
	}
	st, err := os.Stat(p)
	if err != nil {
		return nil, err
	}
	if !st.Mode().IsRegular() && !st.IsDir() {
		return nil, &fs.PathError{Op: "open", Path: p, Err: fmt.Errorf("not a regular file (%s)", st.Mode().Type())}
	}
	// O_NONBLOCK: should it have become a FIFO since, it still does not hang.
	return os.OpenFile(p, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOCTTY, 0)
}

func (r root) ReadLink(name string) (string, error)       { return fs.ReadLink(r.FS, name) }
func (r root) Lstat(name string) (fs.FileInfo, error)     { return fs.Lstat(r.FS, name) }
func (r root) Stat(name string) (fs.FileInfo, error)      { return fs.Stat(r.FS, name) }
func (r root) ReadDir(name string) ([]fs.DirEntry, error) { return fs.ReadDir(r.FS, name) }

func passwdHome() string {
	b, err := source.ReadFile(rootFS(), "/etc/passwd", 4<<20)
	if err != nil {
		return ""
	}
	uid := strconv.Itoa(os.Getuid())
	for _, l := range strings.Split(string(b), "\n") {
		if f := strings.Split(l, ":"); len(f) > 5 && f[2] == uid {
			return f[5]
		}
	}
	return ""
}

type linux struct{}

func newOS() source.OS { return linux{} }

// fsTypes names the magic numbers of statfs(2) that matter here.
var fsTypes = map[int64]string{0x01021994: "tmpfs", 0xEF53: "ext", 0x58465342: "xfs", 0x6969: "nfs", 0x0BD00BD0: "lustre",
	0x794C7630: "overlay", 0x858458F6: "ramfs", 0x47504653: "gpfs", 0x19830326: "fhgfs", 0x73717368: "squashfs", 0x65735546: "fuse"}

// Statfs implements source.OS. Free is what an ordinary user may still use.
func (linux) Statfs(p string) (fact.FSUsage, error) {
	var st syscall.Statfs_t
	for {
		err := syscall.Statfs(p, &st)
		if err == syscall.EINTR {
			continue
		}
		if err != nil {
			return fact.FSUsage{}, &fs.PathError{Op: "statfs", Path: p, Err: err}
		}
		break
	}
	u := fact.FSUsage{Path: p, Type: fsTypes[int64(uint32(st.Type))]}
	u.Total = int64(st.Blocks) * int64(st.Bsize)
	u.Free = int64(st.Bavail) * int64(st.Bsize)
	return u, nil
}

// maxIfaces bounds what is listed: hosts of many containers have thousands.
const maxIfaces = 512

// Interfaces implements source.OS.
func (linux) Interfaces() ([]fact.Iface, error) {
	all, err := net.Interfaces()
	if err != nil {
		return nil, err
	}
	if len(all) > maxIfaces {
		all = all[:maxIfaces]
	}
	out := make([]fact.Iface, 0, len(all))
	for _, i := range all {
		f := fact.Iface{Name: i.Name, Up: i.Flags&net.FlagUp != 0, Loop: i.Flags&net.FlagLoopback != 0, MTU: i.MTU}
		f.NoCarrier = f.Up && i.Flags&net.FlagRunning == 0
		addrs, err := i.Addrs()
		if err != nil {
			continue // it went away meanwhile
		}
		for _, a := range addrs {
			f.Addrs = append(f.Addrs, a.String())
		}
		out = append(out, f)
	}
	return out, nil
}

// Uname implements source.OS.
func (linux) Uname() (release, machine string, err error) {
	var u syscall.Utsname
	if err := syscall.Uname(&u); err != nil {
		return "", "", err
	}
	return utsString(u.Release[:]), utsString(u.Machine[:]), nil
}

func utsString[T int8 | uint8](b []T) string {
	raw := make([]byte, len(b))
	for i, c := range b {
		raw[i] = byte(c)
	}
	raw, _, _ = bytes.Cut(raw, []byte{0})
	return string(raw)
}

// Access implements source.OS with access(2), which opens nothing.
func (linux) Access(p string) error {
	const rOK, wOK = 4, 2
	return syscall.Access(p, rOK|wOK)
}

// CPUs implements source.OS with sched_getaffinity(2). (runtime.NumCPU asks the
// same, but only up to 8192 CPUs and only once.)
func (linux) CPUs() int {
	var mask [1024]uint64
	n, _, e := syscall.RawSyscall(syscall.SYS_SCHED_GETAFFINITY, 0, unsafe.Sizeof(mask), uintptr(unsafe.Pointer(&mask[0])))
	if e != 0 {
		return runtime.NumCPU()
	}
	cpus := 0
	for _, w := range mask[:(int(n)+7)/8] {
		cpus += bits.OnesCount64(w)
	}
	return cpus
}
