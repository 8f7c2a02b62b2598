package tables

import (
	"strconv"
	"strings"
)

// archRow says which GPU architectures the Linux wheels of some releases carry.
type archRow struct {
	machine, tag string
	from, to     string // torch minor releases, inclusive
	archs        string
}

// wheelArchs is for choosing a wheel only: a verdict about an installed build
// reads the build itself.
//
// Sources: pytorch/pytorch RELEASE.md, "PyTorch CUDA Support Matrix" (2.12 to
// 2.14, x86_64 and aarch64) and .ci/manywheel/build_cuda.sh (12.6, 12.8, 12.9 of
// the 2.8-2.10 era), read 2026-11-30; torch-check's architecture data for the
// others, read 2026-11-29. Before 2.6 only what was read in the wheels on PyPI
// (fat binaries of 1.13.1, 2.0.1, 2.1.2 and 2.4.1, 2026-11-30); cu118 of those
// releases was not verified and is left out. aarch64 cu128 of 2.9: torch.cuda.get_arch_list() of
// 2.9.1 as OpenRAL/openral#167 quotes it, and pytorch/pytorch#162364; 2.15: the
// fat binaries of the wheels on PyPI; both read 2026-11-30.
var wheelArchs = []archRow{
	{"x86_64", "cu117", "1.13", "2.0", "sm_37 sm_50 sm_60 sm_70 sm_75 sm_80 sm_86"},
	{"x86_64", "cu121", "2.1", "2.1", "sm_50 sm_60 sm_70 sm_75 sm_80 sm_86 sm_90"},
	{"x86_64", "cu121", "2.4", "2.4", "sm_50 sm_60 sm_70 sm_75 sm_80 sm_86 sm_90"},
	{"x86_64", "cu118", "2.6", "2.7", "sm_37 sm_50 sm_60 sm_70 sm_75 sm_80 sm_86 sm_90"},
	{"x86_64", "cu124", "2.6", "2.6", "sm_50 sm_60 sm_70 sm_75 sm_80 sm_86 sm_90"},
	{"x86_64", "cu126", "2.6", "2.14", "sm_50 sm_60 sm_70 sm_75 sm_80 sm_86 sm_90"},
	{"x86_64", "cu128", "2.7", "2.7", "sm_75 sm_80 sm_86 sm_90 sm_100 sm_120 compute_120"},
	{"x86_64", "cu128", "2.8", "2.10", "sm_70 sm_75 sm_80 sm_86 sm_90 sm_100 sm_120"},
	{"x86_64", "cu128", "2.11", "2.11", "sm_75 sm_80 sm_86 sm_90 sm_100 sm_120"},
	{"x86_64", "cu129", "2.8", "2.8", "sm_70 sm_75 sm_80 sm_86 sm_90 sm_100 sm_120 compute_120"},
	{"x86_64", "cu130", "2.9", "2.10", "sm_75 sm_80 sm_86 sm_90 sm_100 sm_120 compute_120"},
	{"x86_64", "cu130", "2.11", "2.11", "sm_75 sm_80 sm_86 sm_90 sm_100 sm_120"},
	{"x86_64", "cu130", "2.12", "2.14", "sm_75 sm_80 sm_86 sm_90 sm_100 sm_120 compute_120"},
	{"x86_64", "cu132", "2.12", "2.14", "sm_75 sm_80 sm_86 sm_90 sm_100 sm_120 compute_120"},
	{"x86_64", "cu132", "2.15", "2.15", "sm_75 sm_80 sm_86 sm_90 sm_100 sm_120"}, // read in the wheel on PyPI
	{"aarch64", "cu132", "2.15", "2.15", "sm_80 sm_90 sm_100 sm_110 sm_120"},     // the same
	{"aarch64", "cu128", "2.9", "2.9", "sm_80 sm_90 sm_100 sm_120"},
	{"aarch64", "cu126", "2.12", "2.14", "sm_80 sm_90"},
	{"aarch64", "cu130", "2.12", "2.14", "sm_80 sm_90 sm_100 sm_110 sm_120 compute_120"},
	{"aarch64", "cu132", "2.12", "2.14", "sm_80 sm_90 sm_100 sm_110 sm_120 compute_120"},
}

// WheelArchs lists the architectures in a wheel of the PyTorch index, nil when not known.
func WheelArchs(version, tag, machine string) []string {
	m := Minor(version)
	if m == "" {
		return nil
	}
	for _, r := range wheelArchs {
		if r.machine == machine && r.tag == tag && Compare(m, r.from) >= 0 && Compare(m, r.to) <= 0 {
			return strings.Fields(r.archs)
		}
	}
	return nil
}

// tegra are the compute capabilities of Jetson and Drive boards. NVIDIA
// promises binary compatibility for desktop and data-centre GPUs only, so for
// these only their own kernels are a sure thing.
//
// Source: CUDA C++ Programming Guide, "Binary Compatibility"; read 2026-11-30.
var tegra = map[string]bool{"5.3": true, "6.2": true, "7.2": true, "8.7": true, "8.8": true, "10.1": true, "11.0": true}

// Runs says whether a build with these architectures has code for a GPU of a
// compute capability ("8.6"). The rules are those of the CUDA C++ Programming
// Guide: sm_XY runs on X.Z with Z >= Y; the a suffix on exactly X.Y; the f
// suffix within X.Z, Z >= Y; compute_XY (PTX) on X.Y and everything newer.
func Runs(archs []string, capability string) Answer {
	maj, min, ok := capNumber(capability)
	if !ok || len(archs) == 0 {
		return Unknown
	}
	sure := true
	for _, a := range archs {
		kind, m, n, suffix, ok := parseArch(a)
		switch {
		case !ok:
			sure = false // an entry that is not understood could be the one that fits
		case m == maj && n == min:
			return Yes
		case suffix == "a":
		case kind == "compute" && suffix == "" && (maj > m || maj == m && min > n):
			return Yes
		case (kind == "sm" || suffix == "f") && m == maj && min > n:
			if !tegra[capability] && !tegra[strconv.Itoa(m)+"."+strconv.Itoa(n)] {
				return Yes
			}
			sure = false
		}
	}
	if sure {
		return No
	}
	return Unknown
}

func capNumber(c string) (major, minor int, ok bool) {
	a, b, found := strings.Cut(c, ".")
	major, err1 := strconv.Atoi(a)
	minor, err2 := strconv.Atoi(b)
	return major, minor, found && err1 == nil && err2 == nil && major > 0 && minor >= 0 && minor < 10
}

// parseArch splits sm_90a into sm, 9, 0, a.
func parseArch(s string) (kind string, major, minor int, suffix string, ok bool) {
	kind, num, found := strings.Cut(s, "_")
	if !found || kind != "sm" && kind != "compute" {
		return
	}
	if n := len(num); n > 0 && (num[n-1] == 'a' || num[n-1] == 'f') {
		num, suffix = num[:n-1], num[n-1:]
	}
	if len(num) < 2 || len(num) > 3 || !numeric(num) {
		return
	}
	v, _ := strconv.Atoi(num)
	return kind, v / 10, v % 10, suffix, true
}

// capCUDA is the first toolkit that can compile for a compute capability, and
// the first that no longer can ("": still can).
//
// Source: CMake Modules/Internal/CMakeCUDAArchitecturesAll; read 2026-11-29.
var capCUDA = map[string][2]string{
	"3.0": {"7.0", "11.0"}, "3.5": {"7.0", "12.0"}, "3.7": {"7.0", "12.0"},
	"5.0": {"7.0", "13.0"}, "5.2": {"7.0", "13.0"}, "6.0": {"8.0", "13.0"}, "6.1": {"8.0", "13.0"},
	"7.0": {"9.0", "13.0"}, "7.5": {"10.0", ""}, "8.0": {"11.0", ""}, "8.6": {"11.1", ""},
	"8.9": {"11.8", ""}, "9.0": {"11.8", ""}, "10.0": {"12.8", ""}, "12.0": {"12.8", ""},
	"10.3": {"12.9", ""}, "12.1": {"12.9", ""},
}

// CapCUDA returns the first CUDA version that knows a compute capability and the
// first that dropped it, both "" when not known.
func CapCUDA(capability string) (first, dropped string) {
	r := capCUDA[capability]
	return r[0], r[1]
}
