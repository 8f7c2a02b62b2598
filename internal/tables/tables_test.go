package tables

import (
	"strings"
	"testing"
)

func TestRuns(t *testing.T) {
	cu126 := "sm_50 sm_60 sm_70 sm_75 sm_80 sm_86 sm_90"
	for _, c := range []struct {
		archs, cap string
		want       Answer
	}{
		{cu126, "8.0", Yes},
		{cu126, "8.9", Yes}, // L40S runs sm_86
		{"sm_80", "8.6", Yes},
		{"sm_86", "8.0", No}, // not backwards
		{cu126, "7.0", Yes},
		{"sm_75 sm_80", "7.0", No},
		{cu126, "10.0", No},
		{cu126, "12.0", No},
		{"sm_80 compute_80", "9.0", Yes}, // PTX is compiled by the driver
		{"sm_90 compute_90", "12.0", Yes},
		{"sm_120 compute_120", "10.0", No}, // PTX does not run on older GPUs
		{"sm_90a", "9.0", Yes},
		{"sm_90a compute_90a", "10.0", No},
		{"sm_100f", "10.3", Yes},
		{"sm_100f", "12.0", No},
		{"sm_120", "12.1", Yes},         // DGX Spark
		{"sm_80 sm_86", "8.7", Unknown}, // Orin: not promised, often works
		{"sm_87", "8.7", Yes},
		{"sm_80 gfx90a", "9.0", Unknown},
		{"", "8.0", Unknown},
		{cu126, "", Unknown},
		{cu126, "8", Unknown},
	} {
		if got := Runs(strings.Fields(c.archs), c.cap); got != c.want {
			t.Errorf("Runs(%s, %s) = %d, want %d", c.archs, c.cap, got, c.want)
		}
	}
}

func TestDriverRuns(t *testing.T) {
	for _, c := range []struct {
		driver, cuda string
		want         Answer
	}{
		{"535.161.08", "12.4", Yes}, // minor-version compatibility
		{"525.60.13", "12.9", Yes},
		{"525.60.11", "12.1", No},
		{"470.82.01", "12.1", No},
		{"470.82.01", "11.8", Yes},
		{"570.86.15", "13.0", No},
		{"580.65.06", "13.2", Yes},
		{"535.161.08", "14.0", Unknown},
		{"535.161.08", "9.2", Unknown},
		{"unknown", "12.4", Unknown},
		{"535", "12.4", Unknown},
	} {
		if got := DriverRuns(c.driver, c.cuda); got != c.want {
			t.Errorf("DriverRuns(%s, %s) = %d, want %d", c.driver, c.cuda, got, c.want)
		}
	}
	if got := DriverCUDA("550.163.01"); got != "12.4" {
		t.Errorf("DriverCUDA = %q", got)
	}
}

func TestChoose(t *testing.T) {
	for _, c := range []struct{ torch, driver, machine, caps, want string }{
		{"2.6.0", "550.54.15", "x86_64", "8.0", "cu124"},
		{"2.6.0+cpu", "535.161.08", "x86_64", "8.0", "cu124"},
		{"2.6.0", "570.86.15", "x86_64", "9.0", "cu126"},
		{"2.6.0", "470.82.01", "x86_64", "8.0", "cu118"},
		{"2.6.0", "570.86.15", "x86_64", "10.0", ""},     // no kernels for Blackwell
		{"2.9.1", "580.65.06", "x86_64", "7.0", "cu128"}, // Volta is not in cu130
		{"2.12.0", "580.65.06", "x86_64", "7.0", "cu126"},
		{"2.12.0", "580.65.06", "x86_64", "9.0 10.0", "cu130"},
		{"2.12.0", "590.44.01", "aarch64", "9.0", "cu130"},
		{"2.8.0", "570.86.15", "aarch64", "9.0", ""}, // not verified
		{"2.8.0", "550.54.15", "x86_64", "12.0", "cu128"},
		{"2.12.0", "470.82.01", "x86_64", "8.0", ""},
		{"1.13.0a0", "535.161.08", "x86_64", "8.0", ""},
		{"2.6.0", "", "x86_64", "8.0", ""},
		{"2.6.0", "535.161.08", "x86_64", "", ""},
	} {
		if got := Choose(c.torch, c.driver, c.machine, strings.Fields(c.caps)); got != c.want {
			t.Errorf("Choose(%s, %s, %s, %s) = %q, want %q", c.torch, c.driver, c.machine, c.caps, got, c.want)
		}
	}
}

func TestSmall(t *testing.T) {
	if got := NCCLSince([]string{"ncclCommSplit", "ncclCommWindowRegister", "ncclGetLastError"}); got != "2.27.3" {
		t.Errorf("NCCLSince = %q", got)
	}
	if got := NCCLSince([]string{"ncclCommSplit", "ncclNewThing"}); got != "" {
		t.Errorf("NCCLSince of an unknown symbol = %q", got)
	}
	for v, want := range map[string]string{"2.6.0+cu124": "2.6", "2.10.0": "2.10", "2.6.0a0+ecf3bae40a.nv25.01": "", "1.13.0a0": "", "2.9.0.dev20250701+cu128": "", "": ""} {
		if got := Minor(v); got != want {
			t.Errorf("Minor(%s) = %q, want %q", v, got, want)
		}
	}
	if got := Companion("torchvision", "2.6.0+cu124"); got != "0.21" {
		t.Errorf("Companion = %q", got)
	}
	if got := TagCUDA("cu130"); got != "13.0" {
		t.Errorf("TagCUDA = %q", got)
	}
	if Compare("2.10", "2.9") != 1 || Compare("12.4", "12.4.0") != 0 || Compare("470.82", "525.60.13") != -1 {
		t.Error("Compare")
	}
}
