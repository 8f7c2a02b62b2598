package explain

import "github.com/ncclinic/ncclinic/internal/diag"

// torchLibraryMissing judges an import that asks for a library of torch's CUDA
// builds which is not there. An extension that asks for it was built for a CUDA
// torch, and the torch beside it is none.
func (v *view) torchLibraryMissing() {
	xs := v.excWith("libtorch_cuda.so: cannot open", "libc10_cuda.so: cannot open", "libtorch_cuda_cpp.so: cannot open", "libtorch_cuda_cu.so: cannot open")
	if len(xs) == 0 || loadsTorch(xs[0]) {
		return
	}
	if b := v.build(); len(b.cpu) > 0 && len(b.cuda) == 0 {
		c := v.addExc(cand{id: "torch-cpu-build", cert: diag.Proven, over: []string{"run-exception"}}, xs[0])
		v.said(c, b.cpu[0])
		return
	}
	v.addExc(cand{id: "torch-extension-built-for-other-torch", cert: diag.Likely, over: []string{"run-exception"},
		needs: []string{"python -c 'import torch; print(torch.__file__, torch.__version__, torch.version.cuda)'"}}, xs[0])
}
