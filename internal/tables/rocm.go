package tables

import (
	"slices"
	"strings"

	"github.com/ncclinic/ncclinic/internal/lazyre"
)

// rocmTags are the ROCm builds of torch's releases on the PyTorch index, oldest
// first. There are none for aarch64.
//
// Source: pytorch.org, "Previous versions", commands of 2.4.1 to 2.10.0; for
// 2.11 the same page as notebooks quote it, for 2.12 to 2.14 torch.__version__
// of installations from that index (2.13.0+rocm7.2, 2.14.0+rocm7.2); read
// 2026-11-30. 2.15 was not verified.
var rocmTags = map[string]string{
	"2.4": "rocm6.1", "2.5": "rocm6.1 rocm6.2", "2.6": "rocm6.1 rocm6.2.4", "2.7": "rocm6.3",
	"2.8": "rocm6.4", "2.9": "rocm6.4", "2.10": "rocm7.1", "2.11": "rocm7.2",
	"2.12": "rocm7.2", "2.13": "rocm7.2", "2.14": "rocm7.2",
}

// rocmArchs are the GPUs that the wheels of a ROCm version have kernels for.
//
// Source: torch.cuda.get_arch_list() of the wheels, as uv keeps it in
// crates/uv-torch/src/backend.rs (LINUX_AMD_GPU_DRIVERS), read 2026-11-30.
var rocmArchs = map[string]string{
	"7.2":   "gfx900 gfx906 gfx908 gfx90a gfx942 gfx950 gfx1030 gfx1100 gfx1101 gfx1102 gfx1150 gfx1151 gfx1200 gfx1201",
	"7.1":   "gfx900 gfx906 gfx908 gfx90a gfx942 gfx950 gfx1030 gfx1100 gfx1101 gfx1102 gfx1200 gfx1201",
	"6.4":   "gfx900 gfx906 gfx908 gfx90a gfx942 gfx1030 gfx1100 gfx1101 gfx1102 gfx1200 gfx1201",
	"6.3":   "gfx900 gfx906 gfx908 gfx90a gfx942 gfx1030 gfx1100 gfx1101 gfx1102 gfx1200 gfx1201",
	"6.2.4": "gfx900 gfx906 gfx908 gfx90a gfx942 gfx1030 gfx1100 gfx1101 gfx1102 gfx1200 gfx1201",
	"6.2":   "gfx900 gfx906 gfx908 gfx90a gfx942 gfx1030 gfx1100",
	"6.1":   "gfx900 gfx906 gfx908 gfx90a gfx942 gfx1030 gfx1100 gfx1101",
}

var gfxName = lazyre.New(`(?i)\bgfx[0-9a-f]{3,4}\b`)

// gfxTable gives the architecture of AMD's accelerators by product name.
//
// Source: ROCm, "Accelerator and GPU hardware specifications", read 2026-11-30.
var gfxTable = []struct {
	re  *lazyre.Regexp
	gfx string
}{
	{lazyre.New(`(?i)\bMI35[05]X?\b`), "gfx950"},
	{lazyre.New(`(?i)\bMI(300[AXC]?|308X?|325X?)\b`), "gfx942"},
	{lazyre.New(`(?i)\bMI2[15]0X?\b`), "gfx90a"},
	{lazyre.New(`(?i)\bMI100\b`), "gfx908"},
	{lazyre.New(`(?i)\b(MI50|MI60|VII)\b`), "gfx906"},
	{lazyre.New(`(?i)\bMI25\b`), "gfx900"},
	{lazyre.New(`(?i)\b(RX ?9070(XT)?|R9700)\b`), "gfx1201"},
	{lazyre.New(`(?i)\bRX ?9060(XT)?\b`), "gfx1200"},
	{lazyre.New(`(?i)\b(RX ?7900(XTX?|GRE)?|W7[89]00)\b`), "gfx1100"},
	{lazyre.New(`(?i)\b(RX ?6[89][05]0(XT)?|W6800X?)\b`), "gfx1030"},
}

// GFX gives the architecture of an AMD GPU by its name, "" when not known.
func GFX(name string) string {
	if g := gfxName.FindString(name); g != "" {
		return strings.ToLower(g)
	}
	n := spaced(name)
	for _, g := range gfxTable {
		if g.re.MatchString(n) {
			return g.gfx
		}
	}
	return ""
}

// ROCmTags lists the ROCm builds of a torch release, oldest first, nil when not known.
func ROCmTags(version string) []string {
	return strings.Fields(rocmTags[Minor(version)])
}

// TagROCm turns rocm6.2.4 into 6.2.4, "" for anything else.
func TagROCm(tag string) string {
	v, ok := strings.CutPrefix(tag, "rocm")
	if !ok || !numeric(v) || !strings.Contains(v, ".") {
		return ""
	}
	return v
}

// ROCmArchs lists the GPUs that the wheels of a ROCm version have kernels for,
// nil when not known.
func ROCmArchs(rocm string) []string { return strings.Fields(rocmArchs[rocm]) }

// ROCmRuns says whether the wheels of a ROCm version have kernels for a GPU
// (gfx90a). AMD's code runs on its own architecture only.
func ROCmRuns(rocm, gfx string) Answer {
	switch archs := ROCmArchs(rocm); {
	case len(archs) == 0 || gfx == "":
		return Unknown
	case slices.Contains(archs, gfx):
		return Yes
	}
	return No
}
