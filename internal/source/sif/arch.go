package sif

import "strings"

// arches are the architectures by their two digits in a SIF file, as Go names them.
var arches = map[string]string{
	"01": "386", "02": "amd64", "03": "arm", "04": "arm64", "05": "ppc64", "06": "ppc64le", "07": "mips",
	"08": "mipsle", "09": "mips64", "10": "mips64le", "11": "s390x", "12": "riscv64", "13": "loong64",
}

func archOf(b []byte) string { return arches[text(b)] }

// goArch turns uname's and Docker's names of architectures into Go's.
func goArch(name string) string {
	name = strings.ToLower(strings.TrimPrefix(name, "linux/"))
	switch name {
	case "x86_64", "x86-64", "x64":
		return "amd64"
	case "aarch64", "arm64/v8":
		return "arm64"
	case "i386", "i686":
		return "386"
	}
	return name
}
