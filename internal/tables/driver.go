package tables

import "strings"

// familyDriver is the least Linux driver on which every toolkit of a CUDA
// family runs by minor-version compatibility.
//
// Source: NVIDIA, CUDA Compatibility, "Minor Version Compatibility", as kept in
// torch-check cuda-driver-rules.json (reviewed 2026-07-14) and in uv's
// backend.rs; read 2026-11-29.
var familyDriver = map[string]string{
	"11": "450.80.02",
	"12": "525.60.13",
	"13": "580.65.06",
}

// toolkitDriver is the driver that was shipped with a toolkit: on it and on
// newer ones everything works, PTX compilation included.
//
// Source: NVIDIA CUDA 13.2 release notes, table 3, as kept in torch-check
// upstream-observed.json; read 2026-11-29. The first (GA) row of each release.
var toolkitDriver = []struct{ cuda, driver string }{
	{"13.2", "595.45.04"},
	{"13.1", "590.44.01"},
	{"13.0", "580.65.06"},
	{"12.9", "575.51.03"},
	{"12.8", "570.26"},
	{"12.6", "560.28.03"},
	{"12.5", "555.42.02"},
	{"12.4", "550.54.14"},
	{"12.3", "545.23.06"},
	{"12.2", "535.54.03"},
	{"12.1", "530.30.02"},
	{"12.0", "525.60.13"},
	{"11.8", "520.61.05"},
	{"11.7", "515.43.04"},
	{"11.6", "510.39.01"},
	{"11.5", "495.29.05"},
	{"11.4", "470.42.01"},
	{"11.3", "465.19.01"},
	{"11.2", "460.27.03"},
	{"11.1", "455.23"},
	{"11.0", "450.51.05"},
}

// FamilyDriver returns the least driver for the family of a CUDA version
// ("12.4"), "" when the family is not in the table.
func FamilyDriver(cuda string) string {
	major, _, _ := strings.Cut(cuda, ".")
	return familyDriver[major]
}

// ToolkitDriver returns the driver that was shipped with a CUDA version, "" when not known.
func ToolkitDriver(cuda string) string {
	for _, r := range toolkitDriver {
		if r.cuda == cuda {
			return r.driver
		}
	}
	return ""
}

// DriverRuns says whether a driver runs programs of a CUDA version, by the
// family's minimum. It does not know of forward compatibility packages.
func DriverRuns(driver, cuda string) Answer {
	min := FamilyDriver(cuda)
	if min == "" || !numeric(driver) || !strings.Contains(driver, ".") {
		return Unknown
	}
	if Compare(driver, min) >= 0 {
		return Yes
	}
	return No
}

// DriverCUDA returns the newest CUDA version whose own driver is not newer than
// this one: what nvidia-smi shows as "CUDA Version", "" when not known.
func DriverCUDA(driver string) string {
	if !numeric(driver) || !strings.Contains(driver, ".") {
		return ""
	}
	for _, r := range toolkitDriver {
		if Compare(driver, r.driver) >= 0 {
			return r.cuda
		}
	}
	return ""
}

// firstOfBranch are the first public drivers of branches where that is not the
// first that came with a toolkit.
//
// Source: NVIDIA's data-centre driver release notes and Linux driver archive; 565.57.01 and 570.86.10 as
// public repositories name them, not confirmed there; read 2026-11-30.
var firstOfBranch = map[string]string{"450": "450.80.02", "565": "565.57.01", "570": "570.86.10"}

// FirstOf returns the first public driver of a branch: 535.54.03 of "535". A
// branch's number means some driver of it, so no build is called too new for
// it that a driver of the branch runs; beta drivers are not counted. A branch
// that is not known gets ".0".
func FirstOf(branch string) string {
	if d := firstOfBranch[branch]; d != "" {
		return d
	}
	for _, r := range toolkitDriver {
		if strings.HasPrefix(r.driver, branch+".") {
			return r.driver
		}
	}
	return branch + ".0"
}

// NewestCUDA returns the newest toolkit in the table.
func NewestCUDA() string { return toolkitDriver[0].cuda }
