package tables

import (
	"slices"
	"strconv"
	"strings"
)

// Read is the day on which the tables of torch's wheels were read last.
const Read = "2026-11-30"

// release is one published version of torch.
type release struct {
	version string
	pythons string // CPython versions with a Linux wheel on both x86_64 and aarch64; "t" is free-threaded
	vision  string // torchvision that was released with it
	audio   string // torchaudio that was released with it
}

// releases are the versions of torch from 2.1 on, newest first.
//
// Source of version and pythons: names of the wheels of torch on PyPI, read
// 2026-11-30. Of vision and audio: the same for these packages, beside the
// compatibility table in pytorch/vision's README and pytorch/audio's
// installation page; torchaudio after 2.8 and torchvision of the newest releases
// pin no torch that could be read, so they are left open.
var releases = []release{
	{"2.15.0", "3.11 3.12 3.13 3.14 3.14t 3.15 3.15t", "", ""},
	{"2.14.1", "3.10 3.11 3.12 3.13 3.14 3.14t", "", ""},
	{"2.14.0", "3.10 3.11 3.12 3.13 3.14 3.14t", "", ""},
	{"2.13.0", "3.10 3.11 3.12 3.13 3.14 3.14t", "0.28.0", ""},
	{"2.12.1", "3.10 3.11 3.12 3.13 3.14 3.14t", "0.27.1", ""},
	{"2.12.0", "3.10 3.11 3.12 3.13 3.13t 3.14 3.14t", "0.27.0", ""},
	{"2.11.0", "3.10 3.11 3.12 3.13 3.13t 3.14 3.14t", "0.26.0", ""},
	{"2.10.0", "3.10 3.11 3.12 3.13 3.13t 3.14 3.14t", "0.25.0", ""},
	{"2.9.1", "3.10 3.11 3.12 3.13 3.13t 3.14 3.14t", "0.24.1", ""},
	{"2.9.0", "3.10 3.11 3.12 3.13 3.13t 3.14 3.14t", "0.24.0", ""},
	{"2.8.0", "3.9 3.10 3.11 3.12 3.13 3.13t", "0.23.0", "2.8.0"},
	{"2.7.1", "3.9 3.10 3.11 3.12 3.13 3.13t", "0.22.1", "2.7.1"},
	{"2.7.0", "3.9 3.10 3.11 3.12 3.13 3.13t", "0.22.0", "2.7.0"},
	{"2.6.0", "3.9 3.10 3.11 3.12 3.13", "0.21.0", "2.6.0"},
	{"2.5.1", "3.9 3.10 3.11 3.12", "0.20.1", "2.5.1"},
	{"2.5.0", "3.9 3.10 3.11 3.12", "0.20.0", "2.5.0"},
	{"2.4.1", "3.8 3.9 3.10 3.11 3.12", "0.19.1", "2.4.1"},
	{"2.4.0", "3.8 3.9 3.10 3.11 3.12", "0.19.0", "2.4.0"},
	{"2.3.1", "3.8 3.9 3.10 3.11 3.12", "0.18.1", "2.3.1"},
	{"2.3.0", "3.8 3.9 3.10 3.11 3.12", "0.18.0", "2.3.0"},
	{"2.2.2", "3.8 3.9 3.10 3.11 3.12", "0.17.2", "2.2.2"},
	{"2.2.1", "3.8 3.9 3.10 3.11 3.12", "0.17.1", "2.2.1"},
	{"2.2.0", "3.8 3.9 3.10 3.11 3.12", "0.17.0", "2.2.0"},
	{"2.1.2", "3.8 3.9 3.10 3.11", "0.16.2", "2.1.2"},
	{"2.1.1", "3.8 3.9 3.10 3.11", "0.16.1", "2.1.1"},
	{"2.1.0", "3.8 3.9 3.10 3.11", "0.16.0", "2.1.0"},
}

func releaseOf(version string) *release {
	p := Public(version)
	for i := range releases {
		if p != "" && releases[i].version == p {
			return &releases[i]
		}
	}
	return nil
}

// Versions lists the releases of torch in the table, newest first.
func Versions() []string {
	out := make([]string, len(releases))
	for i := range releases {
		out[i] = releases[i].version
	}
	return out
}

// NewestRelease returns the newest release in the table.
func NewestRelease() string { return releases[0].version }

// HasRelease says whether a torch version was published: Unknown for what is
// newer or older than the table and for what is no plain release.
func HasRelease(version string) Answer {
	p := Public(version)
	switch {
	case p == "" || Compare(p, releases[0].version) > 0 || Compare(p, releases[len(releases)-1].version) < 0:
		return Unknown
	case releaseOf(version) != nil:
		return Yes
	}
	return No
}

// Pythons lists the CPython versions ("3.12", "3.13t") with Linux wheels of a
// torch release, oldest first, nil when the release is not in the table.
func Pythons(version string) []string {
	if r := releaseOf(version); r != nil {
		return strings.Fields(r.pythons)
	}
	return nil
}

// HasPython says whether a torch release has Linux wheels for a CPython version.
// 2.5 on x86_64 has one for 3.13 as well, on PyPI only.
func HasPython(version, python string) Answer {
	ps := Pythons(version)
	if ps == nil || PythonMinor(python) == "" {
		return Unknown
	}
	if slices.Contains(ps, PythonMinor(python)) {
		return Yes
	}
	return No
}

// PythonMinor turns 3.11.7 into 3.11 and 3.13.0t into 3.13t, "" for anything
// that is no version of Python 3.
func PythonMinor(v string) string {
	threaded := strings.HasSuffix(v, "t")
	f := strings.Split(strings.TrimSuffix(v, "t"), ".")
	if len(f) < 2 || len(f) > 3 || f[0] != "3" {
		return ""
	}
	if n, err := strconv.Atoi(f[1]); err != nil || n < 0 || n > 99 || strconv.Itoa(n) != f[1] {
		return ""
	}
	m := f[0] + "." + f[1]
	if threaded {
		m += "t"
	}
	return m
}

// WheelGlibc returns the least glibc on which pip takes the Linux wheels of a
// torch release's build, "" when not known.
//
// Source: platform tags of the wheels on PyPI (manylinux_2_28 for aarch64 from
// 2.6 on and x86_64 from 2.7 on, manylinux2014 before), read 2026-11-30; PyTorch
// 2.6 release blog: the CUDA 12.6 build of 2.6 is Manylinux 2.28.
func WheelGlibc(version, tag, machine string) string {
	m := Minor(version)
	switch {
	case releaseOf(version) == nil:
		return ""
	case Compare(m, "2.7") >= 0, m == "2.6" && (machine == "aarch64" || tag == "cu126"):
		return "2.28"
	}
	return "2.17"
}

// CompanionRelease returns the release of torchvision or torchaudio that was
// made with a torch release, "" when not known.
func CompanionRelease(pkg, torch string) string {
	r := releaseOf(torch)
	switch {
	case r == nil:
		return ""
	case pkg == "torchvision":
		return r.vision
	case pkg == "torchaudio":
		return r.audio
	}
	return ""
}

// tagNCCL gives the NCCL that a build pins where it is not the one of the wheel
// on PyPI.
//
// Source: release compatibility matrix of pytorch/pytorch RELEASE.md, read
// 2026-11-30.
var tagNCCL = map[string]string{
	"2.14 12": "2.29.3", "2.13 12": "2.29.3", "2.12 12": "2.29.3",
	"2.11 12": "2.28.9", "2.10 13": "2.28.9",
}

// TagNCCL returns the NCCL version that a build of a torch release pins, "" when
// not known. Builds of one release and one CUDA major pin the same
// (generate_binary_build_matrix.py reads one pin per major, read 2026-11-30).
func TagNCCL(version, tag string) string {
	major, _, _ := strings.Cut(TagCUDA(tag), ".")
	if pypi, _, _ := strings.Cut(PyPICUDA(version), "."); pypi != "" && pypi == major {
		return WheelNCCL(version)
	}
	return tagNCCL[Minor(version)+" "+major]
}
