package tables

import "strings"

// wheelRow is one minor release of torch as its wheels are published.
type wheelRow struct {
	torch string // 2.6
	// tags are the CUDA builds on the PyTorch index, oldest first.
	tags []string
	// pypi is the CUDA version of the wheel on PyPI (x86_64).
	pypi string
	// nccl is the nvidia-nccl version that the PyPI wheel (x86_64) pins.
	nccl string
}

// wheels: tags from the release compatibility matrix of pytorch/pytorch
// RELEASE.md (2.14-era copy; stable and experimental columns), read 2026-11-30.
// pypi and nccl from the METADATA of the x86_64 wheels on PyPI
// (Requires-Dist of nvidia-nccl-*, nvidia-cuda-runtime-* or cuda-toolkit),
// read 2026-11-30 with pip's --dry-run report for 2.1.2, 2.2.2, 2.3.1, 2.4.1,
// 2.5.1, 2.6.0, 2.7.0, 2.7.1, 2.8.0, 2.9.0, 2.9.1, 2.10.0, 2.11.0, 2.12.0,
// 2.13.0 and 2.14.0; in the wheels themselves (METADATA and torch/version.py),
// 2026-11-30, for 1.13.1, 2.0.1, 2.1.2, 2.4.1, 2.6.0, 2.9.1, 2.11.0 and 2.15.0.
//
// 2.15: no CUDA 12 builds (pytorch/pytorch#190385; pytorch/test-infra#8739 removed
// them, 2026-09-06). 1.13 has NCCL 2.14.3 linked in and asks for no package of it.
var wheels = []wheelRow{
	{"2.15", []string{"cu130", "cu132"}, "13.2", "2.30.7"},
	{"2.14", []string{"cu126", "cu130", "cu132"}, "13.0", "2.30.7"},
	{"2.13", []string{"cu126", "cu130", "cu132"}, "13.0", "2.29.7"},
	{"2.12", []string{"cu126", "cu130", "cu132"}, "13.0", "2.29.7"},
	{"2.11", []string{"cu126", "cu128", "cu130"}, "13.0", "2.28.9"},
	{"2.10", []string{"cu126", "cu128", "cu130"}, "12.8", "2.27.5"},
	{"2.9", []string{"cu126", "cu128", "cu130"}, "12.8", "2.27.5"},
	{"2.8", []string{"cu126", "cu128", "cu129"}, "12.8", "2.27.3"},
	{"2.7", []string{"cu118", "cu126", "cu128"}, "12.6", "2.26.2"},
	{"2.6", []string{"cu118", "cu124", "cu126"}, "12.4", "2.21.5"},
	{"2.5", []string{"cu118", "cu121", "cu124"}, "12.4", "2.21.5"},
	{"2.4", []string{"cu118", "cu121", "cu124"}, "12.1", "2.20.5"},
	{"2.3", []string{"cu118", "cu121"}, "12.1", "2.20.5"},
	{"2.2", []string{"cu118", "cu121"}, "12.1", "2.19.3"},
	{"2.1", []string{"cu118", "cu121"}, "12.1", "2.18.1"},
	{"2.0", []string{"cu117", "cu118"}, "11.7", "2.14.3"},
	{"1.13", []string{"cu116", "cu117"}, "11.7", ""},
}

// Minor returns the release series of a torch version: 2.6 of "2.6.0+cu124".
// It is "" for anything but a plain release: nightly, NGC and Debian versions
// (2.9.0.dev…, 2.6.0a0+…, 1.13.0a0) have no wheel of that name on the index.
func Minor(version string) string {
	public := Public(version)
	if public == "" {
		return ""
	}
	f := strings.Split(public, ".")
	return f[0] + "." + f[1]
}

// Public returns a torch version without its local tag when it is a plain
// release (2.6.0 of "2.6.0+cpu"), and "" otherwise.
func Public(version string) string {
	public, _, _ := strings.Cut(version, "+")
	f := strings.Split(public, ".")
	if len(f) != 3 || !numeric(public) {
		return ""
	}
	return public
}

// Newest returns the newest release of the table, as the first of its series.
func Newest() string { return wheels[0].torch + ".0" }

func wheelsOf(version string) *wheelRow {
	m := Minor(version)
	for i := range wheels {
		if m != "" && wheels[i].torch == m {
			return &wheels[i]
		}
	}
	return nil
}

// WheelTags lists the CUDA builds of a torch version on the PyTorch index,
// oldest first, nil when the release is not in the table.
func WheelTags(version string) []string {
	if r := wheelsOf(version); r != nil {
		return append([]string(nil), r.tags...)
	}
	return nil
}

// PyPICUDA returns the CUDA version of a torch release's x86_64 wheel on PyPI, "" when not known.
func PyPICUDA(version string) string {
	if r := wheelsOf(version); r != nil {
		return r.pypi
	}
	return ""
}

// WheelNCCL returns the NCCL version that a torch release's PyPI wheel pins, "" when not known.
func WheelNCCL(version string) string {
	if r := wheelsOf(version); r != nil {
		return r.nccl
	}
	return ""
}

// TagCUDA turns cu124 into 12.4, "" for anything else.
func TagCUDA(tag string) string {
	d, ok := strings.CutPrefix(tag, "cu")
	if !ok || len(d) != 3 || !numeric(d) {
		return ""
	}
	return d[:2] + "." + d[2:]
}

// PyPIAarch64CPU says whether the Linux aarch64 wheel of a torch release on PyPI
// is a CPU build.
//
// Source: METADATA of the aarch64 wheels on PyPI: 2.6.0, 2.8.0, 2.9.1 and 2.10.0
// ask for NVIDIA's libraries on x86_64 only, 2.11.0 to 2.15.0 on every Linux;
// read 2026-11-30.
func PyPIAarch64CPU(version string) Answer {
	m := Minor(version)
	switch {
	case m == "" || Compare(m, "2.6") < 0 || Compare(m, "2.15") > 0:
		return Unknown
	case Compare(m, "2.10") <= 0:
		return Yes
	}
	return No
}
