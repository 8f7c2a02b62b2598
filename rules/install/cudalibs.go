package install

import "strings"

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
