package tables

import "strings"

// droppedBy says with which driver branch support for old GPUs ended. Tegra is
// left out: its driver is part of the board's own Linux.
//
// Source: NVIDIA, "Unix graphics feature deprecation schedule" ("The release 580
// series will be the last to support GPUs based on the Maxwell, Pascal, and
// Volta architectures"), "Data Center Drivers", CUDA and architecture matrix
// (Kepler: last driver R470), and the descriptions of Debian's packages
// nvidia-tesla-470-driver; read 2026-11-30. 471 to 474 and 581 to 589 are
// Windows drivers of the same branches.
var droppedBy = []struct {
	from, to string // compute capabilities, inclusive
	last     string // last branch
	first    string // first driver of that branch
	gone     string // drivers from here on know the GPU no more
}{
	{"3.0", "3.7", "470", "470.42.01", "475"},
	{"5.0", "7.0", "580", "580.65.06", "590"},
}

// LastBranch returns the last driver branch that supports a compute capability,
// with the first driver of it; "" for GPUs that are supported still.
func LastBranch(capability string) (branch, first string) {
	if tegra[capability] {
		return "", ""
	}
	for _, d := range droppedBy {
		if capability != "" && Compare(capability, d.from) >= 0 && Compare(capability, d.to) <= 0 {
			return d.last, d.first
		}
	}
	return "", ""
}

// DriverDropped says whether a driver is newer than the last branch for a
// compute capability: it then does not see the GPU.
func DriverDropped(driver, capability string) Answer {
	branch, _ := LastBranch(capability)
	switch {
	case capability == "" || !numeric(driver) || !strings.Contains(driver, "."):
		return Unknown
	case branch == "":
		return No
	}
	for _, d := range droppedBy {
		if d.last == branch && Compare(driver, d.gone) >= 0 {
			return Yes
		}
	}
	return No
}

// FirstDriver returns the driver that came with the first CUDA that knows a
// compute capability, "" when not known.
func FirstDriver(capability string) string {
	first, _ := CapCUDA(capability)
	return ToolkitDriver(first)
}

// BeforeBranch says whether a driver is older than the branch of another one.
// Cards are often supported a little before the toolkit's own driver, so within
// a branch nothing is said.
func BeforeBranch(driver, first string) Answer {
	branch, _, _ := strings.Cut(first, ".")
	if first == "" || !numeric(driver) || !strings.Contains(driver, ".") {
		return Unknown
	}
	if Compare(driver, branch) < 0 {
		return Yes
	}
	return No
}
