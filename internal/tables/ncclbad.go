package tables

// BadNCCL is a fault of some NCCL releases that a later one mends.
type BadNCCL struct {
	ID          string // stable
	First, Last string // releases that have it, both inclusive
	Fixed       string
	Machine     string   // "" on every machine
	GPUs        []string // product names, nil for all
}

// badNCCL lists faults that stop or spoil training. Faults of single functions
// that torch does not use are left out.
//
// Source: release notes in the commit messages of NVIDIA/nccl by tag: 2.18.3-1
// (2023-06-13, "Fix data corruption with Tree/LL128 on systems with 1GPU:1NIC";
// reported for 2.18.1 and 2.18.2), 2.29.3-1 (2026-02-03, "Fixes CAS usage in
// case of weak failure which was causing a hang on ARM"; a regression of 2.29.2
// by pytorch/pytorch#174338), 2.29.2-1 (2025-12-23, "Fixes a hang on GB200/300 +
// CX8 when the user disables GDR"); read 2026-11-30.
var badNCCL = []BadNCCL{
	{ID: "ll128", First: "2.18.1", Last: "2.18.2", Fixed: "2.18.3"},
	{ID: "arm-cas", First: "2.29.2", Last: "2.29.2", Fixed: "2.29.3", Machine: "aarch64"},
	{ID: "gb200-gdr", First: "2.0", Last: "2.29.1", Fixed: "2.29.2", Machine: "aarch64", GPUs: []string{"GB200", "GB300"}},
}

// KnownBadNCCL returns the faults of an NCCL release on a machine with GPUs of
// these names.
func KnownBadNCCL(version, machine string, gpus []string) []BadNCCL {
	var out []BadNCCL
	if !numeric(version) {
		return nil
	}
	for _, b := range badNCCL {
		if Compare(version, b.First) < 0 || Compare(version, b.Last) > 0 || b.Machine != "" && b.Machine != machine {
			continue
		}
		if b.GPUs != nil && !anyWord(gpus, b.GPUs) {
			continue
		}
		out = append(out, b)
	}
	return out
}
