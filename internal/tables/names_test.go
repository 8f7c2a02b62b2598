package tables

import (
	"strings"
	"testing"
)

// TestGPUNames reads the names that people and GRES types give to GPUs.
func TestGPUNames(t *testing.T) {
	for _, c := range []struct{ name, maker, cap string }{
		{"4090", NVIDIA, "8.9"}, {"RTX 4090", NVIDIA, "8.9"}, {"rtx4090", NVIDIA, "8.9"}, {"NVIDIA GeForce RTX 4090 D", NVIDIA, "8.9"}, {"4090d", NVIDIA, "8.9"},
		{"A6000", NVIDIA, "8.6"}, {"rtx_a6000", NVIDIA, "8.6"}, {"rtxa6000", NVIDIA, "8.6"}, {"a5000", NVIDIA, "8.6"}, {"a4500", NVIDIA, "8.6"},
		{"1080Ti", NVIDIA, "6.1"}, {"gtx1080", NVIDIA, "6.1"}, {"gtx_1080_ti", NVIDIA, "6.1"}, {"GTX1080Ti", NVIDIA, "6.1"}, {"geforce_gtx_1080_ti", NVIDIA, "6.1"},
		{"2080ti", NVIDIA, "7.5"}, {"rtx2080ti", NVIDIA, "7.5"}, {"3090", NVIDIA, "8.6"}, {"3070ti", NVIDIA, "8.6"}, {"rtx3090", NVIDIA, "8.6"}, {"5090", NVIDIA, "12.0"}, {"rtx_5080", NVIDIA, "12.0"},
		{"4070super", NVIDIA, "8.9"}, {"RTX 4070 SUPER", NVIDIA, "8.9"}, {"titan_rtx", NVIDIA, "7.5"}, {"titan_v", NVIDIA, "7.0"}, {"titanxp", "", ""},
		{"h100_pcie", NVIDIA, "9.0"}, {"h100pcie", NVIDIA, "9.0"}, {"H100NVL", NVIDIA, "9.0"}, {"nvidia_h100_80gb_hbm3", NVIDIA, "9.0"}, {"h200", NVIDIA, "9.0"}, {"h800", NVIDIA, "9.0"}, {"h20", NVIDIA, "9.0"},
		{"a100-sxm4-80gb", NVIDIA, "8.0"}, {"a100l", NVIDIA, "8.0"}, {"A100_40", NVIDIA, "8.0"}, {"a100", NVIDIA, "8.0"}, {"a800", NVIDIA, "8.0"}, {"a30", NVIDIA, "8.0"},
		{"nvidia_a100_1g.5gb", NVIDIA, "8.0"}, {"a100_3g.20gb", NVIDIA, "8.0"}, {"nvidia_a100-sxm4-40gb_1g.5gb", NVIDIA, "8.0"}, {"1g.5gb", NVIDIA, "8.0"}, {"1g.10gb", "", ""}, {"h100_1g.10gb", NVIDIA, "9.0"},
		{"NVIDIA H100 80GB HBM3 MIG 1g.10gb", NVIDIA, "9.0"}, {"NVIDIA A100-SXM4-40GB MIG 1g.5gb+me", NVIDIA, "8.0"},
		{"gh200", NVIDIA, "9.0"}, {"b200", NVIDIA, "10.0"}, {"gb200", NVIDIA, "10.0"}, {"gb300", NVIDIA, "10.3"}, {"L40S", NVIDIA, "8.9"}, {"l40s", NVIDIA, "8.9"}, {"l4", NVIDIA, "8.9"}, {"T4", NVIDIA, "7.5"}, {"t4", NVIDIA, "7.5"},
		{"tesla_v100-sxm2-32gb", NVIDIA, "7.0"}, {"v100s", NVIDIA, "7.0"}, {"v100l", NVIDIA, "7.0"}, {"p100", NVIDIA, "6.0"}, {"tesla_p40", NVIDIA, "6.1"}, {"k80", NVIDIA, "3.7"}, {"tesla_k40m", NVIDIA, "3.5"}, {"k20x", NVIDIA, "3.5"},
		{"rtx_pro_6000", NVIDIA, "12.0"}, {"rtx_6000_ada", NVIDIA, ""}, {"NVIDIA RTX 6000 Ada Generation", NVIDIA, "8.9"}, {"rtx8000", NVIDIA, "7.5"}, {"quadro_rtx_8000", NVIDIA, "7.5"}, {"rtx6000", NVIDIA, ""},
		{"8x H100", NVIDIA, "9.0"}, {"4×A100", NVIDIA, "8.0"}, {"V100 x8", NVIDIA, "7.0"}, {"2*rtx3090", NVIDIA, "8.6"},
		{"MI250", AMD, ""}, {"mi250x", AMD, ""}, {"MI300X", AMD, ""}, {"mi300x", AMD, ""}, {"amd_instinct_mi300a", AMD, ""}, {"gfx90a", AMD, ""}, {"AMD Radeon RX 7900 XTX", AMD, ""}, {"rx7900xtx", AMD, ""}, {"instinct", AMD, ""},
		{"910B", Ascend, ""}, {"Ascend 910B", Ascend, ""}, {"ascend910b3", Ascend, ""}, {"npu", Ascend, ""}, {"310P3", Ascend, ""}, {"Atlas 800T A2", Ascend, ""},
		{"gaudi2", Gaudi, ""}, {"Gaudi", Gaudi, ""}, {"HL-225", Gaudi, ""}, {"hpu", Gaudi, ""},
		{"Intel PVC", Intel, ""}, {"pvc", Intel, ""}, {"max1550", Intel, ""}, {"Max 1550", Intel, ""}, {"Intel Data Center GPU Max 1550", Intel, ""}, {"intel_max_1100", Intel, ""},
		{"Apple M2 Ultra", Apple, ""}, {"M3 Max", Apple, ""}, {"mps", Apple, ""},
		{"BI-V100", Others, ""}, {"bi_v150", Others, ""}, {"MR-V100", Others, ""}, {"biv100", Others, ""}, {"Iluvatar BI-V100", Others, ""},
		{"MetaX C500", Others, ""}, {"c500", Others, ""}, {"S4000", Others, ""}, {"P800", Others, ""}, {"mxc550", Others, ""}, {"Moore Threads S4000", Others, ""}, {"MooreThreads-S5000", Others, ""}, {"mtt_s4000", Others, ""},
		{"Cambricon MLU590", Others, ""}, {"MLU590-M9", Others, ""}, {"Kunlun P800", Others, ""}, {"kunlunxin_p800", Others, ""}, {"Hygon DCU K100", Others, ""}, {"K100-AI", Others, ""},
		{"V100", NVIDIA, "7.0"}, {"v100s", NVIDIA, "7.0"}, {"tesla-v100", NVIDIA, "7.0"}, {"P40", NVIDIA, "6.1"},
		{"mlu370", Others, ""}, {"dcu", Others, ""}, {"hygon_z100", Others, ""}, {"tpu", Others, ""},
		{"H100X", NVIDIA, "9.0"}, {"X1000", "", ""}, {"gpu", "", ""}, {"", "", ""}, {"shard", "", ""},
	} {
		if got := Maker(c.name); got != c.maker {
			t.Errorf("Maker(%q) = %q, want %q", c.name, got, c.maker)
		}
		if got := GPUCap(c.name); got != c.cap {
			t.Errorf("GPUCap(%q) = %q (%s), want %q", c.name, got, GPUName(c.name), c.cap)
		}
	}
}

// TestFirstOf: a branch's number stands for a driver that was published, and
// minimums that lie inside of the branch do not accuse it.
func TestFirstOf(t *testing.T) {
	for branch, want := range map[string]string{"595": "595.45.04", "590": "590.44.01", "580": "580.65.06", "570": "570.86.10", "565": "565.57.01", "560": "560.28.03",
		"555": "555.42.02", "550": "550.54.14", "545": "545.23.06", "535": "535.54.03", "525": "525.60.13", "470": "470.42.01", "450": "450.80.02", "418": "418.0"} {
		if got := FirstOf(branch); got != want {
			t.Errorf("%s: %s, want %s", branch, got, want)
		}
	}
	if DriverRuns(FirstOf("580"), "13.0") != Yes || DriverRuns(FirstOf("525"), "12.4") != Yes || DriverRuns(FirstOf("450"), "11.8") != Yes || DriverRuns(FirstOf("520"), "12.0") != No {
		t.Error("the first driver of a branch decides")
	}
	for _, r := range toolkitDriver {
		branch, _, _ := strings.Cut(r.driver, ".")
		if r.cuda != "11.0" && DriverCUDA(FirstOf(branch)) != r.cuda {
			t.Errorf("branch %s: CUDA %s, want %s", branch, DriverCUDA(FirstOf(branch)), r.cuda)
		}
	}
	if n := GPUName("MI300X"); n != "MI300X" {
		t.Error(n)
	}
}

func TestGFX(t *testing.T) {
	for name, want := range map[string]string{"MI250": "gfx90a", "mi250x": "gfx90a", "amd_instinct_mi210": "gfx90a", "MI300X": "gfx942", "mi300a": "gfx942", "MI325X": "gfx942",
		"MI355X": "gfx950", "mi100": "gfx908", "MI50": "gfx906", "gfx90a": "gfx90a", "GFX1100": "gfx1100", "AMD Radeon RX 7900 XTX": "gfx1100", "rx6800xt": "gfx1030", "RX 9070 XT": "gfx1201", "Radeon": "", "H100": ""} {
		if got := GFX(name); got != want {
			t.Errorf("GFX(%q) = %q, want %q", name, got, want)
		}
	}
	for _, c := range []struct {
		rocm, gfx string
		want      Answer
	}{{"7.2", "gfx90a", Yes}, {"6.4", "gfx950", No}, {"6.2", "gfx1101", No}, {"9.0", "gfx90a", Unknown}, {"7.2", "", Unknown}, {"7.1", "gfx1151", No}} {
		if got := ROCmRuns(c.rocm, c.gfx); got != c.want {
			t.Errorf("ROCmRuns(%s, %s) = %d", c.rocm, c.gfx, got)
		}
	}
	for tag, want := range map[string]string{"rocm6.2.4": "6.2.4", "rocm7": "", "rocm": "", "cu124": "", "rocmx.y": ""} {
		if got := TagROCm(tag); got != want {
			t.Errorf("TagROCm(%q) = %q", tag, got)
		}
	}
}

// TestDriverDropped: R470 is Kepler's last branch, R580 that of Maxwell, Pascal and Volta.
func TestDriverDropped(t *testing.T) {
	for _, c := range []struct {
		driver, cap string
		want        Answer
	}{
		{"590.44.01", "7.0", Yes}, {"595.45.04", "6.0", Yes}, {"590.48.01", "5.2", Yes}, {"580.126.09", "7.0", No}, {"580.65.06", "6.1", No},
		{"590.44.01", "7.5", No}, {"590.44.01", "9.0", No}, {"470.256.02", "3.7", No}, {"475.0", "3.7", Yes}, {"550.54.14", "3.5", Yes}, {"535.161.08", "3.7", Yes},
		{"550.54.14", "7.0", No}, {"590.44.01", "7.2", No}, {"590.44.01", "", Unknown}, {"new", "7.0", Unknown},
	} {
		if got := DriverDropped(c.driver, c.cap); got != c.want {
			t.Errorf("DriverDropped(%s, %s) = %d, want %d", c.driver, c.cap, got, c.want)
		}
	}
}
