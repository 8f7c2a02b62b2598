package install

import (
	"strings"

	"github.com/ncclinic/ncclinic/internal/tables"
)

// cudaLib reports whether a soname is one of the CUDA libraries that come with
// torch: not NCCL, which has checks of its own, and not the driver's.
func cudaLib(soname string) bool {
	for _, p := range []string{"libcudart.so", "libcublas.so", "libcublasLt.so", "libcudnn", "libcufft.so", "libcurand.so", "libcusolver.so",
		"libcusparse.so", "libcusparseLt.so", "libnvJitLink.so", "libnvrtc.so", "libcupti.so", "libnvToolsExt.so", "libcufile.so", "libnvshmem_host.so", "libcudss.so"} {
		if strings.HasPrefix(soname, p) {
			return true
		}
	}
	return false
}

// older reports whether version a is older than b in the fields that both
// have: 12.4, read from a symbol, is not older than 12.4.127, read from metadata.
func older(a, b string) bool {
	x, y := strings.Split(a, "."), strings.Split(b, ".")
	n := min(len(x), len(y))
	return tables.Compare(strings.Join(x[:n], "."), strings.Join(y[:n], ".")) < 0
}
