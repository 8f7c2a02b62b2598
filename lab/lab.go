// Package lab starts a real Slurm cluster on this machine: munge, slurmctld
// and as many slurmd as wanted, on loopback, in a temporary folder, as root or
// as an ordinary user, without any configuration and beside whatever else runs
// here. Everything is removed by [Cluster.Stop], and also when the process
// that started it crashes.
//
// It is test infrastructure: the end-to-end tests and the benchmarks run on it.
package lab

import (
	"bytes"
	"context"
	"crypto/rand"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

//go:embed reap.sh
var reapScript string

// Prefix is the start of the name of each lab's folder in the temporary folder.
const Prefix = "ncclinic-lab-"

// Options describe a cluster. The zero value is four nodes with two GPUs each.
type Options struct {
	Nodes       int    // slurmd processes; 0 means 4
	GPUsPerNode int    // stand-in GPUs of each node; 0 means 2, below 0 none
	GPUType     string // type name of the GPUs; "" means a100
	CPUsPerNode int    // CPUs that a node claims; 0 means 16
	MemoryMiB   int    // memory that a node claims; 0 means 64000
	NodePrefix  string // nodes are PREFIX1, PREFIX2 …; "" means n

	Conf      []string          // lines of slurm.conf; a key given here replaces the lab's own
	Plugstack []string          // lines of plugstack.conf
	Files     map[string]string // more files in the configuration folder, such as cli_filter.lua or topology.conf; "#!" makes one executable
	Env       []string          // NAME=value for the daemons

	// Accounting starts MariaDB and slurmdbd too, so that sacct knows jobs and
	// their memory; it costs a few seconds.
	Accounting bool
	// Memory puts jobs into memory cgroups, so that the kernel kills what is over
	// its --mem. It takes root and a mounted memory controller (version 1), see
	// MissingMemory.
	Memory bool

	// Detach leaves the cluster running when the starter ends; Down removes it.
	Detach bool
	// StartTimeout bounds the start; 0 means 60 s.
	StartTimeout time.Duration
}

func (o *Options) defaults() {
	def := func(p *int, v int) {
		if *p == 0 {
			*p = v
		}
	}
	def(&o.Nodes, 4)
	def(&o.GPUsPerNode, 2)
	def(&o.CPUsPerNode, 16)
	def(&o.MemoryMiB, 64000)
	o.GPUsPerNode = max(o.GPUsPerNode, 0)
	if o.GPUType == "" {
		o.GPUType = "a100"
	}
	if o.NodePrefix == "" {
		o.NodePrefix = "n"
	}
	if o.StartTimeout == 0 {
		o.StartTimeout = 60 * time.Second
	}
}

// Cluster is a running cluster.
type Cluster struct {
	Dir   string   // folder of the lab: slurm.conf, log/, work/, home/
	Name  string   // ClusterName
	Nodes []string // names of the nodes

	opts    Options
	reaper  *exec.Cmd
	hold    io.Closer // the reaper's standard input: closing it ends the lab
	stopped bool
}

// Tools are the programs that a lab needs.
var tools = []string{"munged", "slurmctld", "slurmd", "srun", "sbatch", "scontrol", "sinfo"}

// Missing names the programs that a lab needs and that this machine lacks.
func Missing() []string {
	var missing []string
	for _, t := range tools {
		if find(t) == "" {
			missing = append(missing, t)
		}
	}
	return missing
}

// find looks up a program on PATH and in the sbin folders, which ordinary
// users do not have on theirs.
func find(name string) string {
	if p, err := exec.LookPath(name); err == nil {
		return p
	}
	for _, d := range []string{"/usr/sbin", "/sbin", "/usr/local/sbin"} {
		if p, err := exec.LookPath(filepath.Join(d, name)); err == nil {
			return p
		}
	}
	return ""
}

// Start starts a cluster and returns when all of its nodes are idle. It first
// removes what crashed labs of this user left behind.
func Start(ctx context.Context, opts Options) (*Cluster, error) {
	if m := Missing(); len(m) > 0 {
		return nil, fmt.Errorf("lab: %s not found; lab/deps.sh installs what is needed", strings.Join(m, ", "))
	}
	opts.defaults()
	if err := Sweep(ctx); err != nil {
		return nil, err
	}
	var err error
	// A port that was free a moment ago may be taken when the daemon binds it.
	for range 3 {
		var c *Cluster
		if c, err = start(ctx, opts); err == nil {
			return c, nil
		}
		if !errors.Is(err, errPort) {
			break
		}
	}
	return nil, err
}

var errPort = errors.New("a port was taken")

func start(ctx context.Context, opts Options) (_ *Cluster, err error) {
	ctx, cancel := context.WithTimeout(ctx, opts.StartTimeout)
	defer cancel()

	// Paths of Unix sockets are short: not below a test's own long folder.
	dir, err := os.MkdirTemp("", Prefix)
	if err != nil {
		return nil, fmt.Errorf("lab: %w", err)
	}
	c := &Cluster{Dir: dir, opts: opts, Name: strings.ToLower(strings.TrimPrefix(filepath.Base(dir), "ncclinic-"))}
	c.Name = strings.ReplaceAll(c.Name, "-", "")
	if err := c.guard(); err != nil {
		os.RemoveAll(dir)
		return nil, fmt.Errorf("lab: %w", err)
	}
	defer func() {
		if err != nil {
			err = c.explain(err)
			c.end()
		}
	}()
	// Other users reach slurm.conf and the socket of root's lab.
	if err := os.Chmod(dir, 0o755); err != nil {
		return nil, err
	}

	conf := config{Options: opts, dir: dir, cluster: c.Name}
	if conf.host, err = os.Hostname(); err != nil {
		return nil, err
	}
	conf.host, _, _ = strings.Cut(conf.host, ".")
	if conf.user, err = currentUser(); err != nil {
		return nil, err
	}
	if conf.nodePort, err = freePorts(opts.Nodes + 1); err != nil {
		return nil, err
	}
	conf.ctldPort = conf.nodePort + opts.Nodes
	for i := range opts.Nodes {
		conf.nodes = append(conf.nodes, fmt.Sprintf("%s%d", opts.NodePrefix, i+1))
	}
	c.Nodes = conf.nodes
	var acct *accounting
	if opts.Accounting {
		if acct, err = newAccounting(); err != nil {
			return nil, err
		}
		conf.own = append(conf.own, acct.conf(c.path("run", "munge.socket"))...)
	}
	if opts.Memory {
		conf.own = append(conf.own, memoryConf...)
	}
	if err := conf.write(); err != nil {
		return nil, err
	}
	if err := c.startMunge(ctx); err != nil {
		return nil, err
	}
	if acct != nil {
		if err := c.startAccounting(ctx, acct, &conf); err != nil {
			return nil, err
		}
	}
	if err := c.daemon("slurmctld", find("slurmctld"), "-D", "-i", "-f", conf.path("slurm.conf")); err != nil {
		return nil, err
	}
	for _, n := range conf.nodes {
		if err := c.daemon(n, find("slurmd"), "-D", "-N", n, "-f", conf.path("slurm.conf")); err != nil {
			return nil, err
		}
	}
	if err := c.waitIdle(ctx); err != nil {
		return nil, err
	}
	return c, nil
}

// guard starts the reaper: a shell that sleeps until this process closes the
// pipe or dies, and then ends the lab. It holds a lock, so that Sweep can tell
// a lab that is in use from one whose reaper was killed as well.
func (c *Cluster) guard() error {
	if c.opts.Detach {
		return os.WriteFile(filepath.Join(c.Dir, "detached"), nil, 0o644)
	}
	lock, err := os.OpenFile(filepath.Join(c.Dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	defer lock.Close()
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return err
	}
	cmd := reapCommand(c.Dir, c.Name)
	cmd.ExtraFiles = []*os.File{lock}
	hold, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	c.reaper, c.hold = cmd, hold
	return nil
}

func reapCommand(dir, cluster string) *exec.Cmd {
	cmd := exec.Command("/bin/sh", "-c", reapScript, "reap.sh", dir, cluster)
	cmd.Dir = "/"
	// Out of the starter's process group: Ctrl-C must not reach it.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	cmd.Env = []string{"PATH=/usr/bin:/bin", "LC_ALL=C"}
	return cmd
}

// Stop kills every process of the cluster, running jobs included, and removes
// its folder. A second call does nothing.
func (c *Cluster) Stop() error {
	if c.stopped {
		return nil
	}
	c.stopped = true
	return c.end()
}

func (c *Cluster) end() error {
	if c.reaper == nil {
		return Down(c.Dir)
	}
	c.hold.Close()
	if err := c.reaper.Wait(); err != nil {
		return fmt.Errorf("lab: %s was not removed: %w", c.Dir, err)
	}
	return nil
}

// Down ends a lab by its folder, as Stop does. It is meant for detached labs
// and for what crashed ones left.
func Down(dir string) error {
	base := filepath.Base(dir)
	if !filepath.IsAbs(dir) || !strings.HasPrefix(base, Prefix) {
		return fmt.Errorf("lab: %s is not the folder of a lab", dir)
	}
	name := strings.ReplaceAll(strings.ToLower(strings.TrimPrefix(base, "ncclinic-")), "-", "")
	if out, err := reapCommand(dir, name).CombinedOutput(); err != nil {
		return fmt.Errorf("lab: %s was not removed: %w: %s", dir, err, out)
	}
	return nil
}

// Sweep removes the labs of this user whose starter and reaper are both gone.
func Sweep(ctx context.Context) error {
	dirs, err := filepath.Glob(filepath.Join(os.TempDir(), Prefix+"*"))
	if err != nil {
		return err
	}
	for _, dir := range dirs {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		st, err := os.Stat(dir)
		if err != nil || !st.IsDir() || st.Sys().(*syscall.Stat_t).Uid != uint32(os.Getuid()) {
			continue
		}
		if _, err := os.Stat(filepath.Join(dir, "detached")); err == nil {
			continue
		}
		lock, err := os.Open(filepath.Join(dir, "lock"))
		if err != nil {
			// Another Start is between the folder and its lock, or died there.
			if time.Since(st.ModTime()) > time.Minute {
				os.RemoveAll(dir)
			}
			continue
		}
		free := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil
		lock.Close()
		if free {
			if err := Down(dir); err != nil {
				return err
			}
		}
	}
	return nil
}

func (c *Cluster) path(elem ...string) string {
	return filepath.Join(append([]string{c.Dir}, elem...)...)
}

func (c *Cluster) startMunge(ctx context.Context) error {
	key := make([]byte, 128)
	rand.Read(key)
	if err := os.WriteFile(c.path("run", "munge.key"), key, 0o400); err != nil {
		return err
	}
	sock := c.path("run", "munge.socket")
	// --force: the folder is below a world-writable one.
	err := c.daemon("munged", find("munged"), "--foreground", "--force",
		"--socket="+sock,
		"--key-file="+c.path("run", "munge.key"),
		"--pid-file="+c.path("run", "munged.pid"),
		"--seed-file="+c.path("run", "munged.seed"),
		"--log-file="+c.path("log", "munged.log"),
		"--num-threads=4")
	if err != nil {
		return err
	}
	for {
		if conn, err := net.Dial("unix", sock); err == nil {
			return conn.Close()
		}
		if err := sleep(ctx, 5*time.Millisecond); err != nil {
			return fmt.Errorf("munged does not answer: %w", err)
		}
	}
}

// daemon starts a daemon in the foreground of a session of its own.
func (c *Cluster) daemon(name, exe string, args ...string) error {
	log, err := os.OpenFile(c.path("log", name+".out"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return err
	}
	defer log.Close()
	cmd := exec.Command(exe, args...)
	cmd.Dir = c.Dir
	cmd.Stdout, cmd.Stderr = log, log
	cmd.Env = append(c.baseEnv(), c.opts.Env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	mark := fmt.Sprintf("%d %s\n", cmd.Process.Pid, startTime(cmd.Process.Pid))
	go cmd.Wait() // collect the zombie; the log says why it ended
	return os.WriteFile(c.path("pids", name), []byte(mark), 0o644)
}

// startTime is the 22nd field of /proc/PID/stat: with the number it names a process for good.
func startTime(pid int) string {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return ""
	}
	f := bytes.Fields(b[bytes.LastIndexByte(b, ')')+1:])
	if len(f) < 20 {
		return ""
	}
	return string(f[19])
}

func (c *Cluster) baseEnv() []string {
	return []string{
		"PATH=/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin",
		"LC_ALL=C.UTF-8",
		"HOME=" + c.path("home"),
		"SLURM_CONF=" + c.path("slurm.conf"),
		c.mark(),
	}
}

// mark is the variable by which the reaper knows the lab's processes.
func (c *Cluster) mark() string { return "NCCLINIC_LAB=" + c.Dir }

// waitIdle returns when slurmctld says that every node is idle.
func (c *Cluster) waitIdle(ctx context.Context) error {
	var last string
	for {
		out, _ := c.Command(ctx, "sinfo", "--noheader", "--Node", "--format=%N=%t").CombinedOutput()
		last = strings.TrimSpace(string(out))
		idle := map[string]bool{} // a node stands there once for each partition
		for _, f := range strings.Fields(last) {
			if n, ok := strings.CutSuffix(f, "=idle"); ok {
				idle[n] = true
			}
		}
		if len(idle) == len(c.Nodes) {
			return nil
		}
		if err := c.dead(); err != nil {
			return err
		}
		if err := sleep(ctx, 20*time.Millisecond); err != nil {
			return fmt.Errorf("%d of %d nodes are idle: %w; sinfo: %s", len(idle), len(c.Nodes), err, last)
		}
	}
}

// dead returns an error that names the daemon that ended, if one did.
func (c *Cluster) dead() error {
	for _, name := range append([]string{"munged", "mariadbd", "slurmdbd", "slurmctld"}, c.Nodes...) {
		b, err := os.ReadFile(c.path("pids", name))
		if err != nil {
			continue
		}
		pid, start, _ := strings.Cut(strings.TrimSpace(string(b)), " ")
		n, err := strconv.Atoi(pid)
		if err == nil && startTime(n) != start {
			return fmt.Errorf("%s ended", name)
		}
	}
	return nil
}

// explain adds the ends of the daemons' logs to an error of the start.
func (c *Cluster) explain(err error) error {
	var b strings.Builder
	logs, _ := filepath.Glob(c.path("log", "*"))
	for _, l := range logs {
		text, e := os.ReadFile(l)
		if e != nil || len(text) == 0 {
			continue
		}
		if bytes.Contains(text, []byte("Address already in use")) {
			err = fmt.Errorf("%w: %w", errPort, err)
		}
		if len(text) > 1500 {
			text = text[len(text)-1500:]
		}
		if b.Len() < 8000 {
			fmt.Fprintf(&b, "\n== %s\n%s", filepath.Base(l), text)
		}
	}
	return fmt.Errorf("lab: %w%s", err, b.String())
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}

// freePorts finds n ports in a row that nobody listens on, below the range
// that the kernel hands out for outgoing connections.
func freePorts(n int) (int, error) {
	const lo, hi = 12000, 32000
	var r [2]byte
	for range 100 {
		rand.Read(r[:])
		base := lo + (int(r[0])<<8|int(r[1]))%(hi-lo-n)
		if portsFree(base, n) {
			return base, nil
		}
	}
	return 0, fmt.Errorf("no %d free ports in a row between %d and %d", n, lo, hi)
}

func portsFree(base, n int) bool {
	for p := base; p < base+n; p++ {
		l, err := net.Listen("tcp", fmt.Sprintf(":%d", p))
		if err != nil {
			return false
		}
		l.Close()
	}
	return true
}

// Detached lists the folders of this user's labs that were left running on purpose.
func Detached() ([]string, error) {
	marks, err := filepath.Glob(filepath.Join(os.TempDir(), Prefix+"*", "detached"))
	var dirs []string
	for _, m := range marks {
		if st, err := os.Stat(m); err == nil && st.Sys().(*syscall.Stat_t).Uid == uint32(os.Getuid()) {
			dirs = append(dirs, filepath.Dir(m))
		}
	}
	return dirs, err
}
