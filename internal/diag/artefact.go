package diag

import "slices"

// nodeNeeds are needs that a node or a job meets and no artefact; packageNeeds
// those that an interpreter and its surroundings meet, which packages alone are without.
var (
	nodeNeeds    = []string{"node", "limits", "shm", "ifaces", "rdma", "slurm-job", "nodes", "live"}
	packageNeeds = []string{"python", "loads"}
	nodeReasons  = []string{
		"nodes were not connected with each other", "the PCI bus was not seen: an environment without its machine",
		"outside a job: what a login node has says nothing about the compute nodes", "nvidia-smi was not run",
		"inside a container variables of the host's environment mean nothing", "the plugins of the compute node were not looked at",
		"nvidia-smi did not say which GPUs this process can open", "neither nvidia-smi nor the device files were observed",
		"neither libcuda nor the device files were observed", "device files were not looked at", "/dev/infiniband was not looked at",
		"the architecture of the host or of torch is not known", "the Slurm version is not known", "the version of libcuda is not known",
	}
	packageReasons = []string{"no extension was examined"}
)

// ForNode says of the reason why a rule was skipped for an artefact that only a
// node or a job could have met it; with packages, that packages alone cannot.
func ForNode(why string, packages bool) bool {
	has := func(words, fixed []string) bool {
		return slices.Contains(fixed, why) || slices.ContainsFunc(words, func(w string) bool { return needs[w].why == why })
	}
	return has(nodeNeeds, nodeReasons) || packages && has(packageNeeds, packageReasons)
}

// ForGPU says of the reason why a rule was skipped that it needs a driver or a GPU,
// which may be named for an artefact.
func ForGPU(why string) bool { return why == needs["driver"].why || why == needs["gpus"].why }
