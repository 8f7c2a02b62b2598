package tables

import "strings"

// ncclSince is the first NCCL release that exports a symbol.
//
// Source: git log -S over NVIDIA/nccl src/nccl.h.in, by release tag; read 2026-11-29. Device API: NCCL_API lines of
// src/dev_runtime.cc by tag; read 2026-11-30.
var ncclSince = map[string]string{
	"ncclSend":                        "2.7.3",
	"ncclRecv":                        "2.7.3",
	"ncclRedOpCreatePreMulSum":        "2.11.4",
	"ncclGetLastError":                "2.13.4",
	"ncclCommInitRankConfig":          "2.14.3",
	"ncclCommFinalize":                "2.14.3",
	"ncclCommSplit":                   "2.18.1",
	"ncclCommRegister":                "2.19.1",
	"ncclCommDeregister":              "2.19.1",
	"ncclMemAlloc":                    "2.19.1",
	"ncclMemFree":                     "2.19.1",
	"ncclGroupSimulateEnd":            "2.22.3",
	"ncclCommInitRankScalable":        "2.23.4",
	"ncclResetDebugInit":              "2.24.3",
	"ncclCommShrink":                  "2.27.3",
	"ncclCommWindowRegister":          "2.27.3",
	"ncclCommWindowDeregister":        "2.27.3",
	"ncclAlltoAll":                    "2.28.3",
	"ncclGather":                      "2.28.3",
	"ncclScatter":                     "2.28.3",
	"ncclDevCommCreate":               "2.28.3",
	"ncclDevCommDestroy":              "2.28.3",
	"ncclCommRevoke":                  "2.28.7",
	"ncclCommGrow":                    "2.29.2",
	"ncclCommGetUniqueId":             "2.29.2",
	"ncclCommQueryProperties":         "2.29.2",
	"ncclGetLsaDevicePointer":         "2.29.2",
	"ncclGetLsaMultimemDevicePointer": "2.29.2",
	"ncclGetMultimemDevicePointer":    "2.29.2",
	"ncclGetPeerDevicePointer":        "2.29.2",
	"ncclPutSignal":                   "2.29.2",
	"ncclSignal":                      "2.29.2",
	"ncclWaitSignal":                  "2.29.2",
	"ncclWinGetUserPtr":               "2.29.2",
	"ncclCommSuspend":                 "2.29.7",
	"ncclCommResume":                  "2.29.7",
	"ncclCommMemStats":                "2.29.7",
}

// NCCLSince returns the first NCCL release that exports all the symbols, ""
// when one of them is not in the table. The p prefix of the profiling aliases
// (pncclCommSplit) is understood.
func NCCLSince(symbols []string) string {
	since := ""
	for _, s := range symbols {
		v, ok := ncclSince[strings.TrimPrefix(s, "p")]
		if !ok {
			return ""
		}
		if since == "" || Compare(v, since) > 0 {
			since = v
		}
	}
	return since
}
