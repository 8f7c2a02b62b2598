package fact

// Target is the artefact that a bundle was read from: a wheel, an image, an
// archive. It is empty for a live environment.
type Target struct {
	Kind string `json:"kind,omitempty"` // wheel, conda, environment, site-packages, rootfs, oci, docker, sif, squashfs, library
	Path string `json:"path,omitempty"` // as it was named
	// Platform is the one that was looked at, linux/x86_64; Platforms are all that the image has.
	Platform   string   `json:"platform,omitempty"`
	Platforms  []string `json:"platforms,omitempty"`
	Entrypoint []string `json:"entrypoint,omitempty"` // command line that an image starts
	EnvAt      string   `json:"envAt,omitempty"`      // where an image keeps its environment
	Tags       []string `json:"tags,omitempty"`       // of a wheel: cp311-cp311-manylinux1_x86_64
	Requires   string   `json:"requires,omitempty"`   // of a wheel: Requires-Python
	Wants      []string `json:"wants,omitempty"`      // of a CUDA wheel: Requires-Dist of NVIDIA's packages, nvidia-nccl-cu12==2.21.5
	// MinDriver is the least NVIDIA driver for the CUDA family of its torch, from the tables.
	MinDriver string `json:"minDriver,omitempty"`
	// Compat is NVIDIA's forward compatibility package in an image, wherever the loader
	// looks; whether it is taken depends on how the container is started. Absent: none.
	Compat Val[LibCUDA] `json:"compat,omitzero"`
	// Node says whose driver and GPUs stand in Node: the path of a bundle, "here", or
	// "flags"; empty: no node was named.
	Node string `json:"node,omitempty"`
	Size int64  `json:"size,omitempty"` // bytes of the artefact
	Read int64  `json:"read,omitempty"` // bytes of it that were read
}

// IsImage reports whether the artefact is a root file system.
func (t *Target) IsImage() bool {
	switch t.Kind {
	case "rootfs", "oci", "docker", "sif", "squashfs":
		return true
	}
	return false
}
