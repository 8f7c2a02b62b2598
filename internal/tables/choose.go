package tables

// Choose picks the CUDA build of a torch release for a driver and its GPUs
// (compute capabilities). It answers "" when the tables do not hold all that it
// takes: a wrong index URL costs more than none.
//
// Of the builds that run on the driver and have kernels for every GPU it takes
// the newest CUDA family. Inside the family it takes the newest build whose own
// driver is not newer than this one; when there is none, the oldest of the
// family, which asks least of minor-version compatibility.
func Choose(version, driver, machine string, caps []string) string {
	if len(caps) == 0 || machine == "" {
		return ""
	}
	var fit []string
	for _, tag := range WheelTags(version) {
		if DriverRuns(driver, TagCUDA(tag)) != Yes {
			continue
		}
		archs := WheelArchs(version, tag, machine)
		all := true
		for _, c := range caps {
			all = all && Runs(archs, c) == Yes
		}
		if all {
			fit = append(fit, tag)
		}
	}
	if len(fit) == 0 {
		return ""
	}
	family := TagCUDA(fit[len(fit)-1])[:2]
	best := ""
	for _, tag := range fit {
		cuda := TagCUDA(tag)
		if cuda[:2] != family {
			continue
		}
		if d := ToolkitDriver(cuda); best == "" || d != "" && Compare(driver, d) >= 0 {
			best = tag
		}
	}
	return best
}

// ChooseNewest picks the CUDA build of the newest release that has one for a
// driver and its GPUs: a plain "pip install torch" from that build's index
// installs that release. "" as for Choose.
func ChooseNewest(driver, machine string, caps []string) string {
	for _, v := range Versions() {
		if tag := Choose(v, driver, machine, caps); tag != "" {
			return tag
		}
	}
	return ""
}
