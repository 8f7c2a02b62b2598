package lab

import (
	"os"
)

// memoryConf and memoryCgroup make slurmd put jobs into memory cgroups.
var memoryConf = []string{
	"TaskPlugin=task/cgroup",
	"SelectTypeParameters=CR_Core_Memory",
	"DefMemPerCPU=200",
	"JobAcctGatherParams=NoOverMemoryKill",
}

const memoryCgroup = "CgroupMountpoint=/sys/fs/cgroup\nConstrainRAMSpace=yes\nConstrainSwapSpace=yes\nAllowedSwapSpace=0\n"

// MissingMemory says what keeps Options.Memory from working here, "" for nothing.
func MissingMemory() string {
	if os.Getuid() != 0 {
		return "root"
	}
	if _, err := os.Stat("/sys/fs/cgroup/memory/memory.limit_in_bytes"); err != nil {
		return "a memory controller of cgroups version 1 at /sys/fs/cgroup/memory"
	}
	probe := "/sys/fs/cgroup/memory/" + Prefix + "probe"
	if err := os.Mkdir(probe, 0o755); err != nil {
		return "a writable /sys/fs/cgroup/memory"
	}
	if err := os.Remove(probe); err != nil {
		return "a writable /sys/fs/cgroup/memory"
	}
	return ""
}
