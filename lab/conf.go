package lab

import (
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"strings"
)

// config is what the files of one cluster are written from.
type config struct {
	Options
	dir      string // folder of the lab
	cluster  string // ClusterName, also the mark of the tasks of jobs
	host     string // this machine's name: slurmctld only starts on the host it is configured for
	user     string
	ctldPort int
	nodePort int // port of the first slurmd; the others follow
	nodes    []string
	own      []string // lines of parts that the lab starts too; they replace the common ones
}

func (c *config) path(elem ...string) string {
	return filepath.Join(append([]string{c.dir}, elem...)...)
}

// write creates the folders and the configuration files of the cluster.
func (c *config) write() error {
	for _, d := range []string{"log", "state", "pids", "dev", "home", "work", "run"} {
		if err := os.MkdirAll(c.path(d), 0o755); err != nil {
			return err
		}
	}
	for _, n := range c.nodes {
		if err := os.MkdirAll(c.path("spool", n), 0o755); err != nil {
			return err
		}
	}
	for i := range c.GPUsPerNode {
		// slurmd wants a character device, which only root can make; a link to
		// one will do. The number at the end of the name is the GPU's index.
		if err := os.Symlink("/dev/null", c.path("dev", fmt.Sprintf("nvidia%d", i))); err != nil {
			return err
		}
	}
	// The lab of root serves all users of the machine, so their jobs may write here.
	if err := os.Chmod(c.path("work"), 0o1777); err != nil {
		return err
	}
	files := map[string]string{
		"slurm.conf":     c.slurmConf(),
		"gres.conf":      c.gresConf(),
		"plugstack.conf": lines(c.Plugstack),
		// Nothing here uses cgroups, but slurmd looks for them when it starts
		// and ends where none are mounted or systemd is not there to make one.
		// The version 1 plugin does nothing until it is used.
		"cgroup.conf": "CgroupAutomount=no\nCgroupPlugin=cgroup/v1\n",
	}
	if c.Memory {
		files["cgroup.conf"] += memoryCgroup
	}
	for name, text := range c.Files {
		files[name] = text
	}
	for name, text := range files {
		p := c.path(name)
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			return err
		}
		mode := os.FileMode(0o644)
		if strings.HasPrefix(text, "#!") {
			mode = 0o755
		}
		if err := os.WriteFile(p, []byte(text), mode); err != nil {
			return err
		}
	}
	return nil
}

func lines(s []string) string {
	if len(s) == 0 {
		return ""
	}
	return strings.Join(s, "\n") + "\n"
}

// nodeRange is the Slurm hostlist expression of all nodes.
func (c *config) nodeRange() string {
	return fmt.Sprintf("%s[1-%d]", c.NodePrefix, c.Nodes)
}

func (c *config) gresConf() string {
	if c.GPUsPerNode == 0 {
		return ""
	}
	file := "nvidia0"
	if c.GPUsPerNode > 1 {
		file = fmt.Sprintf("nvidia[0-%d]", c.GPUsPerNode-1)
	}
	return fmt.Sprintf("NodeName=%s Name=gpu Type=%s Flags=nvidia_gpu_env File=%s\n", c.nodeRange(), c.GPUType, c.path("dev", file))
}

func (c *config) slurmConf() string {
	gres := ""
	if c.GPUsPerNode > 0 {
		gres = fmt.Sprintf(" Gres=gpu:%s:%d", c.GPUType, c.GPUsPerNode)
	}
	own := []string{
		"ClusterName=" + c.cluster,
		fmt.Sprintf("SlurmctldHost=%s(127.0.0.1)", c.host),
		fmt.Sprintf("SlurmctldPort=%d", c.ctldPort),
		"SlurmUser=" + c.user,
		"SlurmdUser=" + c.user,
		"AuthType=auth/munge",
		"CredType=cred/munge",
		"AuthInfo=socket=" + c.path("run", "munge.socket"),
		"StateSaveLocation=" + c.path("state"),
		"SlurmdSpoolDir=" + c.path("spool", "%n"),
		"SlurmctldPidFile=" + c.path("run", "slurmctld.pid"),
		"SlurmdPidFile=" + c.path("run", "%n.pid"),
		"SlurmctldLogFile=" + c.path("log", "slurmctld.log"),
		"SlurmdLogFile=" + c.path("log", "%n.log"),
		"PlugStackConfig=" + c.path("plugstack.conf"),
		"GresTypes=gpu",
		"SelectType=select/cons_tres",
		"SelectTypeParameters=CR_Core",
		"ProctrackType=proctrack/linuxproc",
		"TaskPlugin=task/none",
		"SwitchType=switch/none",
		"MpiDefault=none",
		"JobAcctGatherType=jobacct_gather/none",
		"JobCompType=jobcomp/none",
		"AccountingStorageType=accounting_storage/none",
		"MailProg=/bin/true",
		"ReturnToService=2",
		// The nodes claim more CPUs and memory than this machine has.
		"SlurmdParameters=config_overrides",
		"SchedulerType=sched/backfill",
		"SchedulerParameters=batch_sched_delay=0,sched_min_interval=0,bf_interval=1",
		"KillWait=2",
		"MinJobAge=3600",
		"InactiveLimit=0",
		"SlurmctldTimeout=30",
		"SlurmdTimeout=300",
		"ResumeTimeout=30",
		"TreeWidth=64",
		"SlurmctldDebug=info",
		"SlurmdDebug=info",
	}
	node := fmt.Sprintf("NodeName=%s NodeHostname=%s NodeAddr=127.0.0.1 Port=[%d-%d] CPUs=%d RealMemory=%d%s State=UNKNOWN",
		c.nodeRange(), c.host, c.nodePort, c.nodePort+c.Nodes-1, c.CPUsPerNode, c.MemoryMiB, gres)
	part := fmt.Sprintf("PartitionName=gpu Nodes=%s Default=YES MaxTime=INFINITE State=UP OverSubscribe=NO", c.nodeRange())

	// Slurm takes the last line of a key, except where a key may be repeated:
	// a key that the caller sets is left out of ours.
	given := keys(c.Conf)
	parts := keys(c.own)
	var b strings.Builder
	for _, l := range append(own, node, part) {
		if k := key(l); !given[k] && !parts[k] {
			b.WriteString(l + "\n")
		}
	}
	for _, l := range c.own {
		if !given[key(l)] {
			b.WriteString(l + "\n")
		}
	}
	b.WriteString(lines(c.Conf))
	return b.String()
}

// key is the key of a line of slurm.conf, in lower case.
func key(line string) string {
	k, _, _ := strings.Cut(line, "=")
	return strings.ToLower(strings.TrimSpace(k))
}

func keys(lines []string) map[string]bool {
	out := map[string]bool{}
	for _, l := range lines {
		out[key(l)] = true
	}
	return out
}

func currentUser() (string, error) {
	u, err := user.Current()
	if err != nil {
		return "", err
	}
	return u.Username, nil
}
