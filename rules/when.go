package rules

import "strings"

// whenWords say in words which case a fix is for. A page lists the fixes of all
// cases, and without this a Jetson's stands beside conda's as if both were
// meant. Conditions that only say that a placeholder can be filled have no words.
var whenWords = map[string]map[string]string{
	"en": {
		"installer=pip": "installed by pip", "installer=uv": "installed by uv", "installer=conda": "installed by conda", "installer=debian": "from a Debian package",
		"cuda_tag": "the driver is known", "!cuda_tag": "the driver is not known", "conda_cuda": "the driver is known", "!conda_cuda": "the driver is not known",
		"board": "on a Jetson", "image": "in a container image", "container": "in a container", "origin=source": "built from source", "os=windows": "on Windows",
		"kind=venv": "a venv", "kind=conda": "a conda environment", "kind=docker": "in Docker", "kind=podman": "in Podman",
		"kind=apptainer": "in Apptainer", "kind=singularity": "in Singularity", "kind=enroot": "in Enroot", "fabric=efa": "on EFA (AWS)",
		"wants=cuda": "on an NVIDIA GPU", "wants=rocm": "on an AMD GPU", "wants=xpu": "on an Intel GPU",
		"var=LD_LIBRARY_PATH": "through LD_LIBRARY_PATH", "var=LD_PRELOAD": "through LD_PRELOAD",
	},
	"zh": {
		"installer=pip": "由 pip 安装", "installer=uv": "由 uv 安装", "installer=conda": "由 conda 安装", "installer=debian": "来自 Debian 软件包",
		"cuda_tag": "驱动版本已知", "!cuda_tag": "驱动版本未知", "conda_cuda": "驱动版本已知", "!conda_cuda": "驱动版本未知",
		"board": "Jetson 板卡", "image": "在容器镜像中", "container": "在容器中", "origin=source": "从源码编译", "os=windows": "Windows 系统",
		"kind=venv": "venv 环境", "kind=conda": "conda 环境", "kind=docker": "Docker 容器", "kind=podman": "Podman 容器",
		"kind=apptainer": "Apptainer 容器", "kind=singularity": "Singularity 容器", "kind=enroot": "Enroot 容器", "fabric=efa": "EFA 网络（AWS）",
		"wants=cuda": "NVIDIA GPU", "wants=rocm": "AMD GPU", "wants=xpu": "Intel GPU",
		"var=LD_LIBRARY_PATH": "由 LD_LIBRARY_PATH 引入", "var=LD_PRELOAD": "由 LD_PRELOAD 引入",
	},
}

// conditions renders a fix's gate, as in "Installed by pip, the driver is known:", or "".
func conditions(when, lang string) string {
	var out []string
	for _, c := range strings.Split(when, ",") {
		if w := whenWords[lang][strings.TrimSpace(c)]; w != "" {
			out = append(out, w)
		}
	}
	if len(out) == 0 {
		return ""
	}
	if lang == "zh" {
		return strings.Join(out, "，") + "："
	}
	s := strings.Join(out, ", ")
	return strings.ToUpper(s[:1]) + s[1:] + ":"
}
