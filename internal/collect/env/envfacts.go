// Package envfacts picks the environment variables that decide how a
// distributed training process starts, masks and bounds them.
package envfacts

import (
	"sort"
	"strconv"
	"strings"

	"github.com/ncclinic/ncclinic/internal/fact"
	"github.com/ncclinic/ncclinic/internal/mask"
	"github.com/ncclinic/ncclinic/internal/source"
)

// Limits on what is taken. Search paths of module-heavy sites reach a few
// kilobytes; _LMFILES_ is the longest of them.
const (
	maxValue = 16 << 10
	maxVars  = 1000
)

// names are variables that matter, taken whole.
var names = map[string]bool{
	"PATH": true, "HOME": true, "PWD": true, "SHELL": true, "USER": true, "HOSTNAME": true, "TMPDIR": true, "TZ": true,
	"LANG": true, "LANGUAGE": true, "VIRTUAL_ENV": true, "LOADEDMODULES": true, "_LMFILES_": true, "MODULEPATH": true,
	"MASTER_ADDR": true, "MASTER_PORT": true, "RANK": true, "WORLD_SIZE": true, "LOCAL_RANK": true, "LOCAL_WORLD_SIZE": true,
	"GROUP_RANK": true, "ROLE_RANK": true, "NODE_RANK": true, "ROLE_WORLD_SIZE": true, "GROUP_WORLD_SIZE": true,
	"GPU_DEVICE_ORDINAL": true, "ZE_AFFINITY_MASK": true, "USE_LIBUV": true, "OMP_NUM_THREADS": true,
	"http_proxy": true, "https_proxy": true, "no_proxy": true, "all_proxy": true,
	"HTTP_PROXY": true, "HTTPS_PROXY": true, "NO_PROXY": true, "ALL_PROXY": true,
	"XDG_CACHE_HOME": true, "XDG_RUNTIME_DIR": true, "ENVIRONMENT": true, "CC": true, "CXX": true,
}

// prefixes of variables that matter.
var prefixes = []string{
	"LD_", "LC_", "PYTHON", "PYENV_", "CONDA_", "MAMBA_", "PIXI_", "UV_", "PIP_", "__LMOD_REF_COUNT_", "__MODULES_SHARE_", "LMOD_", "MODULES_", "EBROOT", "EBVERSION",
	"CUDA_", "NVIDIA_", "NCCL_", "RCCL_", "GLOO_", "TORCH_", "TORCHELASTIC_", "TORCHINDUCTOR_", "TRITON_", "PYTORCH_", "TP_", "TENSORPIPE_", "XCCL_", "CCL_",
	"FI_", "UCX_", "UCC_", "OFI_", "IBV_", "MLX5_", "RDMAV_", "SHARP_", "AWS_OFI_",
	"OMPI_", "PMI_", "PMIX_", "PRTE_", "MPICH_", "MV2_", "I_MPI_", "HYDRA_", "PALS_",
	"SLURM_", "SLURMD_", "SBATCH_", "SRUN_", "SALLOC_", "FLUX_", "PBS_", "LSB_",
	"HIP_", "ROCR_", "HSA_", "ROCM_", "MIOPEN_", "AMD_", "ONEAPI_", "SYCL_",
	"APPTAINER", "SINGULARITY", "ENROOT_", "PYXIS_", "SHIFTER_",
	"ACCELERATE_", "DEEPSPEED_", "DS_", "HOROVOD_", "MEGATRON_",
}

// Matters reports whether a variable belongs into a bundle.
func Matters(name string) bool {
	if name == "SLURM_JWT" { // a credential as a whole; not even its presence is of use
		return false
	}
	if names[name] || strings.HasSuffix(name, "_modshare") { // PYTHONPATH_modshare of Environment Modules 4
		return true
	}
	for _, p := range prefixes {
		if strings.HasPrefix(name, p) {
			return true
		}
	}
	return false
}

// Collect fills b.Env, sorted by name.
func Collect(m *source.Machine, b *fact.Bundle) {
	var vars []fact.EnvVar
	for name, value := range m.Env {
		if Matters(name) {
			// Cut first, so that masking is bounded too; a secret that the cut
			// shortens is still masked by its name or by its beginning.
			vars = append(vars, fact.EnvVar{Name: name, Value: mask.Value(name, fact.Clip(value, maxValue))})
		}
	}
	sort.Slice(vars, func(i, j int) bool { return vars[i].Name < vars[j].Name })
	if len(vars) > maxVars {
		b.AddProblem("environment", "more than "+strconv.Itoa(maxVars)+" variables matter; the rest was left out")
		vars = vars[:maxVars]
	}
	b.Env = vars
}
