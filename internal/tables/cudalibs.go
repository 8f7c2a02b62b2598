package tables

import "strings"

// cudaPackages says in which of NVIDIA's packages a library of CUDA is, by the
// part of its name before ".so".
//
// Source: RECORD of the nvidia-* wheels that torch 2.6.0 requires, and of
// nvidia-nccl-cu11, -cu12 and -cu13; the extras of cuda-toolkit as torch 2.15.0
// names them; read 2026-11-30.
var cudaPackages = map[string]string{
	"libnccl": "nccl", "libcudart": "cuda-runtime", "libcublas": "cublas", "libcublasLt": "cublas", "libnvblas": "cublas", "libcudnn": "cudnn",
	"libcufft": "cufft", "libcufftw": "cufft", "libcurand": "curand", "libcusolver": "cusolver", "libcusolverMg": "cusolver",
	"libcusparse": "cusparse", "libcusparseLt": "cusparselt", "libcupti": "cuda-cupti", "libnvJitLink": "nvjitlink",
	"libnvrtc": "cuda-nvrtc", "libnvrtc-builtins": "cuda-nvrtc", "libnvToolsExt": "nvtx", "libcufile": "cufile", "libnvshmem_host": "nvshmem",
}

// toolkitExtras are the extras of the cuda-toolkit package whose names are not those of the packages.
var toolkitExtras = map[string]string{"cuda-runtime": "cudart", "cuda-cupti": "cupti", "cuda-nvrtc": "nvrtc"}

// Provider finds among requirements of a torch wheel ("nvidia-nccl-cu12==2.21.5",
// "cuda-toolkit[cublas,cudart]==13.0.2") the one that brings a library, "" when
// none is known to.
func Provider(soname string, requirements []string) string {
	base, _, _ := strings.Cut(soname, ".so")
	pkg := cudaPackages[base]
	if pkg == "" && strings.HasPrefix(base, "libcudnn_") {
		pkg = "cudnn"
	}
	if pkg == "" {
		return ""
	}
	extra := pkg
	if e := toolkitExtras[pkg]; e != "" {
		extra = e
	}
	for _, r := range requirements {
		name, _, _ := strings.Cut(r, "==")
		name, extras, _ := strings.Cut(strings.TrimSpace(name), "[")
		if name == "cuda-toolkit" {
			for _, e := range strings.Split(strings.TrimSuffix(extras, "]"), ",") {
				if strings.TrimSpace(e) == extra {
					return r
				}
			}
			continue
		}
		if rest, ok := strings.CutPrefix(name, "nvidia-"+pkg); ok && (rest == "" || strings.HasPrefix(rest, "-cu")) {
			return r
		}
	}
	return ""
}
