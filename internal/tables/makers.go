package tables

import (
	"strings"

	"github.com/ncclinic/ncclinic/internal/lazyre"
)

// Makers of accelerators, as Maker names them.
const (
	NVIDIA = "nvidia"
	AMD    = "amd"
	Intel  = "intel"  // Data Center GPU Max and Flex, Arc
	Gaudi  = "gaudi"  // Intel's Gaudi, which has software of its own
	Ascend = "ascend" // Huawei
	Apple  = "apple"
	Others = "other" // known not to be NVIDIA's: Cambricon, Hygon, Iluvatar, MetaX, Moore Threads, Kunlunxin, Google …
)

// makers tell who made an accelerator, by product names and the types that
// clusters give them in Slurm's GRES. The first that fits counts; a name that
// fits none is not known to be NVIDIA's either.
//
// Source: the makers' product pages and the installation guides of ROCm,
// torch-npu, Intel Gaudi and Intel Extension for PyTorch; read 2026-11-30.
var makers = []struct {
	re    *lazyre.Regexp
	maker string
}{
	{lazyre.New(`(?i)\bNVIDIA\b`), NVIDIA},
	{lazyre.New(`(?i)\bgfx[0-9a-f]{3,4}\b`), AMD},
	{lazyre.New(`(?i)\b(AMD|ATI|Instinct|Radeon)\b`), AMD},
	{lazyre.New(`(?i)\bMI(25|50|60|8|100|2[15]0X?|300[AXC]?|308X?|325X?|350X?|355X?|4[0-9]{2}X?)\b`), AMD},
	{lazyre.New(`(?i)\b(RX ?[4-9][0-9]{2,3}(XTX?|M|GRE)?|W[67][89]00X?)\b`), AMD},
	{lazyre.New(`(?i)\b(Gaudi[23]?|HL ?[1-3][0-9]{2}D?|HPU)\b`), Gaudi},
	{lazyre.New(`(?i)\b(Ascend[0-9]*[A-Z]?[0-9]?|Atlas|NPU|310P[1-4]?|910(Pro)?[ABC]?[1-4]?)\b`), Ascend},
	{lazyre.New(`(?i)\b(Ponte Vecchio|PVC|XPU|Arc|Flex ?1[47]0|Max ?(1100|1350|1450|1550)|Intel)\b`), Intel},
	{lazyre.New(`(?i)\b(Apple|MPS|M[1-5] (Pro|Max|Ultra))\b`), Apple},
	{lazyre.New(`(?i)\b(MLU[0-9]*|Cambricon|DCU|Hygon|Z100L?|K100|MetaX|MXC[0-9]+|MTT|MUSA|Moore ?Threads|Biren|BR1[0-9]{2}|Iluvatar|CoreX|TianGai|ZhiKai|(?:BI|MR) ?V[0-9]{2,3}S?|Kunlun(?:xin)?|XPU[23]|Enflame|GCU|IPU|TPU|Trainium[0-9]?|Inferentia[0-9]?)\b`), Others},
	{lazyre.New(`(?i)^(C5[05]0X?|S[45]000|P800)$`), Others}, // MetaX, Moore Threads and Kunlunxin without their maker
	{lazyre.New(`(?i)\b(GeForce|Tesla|Quadro|TITAN|GTX|RTX)\b`), NVIDIA},
}

// Maker says who made an accelerator of a name, "" when the name does not tell.
func Maker(name string) string {
	if m := saidMaker(name); m != "" {
		return m
	}
	if GPUCap(name) != "" {
		return NVIDIA
	}
	return ""
}

// saidMaker is the maker that a name tells by itself.
func saidMaker(name string) string {
	for _, n := range []string{spaced(name), GPUName(name)} {
		for _, m := range makers {
			if m.re.MatchString(n) {
				return m.maker
			}
		}
	}
	return ""
}

func spaced(name string) string {
	return strings.Join(strings.Fields(strings.NewReplacer("_", " ", "-", " ", "/", " ").Replace(name)), " ")
}
